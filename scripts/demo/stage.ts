import { type ChildProcess, execFile, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '../..');
const holdfast = join(root, 'bin/holdfast');
const BACKENDS = ['alpha', 'beta', 'gamma'];
const PORTS = [18081, 18082, 18083];
const START_MS = 30_000;

export interface Stage {
  readonly backends: readonly ChildProcess[];
  readonly daemon: ChildProcess;
  readonly dataDir: string;
  readonly manifest: string;
  /** The ports of the back ends, in their order. */
  readonly ports: readonly number[];
  /** Runs a verb of the CLI against this daemon. */
  cli(...args: readonly string[]): Promise<string>;
  stop(): Promise<void>;
}

/** Starts the back ends and a daemon with the example. What it starts ends with `stop`, or with this process. */
export async function setStage(options: {
  readonly dataDir?: string;
  readonly flags?: readonly string[];
  readonly quiet: boolean;
}): Promise<Stage> {
  const work = await mkdtemp(join(tmpdir(), 'holdfast-demo-'));
  const dataDir = options.dataDir ?? join(work, 'data');
  const children: ChildProcess[] = [];
  const stop = async () => {
    await Promise.all(children.reverse().map(end));
    await rm(work, { recursive: true, force: true });
  };
  try {
    const ports = await Promise.all(PORTS.map(async (port) => ((await isFree(port)) ? port : freePort())));
    const manifest = join(work, 'hello.yaml');
    await writeFile(manifest, await exampleWith(ports));
    const backends = await Promise.all(BACKENDS.map((name, index) => startBackend(name, ports[index] ?? 0)));
    children.push(...backends);
    const daemon = spawn(holdfast, ['dev', '--data-dir', dataDir, '--apply', manifest, ...(options.flags ?? [])], {
      stdio: ['ignore', options.quiet ? 'ignore' : 'inherit', 'pipe'],
    });
    children.push(daemon);
    await daemonReady(daemon, options.quiet);
    const cli = async (...args: readonly string[]) =>
      (await promisify(execFile)(holdfast, [...args, '--data-dir', dataDir], { maxBuffer: 64 * 1024 * 1024 })).stdout;
    return { backends, daemon, dataDir, manifest, ports, cli, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function exampleWith(ports: readonly number[]): Promise<string> {
  let text = await readFile(join(root, 'examples/hello/hello.yaml'), 'utf8');
  for (const [index, port] of ports.entries()) text = text.replaceAll(String(PORTS[index]), String(port));
  return text;
}

async function startBackend(name: string, port: number): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'backend.ts'), [name, String(port)], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [what] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  if (what !== 'listening') throw new Error(`the back end ${name} did not start`);
  return child;
}

/** The daemon's first words are that it is ready; what it says until then is shown if it is not. */
async function daemonReady(daemon: ChildProcess, quiet: boolean): Promise<void> {
  let said = '';
  const ready = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`the daemon is not ready after ${START_MS / 1000} s:\n${said}`)), START_MS);
    daemon.stderr?.on('data', (chunk: Buffer) => {
      if (!quiet) process.stderr.write(chunk);
      said += chunk.toString();
      if (said.includes('is ready')) {
        clearTimeout(timer);
        resolve();
      }
    });
    daemon.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`the daemon ended with ${code}:\n${said}`));
    });
  });
  await ready;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', () => resolve(true));
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

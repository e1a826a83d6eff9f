import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { AgentError } from '../../src/domain/kernel/errors.js';
import type { UnitState } from '../../src/domain/service/model.js';
import type { Units } from '../../src/ports/service/units.js';

const execute = promisify(execFile);

/** The real dnsmasq in the foreground on a loopback port of its own, as a unit: no systemd runs where tests do. */
export class ForegroundDnsmasq implements Pick<Units, 'state' | 'restart'> {
  readonly port: number;
  readonly #folder: string;
  #child: ChildProcess | undefined;
  #starts = 0n;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.port = port;
  }

  /** It reads all files of the folder. */
  static async on(folder: string): Promise<ForegroundDnsmasq> {
    for (;;) {
      const socket = createSocket('udp4').bind(0, '127.0.0.1');
      await once(socket, 'listening');
      const { port } = socket.address();
      // It takes both: one that others have by TCP is no use.
      const server = createServer().listen(port, '127.0.0.1');
      const isFree = await once(server, 'listening').then(
        () => true,
        () => false,
      );
      server.close();
      socket.close();
      if (isFree) return new ForegroundDnsmasq(folder, port);
    }
  }

  async state(): Promise<UnitState> {
    const isActive = this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
    return { isKnown: true, isActive, startedAt: this.#starts, text: isActive ? 'active (running)' : 'failed (failed)' };
  }

  async restart(): Promise<void> {
    await this.stop();
    this.#starts += 1n;
    const own = ['--listen-address=127.0.0.1', '--bind-interfaces', `--port=${this.port}`, '--user=root', '--pid-file='];
    const quiet = ['--keep-in-foreground', '--no-resolv', '--no-hosts', '--log-facility=-', '--conf-file=/dev/null'];
    const child = spawn('dnsmasq', [...quiet, ...own, `--conf-dir=${this.#folder}`], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    while (!said.includes('started, version')) {
      if (child.exitCode !== null) throw new AgentError('service.failed', { problem: said.trim() });
      await sleep(10);
    }
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** What it answers for a name, as dig sees it. */
  async resolve(name: string): Promise<string> {
    const { stdout } = await execute('dig', ['+short', '+tries=1', '+time=2', '-p', String(this.port), '@127.0.0.1', name]);
    return stdout.trim();
  }
}

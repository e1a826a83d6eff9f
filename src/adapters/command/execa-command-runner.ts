import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { execa } from 'execa';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Command, CommandResult, CommandRunner } from '../../ports/command/command-runner.js';
import { errnoOf } from '../files/errno.js';

/** All that a program gets of an environment, beside what its command adds. */
const ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', LANG: 'C.UTF-8' };
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** Between SIGTERM and SIGKILL. */
const TERM_MS = 2_000;
/** For the pipes to close when the program has ended and what it started holds them, and for a killed one to end. */
const END_MS = 1_000;
/** What a timer takes; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Programs in a session of their own. execa starts them and feeds them. Its promise waits for whoever holds the pipes, however long, and
 * its limit of output ends the program: the end, the deadline and the caps are ours.
 */
export class ExecaCommandRunner implements CommandRunner {
  async run(command: Command, { signal }: CallOptions): Promise<CommandResult> {
    signal.throwIfAborted();
    const { pid, child, stdout, stderr } = await start(command);
    const cap = command.maxOutputBytes ?? MAX_OUTPUT_BYTES;
    const outputs = [new CappedOutput(stdout, cap), new CappedOutput(stderr, cap)] as const;
    const exit = once(child, 'exit');
    try {
      const timedOut = !(await endedWithin(exit, command.timeoutMs, signal));
      if (timedOut || signal.aborted) await terminate(pid, exit);
      await endedWithin(Promise.all(outputs.map(({ closed }) => closed)), END_MS, signal);
      signal.throwIfAborted();
      const [out, err] = outputs;
      return {
        exitCode: timedOut ? -1 : (child.exitCode ?? -1),
        timedOut,
        stdout: out.text(),
        stderr: err.text(),
        dropped: out.dropped + err.dropped,
      };
    } finally {
      kill(pid, 'SIGKILL');
      for (const output of outputs) output.cut();
      child.unref();
    }
  }
}

async function start(command: Command) {
  try {
    const started = execute(command);
    const { pid, nodeChildProcess: child, stdout, stderr } = started;
    if (pid === undefined) throw (await started).cause;
    return { pid, child, stdout, stderr };
  } catch (cause) {
    throw notStarted(command, cause);
  }
}

function execute({ argv: [program, ...args], env, stdin }: Command) {
  return execa(program, args, {
    cwd: '/',
    env: { ...env, ...ENVIRONMENT },
    extendEnv: false,
    // A session of its own: its group has its pid, and the terminal's signals pass it by.
    detached: true,
    cleanup: false,
    ...(stdin === undefined ? { stdin: 'ignore' as const } : { input: stdin }),
    buffer: false,
    reject: false,
  });
}

function notStarted({ argv: [program] }: Command, cause: unknown): AgentError {
  if (errnoOf(cause) === 'ENOENT') return new AgentError('command.not_found', { program }, { cause });
  const problem = cause instanceof Error ? cause.message : String(cause);
  return new AgentError('command.not_started', { program, problem }, { cause });
}

/** One that cannot be killed, as a writer to a frozen file system, is left behind. */
async function terminate(pid: number, exit: Promise<unknown>): Promise<void> {
  kill(pid, 'SIGTERM');
  if (await endedWithin(exit, TERM_MS)) return;
  kill(pid, 'SIGKILL');
  await endedWithin(exit, END_MS);
}

/** The whole group, also when its leader has ended: the kernel gives the number to nobody else while one of the group lives. */
function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (errnoOf(error) !== 'ESRCH') throw error;
  }
}

/** Whether it came in time; true on abort too. */
async function endedWithin(work: Promise<unknown>, ms: number, signal?: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), Math.min(ms, MAX_TIMER_MS));
  const over = () => resolve(true);
  signal?.addEventListener('abort', over, { once: true });
  if (signal?.aborted === true) over();
  work.then(over, over);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', over);
  }
}

/** The first bytes of a stream. What comes after them is read and dropped: a program must not stand still for us. */
class CappedOutput {
  readonly closed: Promise<unknown>;
  readonly #stream: Readable;
  readonly #kept: Buffer[] = [];
  #room: number;
  #dropped = 0;

  constructor(stream: Readable, cap: number) {
    this.#stream = stream;
    this.#room = cap;
    this.closed = once(stream, 'close');
    this.closed.catch(() => {});
    stream.on('error', () => {});
    stream.on('data', (chunk: Buffer) => this.#take(chunk));
  }

  get dropped(): number {
    return this.#dropped;
  }

  text(): string {
    // A character that the cap has cut is left out.
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(this.#kept), { stream: this.#dropped > 0 });
  }

  cut(): void {
    this.#stream.destroy();
  }

  #take(chunk: Buffer): void {
    const kept = chunk.subarray(0, this.#room);
    if (kept.length > 0) this.#kept.push(kept);
    this.#room -= kept.length;
    this.#dropped += chunk.length - kept.length;
  }
}

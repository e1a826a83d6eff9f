import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Inheritance, Successor } from '../../ports/agent/successor.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Addon } from '../dataplane/addon.js';
import { ASKS, CHANNEL_VARIABLE, partsOf, SERVES } from './inheritance-codec.js';

/** One part of an inheritance is taken in milliseconds by whoever waits for it. */
const GIVE_MS = 10_000;
/** stdin, stdout and stderr come before it. */
const CHANNEL = 3;

export interface SuccessorCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** A process of its own session, which does not end with this one. */
export class SuccessorProcess implements Successor {
  readonly #addon: Addon;
  readonly #child: ChildProcess;
  readonly #channel: Socket;
  readonly #fd: number;
  readonly #said = new Set<number>();
  readonly #changed = new Set<() => void>();
  #end: string | undefined;

  /** @throws AgentError `agent.successor_failed` */
  static async start(addon: Addon, { program, args, env }: SuccessorCommand): Promise<SuccessorProcess> {
    const { ours, theirs } = addon.openChannel();
    const child = spawn(program, args, {
      detached: true,
      stdio: ['inherit', 'inherit', 'inherit', theirs],
      env: { ...env, [CHANNEL_VARIABLE]: String(CHANNEL) },
    });
    closeSync(theirs);
    const successor = new SuccessorProcess(addon, child, ours);
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (cause) => {
        successor.#channel.destroy();
        reject(failed(`${program} does not start: ${cause.message}`, cause));
      });
    });
    return successor;
  }

  private constructor(addon: Addon, child: ChildProcess, fd: number) {
    this.#addon = addon;
    this.#child = child;
    this.#fd = fd;
    this.#channel = new Socket({ fd, readable: true, writable: false });
    this.#channel.on('data', (bytes) => {
      for (const byte of bytes) this.#said.add(byte);
      this.#tell();
    });
    child.once('exit', (code, signal) => {
      this.#end = `it ended with ${signal ?? code}`;
      this.#tell();
    });
    this.#channel.on('error', () => {});
    child.unref();
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  asks(options: CallOptions): Promise<void> {
    return this.#says(ASKS, options);
  }

  give(inheritance: Inheritance): void {
    try {
      for (const { part, fds } of partsOf(inheritance)) {
        this.#addon.sendDescriptors(this.#fd, JSON.stringify(part), fds, GIVE_MS);
      }
    } catch (error) {
      throw failed('it does not take over what it has asked for', error);
    }
  }

  async serves(options: CallOptions): Promise<void> {
    await this.#says(SERVES, options);
    this.#channel.destroy();
  }

  async kill(): Promise<void> {
    this.#channel.destroy();
    if (this.#end !== undefined) return;
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await ended;
  }

  async #says(byte: number, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    while (!this.#said.has(byte)) {
      if (this.#end !== undefined) throw failed(this.#end);
      await this.#change(signal);
    }
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = () => {
        this.#changed.delete(done);
        signal.removeEventListener('abort', stop);
        resolve();
      };
      const stop = () => {
        this.#changed.delete(done);
        reject(failed('it says nothing', signal.reason));
      };
      this.#changed.add(done);
      signal.addEventListener('abort', stop, { once: true });
    });
  }

  #tell(): void {
    for (const changed of [...this.#changed]) changed();
  }
}

function failed(problem: string, cause?: unknown): AgentError {
  return new AgentError('agent.successor_failed', { problem }, { cause });
}

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Addon, addonPath } from '../../src/adapters/dataplane/addon.js';
import { sourceArguments } from '../../src/adapters/threads/typescript-worker.js';

export interface ChildContext {
  readonly addon: Addon;
  readonly dgram: typeof import('node:dgram');
  readonly net: typeof import('node:net');
  /** A module by its path in the project, `src/a.ts`. */
  // biome-ignore lint/suspicious/noExplicitAny: each test knows what it loads
  readonly load: (path: string) => Promise<any>;
  /** What one call leaves for the next. */
  // biome-ignore lint/suspicious/noExplicitAny: each test knows what it has put there
  readonly state: Record<string, any>;
}

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: Error;
}

/** `ip -n NAMESPACE …`. */
export function ipIn(namespace: string, ...args: readonly string[]): string {
  return execFileSync('ip', ['-n', namespace, ...args], { encoding: 'utf8' });
}

/** A process in a network namespace, with the addon. */
export class NamespaceChild {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #id = 0;

  constructor(namespace: string) {
    const script = fileURLToPath(new URL('namespace-child.mjs', import.meta.url));
    const args = [
      'netns',
      'exec',
      namespace,
      process.execPath,
      ...sourceArguments,
      script,
      addonPath(process.env.HOLDFAST_ADDON),
    ];
    this.#child = spawn('ip', args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], serialization: 'advanced' });
    this.#child.on('message', (message) => this.#settle(message as Answer));
    this.#child.once('exit', () => this.#fail(new Error(`the process in ${namespace} has ended`)));
  }

  /** Runs the function there. It sees its arguments and the context, and nothing of the test around it. */
  async run<Args extends readonly unknown[], T>(
    call: (context: ChildContext, ...args: Args) => T | Promise<T>,
    ...args: Args
  ): Promise<T> {
    if (!this.#child.connected) throw new Error('the process has ended');
    const waiting = Promise.withResolvers<unknown>();
    const id = this.#id++;
    this.#waiting.set(id, waiting);
    this.#child.send({ id, source: call.toString(), args }, (error) => error && waiting.reject(error));
    return (await waiting.promise) as T;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.disconnect();
    await gone;
  }

  #settle({ id, value, error }: Answer): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(error);
  }

  #fail(error: Error): void {
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
  }
}

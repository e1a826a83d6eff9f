import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export const ENDPOINT_PORT = 9_000;

/**
 * Endpoints in a process of their own. Their addresses are outside 127.0.0.1, so that none of the proxy's own connections has taken
 * the port of one that returns.
 */
export class EndpointProcess {
  readonly addresses: readonly string[];
  readonly #open = new Set<string>();
  readonly #pending = new Map<number, () => void>();
  #child: { readonly process: ChildProcess; readonly exited: Promise<unknown> } | undefined;
  /** Not while it starts: addresses open all together then. */
  #running = false;
  #asked = 0;

  constructor(host: number, count: number) {
    this.addresses = Array.from({ length: count }, (_, index) => `127.77.${host}.${index + 1}`);
  }

  get running(): boolean {
    return this.#running;
  }

  isOpen(address: string): boolean {
    return this.#open.has(address);
  }

  /** All of them listen when it resolves. */
  async start(): Promise<void> {
    const child = fork(join(import.meta.dirname, 'churn-endpoints-process.mjs'), [], { execArgv: [], stdio: 'inherit' });
    child.on('message', (number) => this.#pending.get(Number(number))?.());
    child.on('error', () => {});
    this.#child = { process: child, exited: once(child, 'exit') };
    await once(child, 'spawn');
    await this.#ask('open', this.addresses);
    for (const address of this.addresses) this.#open.add(address);
    this.#running = true;
  }

  /** Its running connections are cut. */
  async close(address: string): Promise<void> {
    this.#open.delete(address);
    await this.#ask('close', [address]);
  }

  async open(address: string): Promise<void> {
    await this.#ask('open', [address]);
    this.#open.add(address);
  }

  /** SIGKILL: all of them at once. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    this.#running = false;
    this.#open.clear();
    child?.process.kill('SIGKILL');
    await child?.exited;
  }

  async #ask(verb: 'open' | 'close', addresses: readonly string[]): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const number = this.#asked++;
    const answered = new Promise<void>((resolve) => this.#pending.set(number, resolve));
    child.process.send({ number, verb, addresses });
    // One that is killed answers nothing.
    await Promise.race([answered, child.exited]);
    this.#pending.delete(number);
  }
}

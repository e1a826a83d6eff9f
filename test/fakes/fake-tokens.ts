import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { TokenCall, TokenFacts, Tokens } from '../../src/ports/driving/tokens.js';

/** Tokens `t1`, `t2` … in memory. */
export class FakeTokens implements Tokens {
  readonly #tokens = new Map<string, TokenFacts>();
  readonly #now: () => number;
  #failure: Error | undefined;
  #count = 0;

  constructor(now: () => number = () => Date.UTC(2026, 0, 31, 12)) {
    this.#now = now;
  }

  /** The next call rejects with `error` and changes nothing. */
  failNext(error: Error = new AgentError('store.unavailable', { problem: 'told to fail' })): void {
    this.#failure = error;
  }

  async create({ aid, ttlMs, replace }: TokenCall, { signal }: CallOptions) {
    this.#enter(signal);
    const createdAt = this.#now();
    const id = `t${++this.#count}`;
    const facts = { id, aid, replace, createdAt, expiresAt: createdAt + ttlMs, usedBy: undefined };
    this.#tokens.set(id, facts);
    return { token: `${id}.secret`, facts };
  }

  async list({ signal }: CallOptions): Promise<readonly TokenFacts[]> {
    this.#enter(signal);
    return [...this.#tokens.values()];
  }

  async revoke(id: string, { signal }: CallOptions): Promise<boolean> {
    this.#enter(signal);
    return this.#tokens.delete(id);
  }

  #enter(signal: AbortSignal): void {
    signal.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }
}

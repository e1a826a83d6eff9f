import type { Identity } from '../../src/domain/identity/model.js';
import { formatIdentity, parseIdentity } from '../../src/domain/identity/plan.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { IdentityStore } from '../../src/ports/identity/identity-store.js';

/** A disk with room for one identity, as text. */
export class FakeIdentityStore implements IdentityStore {
  #text: string | undefined;
  #failure: unknown;

  constructor(text?: string) {
    this.#text = text;
  }

  /** The next call rejects with `error` and changes nothing. */
  failNext(error: unknown): void {
    this.#failure = error;
  }

  async load({ signal }: CallOptions): Promise<Identity | undefined> {
    this.#mayFail(signal);
    return this.#text === undefined ? undefined : parseIdentity(this.#text, 'node-identity.json');
  }

  async create(identity: Identity, { signal }: CallOptions): Promise<Identity> {
    this.#mayFail(signal);
    this.#text ??= formatIdentity(identity);
    return parseIdentity(this.#text, 'node-identity.json');
  }

  dump(): string {
    return this.#text ?? '';
  }

  #mayFail(signal: AbortSignal): void {
    signal.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }
}

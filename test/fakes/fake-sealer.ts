import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Sealer, SealerKeys } from '../../src/ports/store/sealer.js';

/** Hides nothing, and refuses what a real one refuses. */
export class FakeSealer implements Sealer {
  readonly #keys: readonly string[];
  #count = 0;

  /** @param keys oldest first */
  constructor(keys: readonly string[] = ['k1']) {
    this.#keys = keys;
  }

  get keyId(): string {
    return this.#keys.at(-1) ?? '';
  }

  seal(name: string, text: string): string {
    this.#count += 1;
    const body = Buffer.from(JSON.stringify([this.#count, name, text])).toString('base64url');
    return `${this.keyId}.${body}.${checksum(body)}`;
  }

  open(name: string, sealed: string): string {
    const [id = '', body = '', sum] = sealed.split('.');
    if (!this.#keys.includes(id)) throw new AgentError('store.key_wrong', { problem: `${name} is sealed with key ${id}` });
    if (checksum(body) !== sum) throw new AgentError('store.seal_broken', { problem: `${name} was changed` });
    const [, sealedName, text] = JSON.parse(Buffer.from(body, 'base64url').toString()) as [number, string, string];
    if (sealedName !== name) throw new AgentError('store.seal_broken', { problem: `${name} was moved` });
    return text;
  }
}

function checksum(text: string): string {
  return String([...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 1_000_000_007, 7));
}

/** A disk with room for one key file. */
export class FakeSealerKeys implements SealerKeys {
  #keys: readonly string[] | undefined;

  constructor(keys?: readonly string[]) {
    this.#keys = keys;
  }

  async load({ signal }: CallOptions): Promise<Sealer | undefined> {
    signal.throwIfAborted();
    return this.#keys === undefined ? undefined : new FakeSealer(this.#keys);
  }

  async create({ signal }: CallOptions): Promise<Sealer> {
    signal.throwIfAborted();
    this.#keys ??= ['k1'];
    return new FakeSealer(this.#keys);
  }

  /** As an operator would. */
  rotate(id: string): void {
    this.#keys = [...(this.#keys ?? []), id];
  }
}

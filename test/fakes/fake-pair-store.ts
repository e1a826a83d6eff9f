import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Pair, PairStore, StoredPair, StoredPairs } from '../../src/ports/certificate/pair-store.js';
import type { StatusProblem } from '../../src/ports/driving/operations.js';
import { checkedFakePair } from './fake-certificates.js';

/** A disk with room for some pairs. */
export class FakePairStore implements PairStore {
  readonly #pairs = new Map<string, StoredPair>();
  readonly #damaged = new Set<string>();
  #current: string | undefined;
  #problems: readonly StatusProblem[] = [];
  #failure: unknown;
  #lateFailure: unknown;

  /** The next `activate` rejects with `error` when the pair is in use already. */
  failAfterActivation(error: unknown): void {
    this.#lateFailure = error;
  }

  /** The next call rejects with `error` and changes nothing. */
  failNext(error: unknown): void {
    this.#failure = error;
  }

  /** The files of this pair cannot be read any more. */
  damage(serial: string): void {
    this.#damaged.add(serial);
  }

  async load({ signal }: CallOptions): Promise<StoredPairs> {
    this.#mayFail(signal);
    const whole = [...this.#pairs.values()]
      .filter(({ serial }) => !this.#damaged.has(serial))
      .sort((a, b) => b.notBefore - a.notBefore);
    const linked = whole.find(({ serial }) => serial === this.#current);
    const current = this.#current === undefined ? undefined : (linked ?? whole[0]);
    this.#problems = [...this.#damaged].map((serial) => ({
      subject: serial,
      reason: 'is damaged',
      since: undefined,
      remedy: 'put it back',
    }));
    return { current, staged: whole.find(({ notBefore }) => notBefore > (current?.notBefore ?? Number.NEGATIVE_INFINITY)) };
  }

  async stage(pair: Pair, { signal }: CallOptions): Promise<StoredPair> {
    this.#mayFail(signal);
    const checked = checkedFakePair(pair);
    this.#pairs.set(checked.serial, checked);
    this.#damaged.delete(checked.serial);
    return checked;
  }

  async activate(serial: string, { signal }: CallOptions): Promise<void> {
    this.#mayFail(signal);
    if (!this.#pairs.has(serial) || this.#damaged.has(serial)) {
      throw new AgentError('certificate.not_written', { problem: `certificate ${serial} is not kept whole` });
    }
    const former = this.#current;
    if (former === serial) return;
    this.#current = serial;
    for (const each of this.#pairs.keys()) if (each !== serial && each !== former) this.#pairs.delete(each);
    const failure = this.#lateFailure;
    this.#lateFailure = undefined;
    if (failure !== undefined) throw failure;
  }

  async clear({ signal }: CallOptions): Promise<void> {
    this.#mayFail(signal);
    this.#pairs.clear();
    this.#damaged.clear();
    this.#current = undefined;
    this.#problems = [];
  }

  problems(): readonly StatusProblem[] {
    return this.#problems;
  }

  /** `*aa` for the current one, `bb` for others, sorted. */
  dump(): string {
    return [...this.#pairs.keys()]
      .map((serial) => (serial === this.#current ? `*${serial}` : serial))
      .sort()
      .join(' ');
  }

  #mayFail(signal: AbortSignal): void {
    signal.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }
}

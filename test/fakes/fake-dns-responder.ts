import type { ZoneDelta } from '../../src/domain/dns/ready.js';
import { type AddressPort, formatAddressPort } from '../../src/domain/kernel/network.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type {
  CacheEntry,
  CacheKey,
  DnsListenResult,
  DnsResponder,
  DnsResponderEvents,
  DnsResponderStats,
  HandedQuestion,
} from '../../src/ports/dns/dns-responder.js';

/** Keeps what it is told, and hands up what it is told to. Cached entries never expire. */
export class FakeDnsResponder implements DnsResponder {
  readonly #groups = new Map<string, readonly string[]>();
  readonly #cached = new Map<string, CacheEntry>();
  readonly #occupied = new Set<string>();
  readonly #answers = new Map<number, Uint8Array | undefined>();
  #events: DnsResponderEvents | undefined;
  #listening: readonly string[] = [];
  #serial = 0;
  #isRunning = false;
  #handles = 0;
  #failure: unknown;

  /** Binding there fails from now on. */
  occupy(at: string): void {
    this.#occupied.add(at);
  }

  /** The next apply rejects with `error` and changes nothing. */
  failNextApply(error: unknown): void {
    this.#failure = error;
  }

  /** As if somebody had asked what no table answers. @returns the handle */
  ask(query: Uint8Array, client: HandedQuestion['client']): number {
    this.#handles += 1;
    this.#events?.onQuestion({ handle: this.#handles, query, client });
    return this.#handles;
  }

  /** What the handle was given back with. */
  answerTo(handle: number): Uint8Array | undefined {
    return this.#answers.get(handle);
  }

  get cached(): readonly CacheEntry[] {
    return [...this.#cached.values()];
  }

  start(events?: DnsResponderEvents): void {
    if (this.#isRunning) throw new Error('the DNS threads were started before');
    this.#events = events;
    this.#isRunning = true;
  }

  listen(addresses: readonly AddressPort[]): readonly DnsListenResult[] {
    this.#running();
    const results = addresses.map((at): DnsListenResult => {
      if (!this.#occupied.has(formatAddressPort(at.address, at.port))) return { at, listening: true };
      return { at, listening: false, reason: 'address_in_use', detail: 'bind: Address already in use' };
    });
    this.#listening = results.filter(({ listening }) => listening).map(({ at }) => formatAddressPort(at.address, at.port));
    return results;
  }

  async apply({ serial, apexes, remove, upsert }: ZoneDelta, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    this.#running();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    for (const id of remove) this.#groups.delete(id);
    for (const { id, names } of upsert)
      this.#groups.set(
        id,
        names.map(({ name }) => name.join('.')),
      );
    if (apexes !== undefined)
      this.#groups.set(
        'apexes',
        apexes.map(({ name }) => name.join('.')),
      );
    this.#serial = serial;
  }

  putCached(entries: readonly CacheEntry[]): void {
    this.#running();
    for (const entry of entries) this.#cached.set(keyOf(entry), entry);
  }

  removeCached(keys: readonly CacheKey[]): void {
    this.#running();
    for (const key of keys) this.#cached.delete(keyOf(key));
  }

  clearCached(): void {
    this.#cached.clear();
  }

  answer(handle: number, message: Uint8Array | undefined): void {
    if (!this.#answers.has(handle)) this.#answers.set(handle, message);
  }

  stats(): DnsResponderStats {
    const groups = [...this.#groups].filter(([id]) => id !== 'apexes');
    return {
      ...{ answered: [], cacheHits: 0, handedUp: this.#handles, droppedQuestions: 0, droppedAnswers: 0, truncated: 0 },
      ...{ names: groups.flatMap(([, names]) => names).length, cached: this.#cached.size },
      ...{ waiting: this.#handles - this.#answers.size, threads: this.#isRunning ? 1 : 0 },
    };
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#listening = [];
  }

  /** Where it listens, then one line a group. */
  dump(): string {
    const groups = [...this.#groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, names]) => `${id}: ${names.join(' ')}`);
    return [`serial ${this.#serial}`, ...this.#listening.map((at) => `listens on ${at}`), ...groups].join('\n');
  }

  #running(): void {
    if (!this.#isRunning) throw new Error('the DNS threads are not started');
  }
}

/** The question stands between the header and the sections. */
function keyOf({ message, isDnssecOk, isCheckingDisabled }: CacheKey): string {
  let end = 12;
  for (let length = message[end] ?? 0; length > 0; length = message[end] ?? 0) end += length + 1;
  const question = Buffer.from(message.subarray(12, end + 5))
    .toString('latin1')
    .toLowerCase();
  return `${question} ${isDnssecOk} ${isCheckingDisabled}`;
}

import type { ZoneDelta } from '../../domain/dns/ready.js';
import { type AddressPort, ipAddress, portNumber } from '../../domain/kernel/network.js';
import type { CallOptions } from '../../ports/call-options.js';
import type {
  CacheEntry,
  CacheKey,
  DnsCount,
  DnsListenResult,
  DnsResponder,
  DnsResponderEvents,
  DnsResponderStats,
  HandedQuestion,
} from '../../ports/dns/dns-responder.js';
import type { Addon } from '../dataplane/addon.js';
import {
  countedRcodes,
  countedTypes,
  type NativeDnsResponder as Native,
  type NativeListenResult,
  type NativeQuestion,
} from './dns-addon.js';
import { encodeZoneDelta } from './zone-codec.js';

/** A week: nobody keeps an answer for longer (RFC 8767, 4). */
const LONGEST_LIFE_MS = 604_800_000;

const nothing: DnsResponderStats = {
  ...{ answered: [], cacheHits: 0, handedUp: 0, droppedQuestions: 0, droppedAnswers: 0, truncated: 0 },
  ...{ names: 0, cached: 0, waiting: 0, threads: 0 },
};

/** The DNS threads of the native addon. */
export class NativeDnsResponder implements DnsResponder {
  readonly #load: () => Addon;
  readonly #threads: number;
  #native: Native | undefined;
  /** Of the threads that have ended. */
  #last = nothing;

  constructor(load: () => Addon, threads = 1) {
    this.#load = load;
    this.#threads = threads;
  }

  start(events?: DnsResponderEvents): void {
    if (this.#native !== undefined) throw new Error('the DNS threads were started before');
    const { DnsResponder: Responder } = this.#load();
    const onQuestion =
      events &&
      ((question: NativeQuestion) => {
        const handed = questionOf(question);
        if (handed !== undefined) events.onQuestion(handed);
      });
    this.#native = new Responder(this.#threads, onQuestion);
  }

  listen(addresses: readonly AddressPort[]): readonly DnsListenResult[] {
    const results = this.#running().listen(...addresses.flatMap(({ address, port }) => [address, port]));
    return addresses.map((at, index) => listenResult(at, results[index]));
  }

  async apply(delta: ZoneDelta, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    await this.#running().apply(encodeZoneDelta(delta));
  }

  putCached(entries: readonly CacheEntry[]): void {
    const native = this.#running();
    for (const entry of entries) {
      const lifeMs = milliseconds(entry.lifeMs);
      native.putCached(entry.message, variantOf(entry), lifeMs, milliseconds(entry.refreshAfterMs ?? lifeMs));
    }
  }

  removeCached(keys: readonly CacheKey[]): void {
    const native = this.#running();
    for (const key of keys) native.removeCached(key.message, variantOf(key));
  }

  clearCached(): void {
    this.#running().clearCached();
  }

  answer(handle: number, message: Uint8Array | undefined): void {
    // Whoever asked is gone with the threads.
    this.#native?.answer(handle, message);
  }

  stats(): DnsResponderStats {
    if (this.#native === undefined) return this.#last;
    const { answered, ...figures } = this.#native.stats();
    return { ...figures, answered: countsOf(answered) };
  }

  async stop(): Promise<void> {
    const native = this.#native;
    if (native === undefined) return;
    this.#last = { ...this.stats(), names: 0, cached: 0, waiting: 0, threads: 0 };
    this.#native = undefined;
    native.stop();
  }

  #running(): Native {
    if (this.#native === undefined) throw new Error('the DNS threads are not started');
    return this.#native;
  }
}

function questionOf({ handle, query, address, port }: NativeQuestion): HandedQuestion | undefined {
  const client = ipAddress(address);
  const from = portNumber(port);
  // The native side hands up nobody without a port.
  if (client === undefined || from === undefined) return undefined;
  return { handle, query, client: { address: client, port: from } };
}

function listenResult(at: AddressPort, result: NativeListenResult | undefined): DnsListenResult {
  if (result?.reason === undefined) return { at, listening: true };
  return { at, listening: false, reason: result.reason, detail: result.detail ?? '' };
}

function variantOf({ isDnssecOk, isCheckingDisabled }: CacheKey): number {
  return (isDnssecOk ? 1 : 0) + (isCheckingDisabled ? 2 : 0);
}

function milliseconds(value: number): number {
  return Math.min(LONGEST_LIFE_MS, Math.max(0, Math.floor(value)));
}

function countsOf(answered: Float64Array): readonly DnsCount[] {
  return countedTypes.flatMap((type, row) =>
    countedRcodes.flatMap((rcode, column) => {
      const count = answered[row * countedRcodes.length + column] ?? 0;
      return count === 0 ? [] : [{ type, rcode, count }];
    }),
  );
}

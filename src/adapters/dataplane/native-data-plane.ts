import { setImmediate } from 'node:timers/promises';
import type { ListenerId } from '../../domain/dataplane/model.js';
import { formatAddressPort, ipAddress } from '../../domain/kernel/network.js';
import type { CallOptions } from '../../ports/call-options.js';
import type {
  DataPlane,
  DataPlaneEvent,
  DataPlaneInfo,
  ListenerSpec,
  ListenerStats,
  ListeningSocket,
  ListenResult,
  TableDelta,
} from '../../ports/dataplane/data-plane.js';
import type { Addon, NativeEvent, NativeProxy, NativeResult, ProxySettings } from './addon.js';
import { ListenerNumbers } from './listener-numbers.js';
import { type NumberedStats, readStats, type TimeBounds } from './stats-rows.js';
import { encodeTableDelta } from './table-codec.js';

/** About 10 us a listener to bind, so that the main thread is away for 5 ms at most. */
const batchSize = 512;

const noThreads: DataPlaneInfo = { threads: 0, listenerBudget: 0, listeners: 0, connections: 0, connectionLimit: 0 };

/** The proxy threads of the native addon. */
export class NativeDataPlane implements DataPlane {
  readonly #load: () => Addon;
  readonly #settings: Partial<ProxySettings>;
  readonly #numbers = new ListenerNumbers();
  /** Of all listeners; the native side says which have changed. */
  readonly #stats = new Map<ListenerId, ListenerStats>();
  #proxy: NativeProxy | undefined;
  /** Undefined while nobody has the threads. */
  #onEvent: ((event: DataPlaneEvent) => void) | undefined;
  #bounds: TimeBounds = { dial: [], connection: [] };
  #queue: Promise<unknown> = Promise.resolve();

  constructor(load: () => Addon, settings: Partial<ProxySettings> = {}) {
    this.#load = load;
    this.#settings = settings;
  }

  start(onEvent: (event: DataPlaneEvent) => void, inherited: readonly ListeningSocket[] = []): void {
    if (this.#onEvent !== undefined) throw new Error('the data plane was started before');
    this.#onEvent = onEvent;
    this.#proxy ??= this.#startThreads();
    for (const { protocol, fd } of inherited) this.#proxy.inherit(protocol, fd);
  }

  dropInherited(): void {
    this.#proxy?.dropInherited();
  }

  leave(): void {
    this.#onEvent = undefined;
  }

  sockets(): readonly ListeningSocket[] {
    return this.#proxy?.sockets().map(({ protocol, fd }) => ({ protocol, fd })) ?? [];
  }

  apply(delta: TableDelta, options: CallOptions): Promise<readonly ListenResult[]> {
    const run = this.#queue.then(() => this.#apply(delta, options));
    this.#queue = run.catch(() => undefined);
    return run;
  }

  stats(): readonly ListenerStats[] {
    if (this.#proxy !== undefined) for (const row of readStats(this.#proxy.stats(), this.#bounds)) this.#keep(row);
    return [...this.#stats.values()];
  }

  statsOf(id: ListenerId): ListenerStats | undefined {
    const number = this.#numbers.of(id);
    if (this.#proxy === undefined || number === undefined) return undefined;
    const [row] = readStats(this.#proxy.stats(number), this.#bounds);
    return row === undefined ? undefined : named(id, row);
  }

  info(): DataPlaneInfo {
    if (this.#proxy === undefined) return noThreads;
    const { threads, listenerBudget, listeners, connections, connectionLimit } = this.#proxy.info();
    return { threads, listenerBudget, listeners, connections, connectionLimit };
  }

  async stop(graceMs: number, { handedOver } = { handedOver: false }): Promise<void> {
    await this.#proxy?.stop(graceMs, handedOver);
  }

  #startThreads(): NativeProxy {
    const addon = this.#load();
    this.#bounds = addon.timeBounds;
    return new addon.Proxy(this.#settings, (native) => {
      const event = this.#eventOf(native);
      if (event !== undefined) this.#onEvent?.(event);
    });
  }

  async #apply({ remove, upsert }: TableDelta, { signal }: CallOptions): Promise<readonly ListenResult[]> {
    signal.throwIfAborted();
    const proxy = this.#proxy;
    if (proxy === undefined) throw new Error('the data plane is not started');
    // Small deltas in one piece, so that an address can go from one listener to another in it without a gap.
    if (remove.length + upsert.length <= batchSize) return this.#applyBatch(proxy, { remove, upsert });
    for (const part of batches(remove)) {
      await this.#applyBatch(proxy, { remove: part, upsert: [] });
      await setImmediate(undefined, { signal });
    }
    const results: ListenResult[] = [];
    for (const part of batches(upsert)) {
      results.push(...(await this.#applyBatch(proxy, { remove: [], upsert: part })));
      await setImmediate(undefined, { signal });
    }
    return results;
  }

  async #applyBatch(proxy: NativeProxy, { remove, upsert }: TableDelta): Promise<readonly ListenResult[]> {
    const wanted = new Set(upsert.map((spec) => spec.id));
    const gone = [...new Set(remove)].filter((id) => !wanted.has(id));
    const removed = gone.flatMap((id) => this.#numbers.of(id) ?? []);
    const upserted = upsert.map((spec) => ({ number: this.#numbers.take(spec.id), spec }));
    const results = await proxy.apply(encodeTableDelta(removed, upserted));
    for (const id of gone) {
      this.#numbers.release(id);
      this.#stats.delete(id);
    }
    return upsert.flatMap((spec, index) => resultOf(spec, results[index]));
  }

  #keep(row: NumberedStats): void {
    const id = this.#numbers.nameOf(row.number);
    if (id !== undefined && this.#numbers.of(id) !== undefined) this.#stats.set(id, named(id, row));
  }

  #eventOf(event: NativeEvent): DataPlaneEvent | undefined {
    if (event.type === 'accept_paused') return event;
    const id = this.#numbers.nameOf(event.id);
    const address = ipAddress(event.address);
    if (id === undefined || address === undefined) return undefined;
    const endpoint = formatAddressPort(address, event.port);
    return event.type === 'drained'
      ? { type: 'drained', id, endpoint, closed: event.closed }
      : { type: event.type, id, endpoint };
  }
}

function named(id: ListenerId, { number: _, ...counters }: NumberedStats): ListenerStats {
  return { id, ...counters };
}

function resultOf({ id }: ListenerSpec, result: NativeResult | undefined): ListenResult[] {
  if (result === undefined) return [];
  return 'port' in result
    ? [{ id, listening: true, port: result.port }]
    : [{ id, listening: false, reason: result.reason, detail: result.detail }];
}

function* batches<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += batchSize) yield items.slice(start, start + batchSize);
}

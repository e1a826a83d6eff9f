import type { ListenerId } from '../../src/domain/dataplane/model.js';
import { formatAddressPort } from '../../src/domain/kernel/network.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type {
  BindFailure,
  DataPlane,
  DataPlaneEvent,
  DataPlaneInfo,
  ListenerSpec,
  ListenerStats,
  ListeningSocket,
  ListenResult,
  TableDelta,
} from '../../src/ports/dataplane/data-plane.js';

interface Entry {
  readonly spec: ListenerSpec;
  /** 0 when it could not be bound. */
  readonly port: number;
}

const firstFreePort = 40_000;

/** A data plane that binds ports in a machine of its own and never has a connection, so that every drain is over at once. */
export class FakeDataPlane implements DataPlane {
  readonly #budget: number;
  readonly #entries = new Map<ListenerId, Entry>();
  /** `address:port` of what others hold, with what a bind there meets. */
  readonly #occupied = new Map<string, BindFailure>();
  #onEvent: ((event: DataPlaneEvent) => void) | undefined;
  #stopped = false;
  /** What `start` was given, until it is dropped. */
  inherited: readonly ListeningSocket[] = [];
  #failure: unknown;

  constructor(budget = 12_650) {
    this.#budget = budget;
  }

  /** From now on binding there fails; a listener that is already there stays. */
  occupy(addressAndPort: string, reason: BindFailure = 'address_in_use'): void {
    this.#occupied.set(addressAndPort, reason);
  }

  vacate(addressAndPort: string): void {
    this.#occupied.delete(addressAndPort);
  }

  /** The next apply rejects with `error` and changes nothing. */
  failNextApply(error: unknown): void {
    this.#failure = error;
  }

  /** As if the threads had said it. */
  emit(event: DataPlaneEvent): void {
    this.#onEvent?.(event);
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  start(onEvent: (event: DataPlaneEvent) => void, inherited: readonly ListeningSocket[] = []): void {
    if (this.#onEvent !== undefined) throw new Error('the data plane was started before');
    this.#onEvent = onEvent;
    this.inherited = inherited;
  }

  dropInherited(): void {
    this.inherited = [];
  }

  leave(): void {
    this.#onEvent = undefined;
  }

  sockets(): readonly ListeningSocket[] {
    return [...this.#entries.values()].flatMap(({ spec: { protocol }, port }) => (port === 0 ? [] : [{ protocol, fd: port }]));
  }

  async apply({ remove, upsert }: TableDelta, { signal }: CallOptions): Promise<readonly ListenResult[]> {
    signal.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    if (this.#onEvent === undefined) throw new Error('the data plane is not started');
    if (this.#stopped) throw new Error('the proxy is stopped');
    const wanted = new Set(upsert.map((spec) => spec.id));
    for (const id of remove) if (!wanted.has(id)) this.#remove(id);
    this.#releaseMoving(upsert);
    return upsert.map((spec) => this.#upsert(spec));
  }

  stats(): readonly ListenerStats[] {
    return [...this.#entries.values()].map(({ spec }) => idle(spec));
  }

  statsOf(id: ListenerId): ListenerStats | undefined {
    const entry = this.#entries.get(id);
    return entry === undefined ? undefined : idle(entry.spec);
  }

  info(): DataPlaneInfo {
    const threads = this.#onEvent === undefined ? 0 : 2;
    const listeners = this.#stopped ? 0 : [...this.#entries.values()].filter(({ port }) => port !== 0).length;
    const budget = threads === 0 ? 0 : this.#budget;
    return { threads, listenerBudget: budget, listeners, connections: 0, connectionLimit: budget };
  }

  async stop(_graceMs: number): Promise<void> {
    this.#stopped = true;
  }

  /** One line per listener, by id. */
  dump(): string {
    return [...this.#entries.values()]
      .sort((a, b) => (a.spec.id < b.spec.id ? -1 : 1))
      .map(({ spec, port }) => {
        const at = port === 0 ? 'not listening' : formatAddressPort(spec.address, port);
        const endpoints = spec.endpoints.map(
          (each) => `${formatAddressPort(each.address, each.port)}*${each.weight}${each.tier === 0 ? '' : `/${each.tier}`}`,
        );
        return [spec.id, at, spec.algorithm, `drain=${spec.drainMs}`, ...extras(spec), '->', ...endpoints].join(' ');
      })
      .join('\n');
  }

  #remove(id: ListenerId): void {
    const entry = this.#entries.get(id);
    this.#entries.delete(id);
    if (entry !== undefined) this.#withdraw(entry.spec, []);
  }

  /** Those that leave their address make room for others of the same delta. */
  #releaseMoving(upsert: readonly ListenerSpec[]): void {
    for (const spec of upsert) {
      const entry = this.#entries.get(spec.id);
      if (entry !== undefined && !serves(entry, spec)) this.#entries.set(spec.id, { spec: entry.spec, port: 0 });
    }
  }

  #upsert(spec: ListenerSpec): ListenResult {
    const { id } = spec;
    const entry = this.#entries.get(id);
    const bound = entry !== undefined && serves(entry, spec) ? entry.port : this.#bind(spec);
    this.#entries.set(id, { spec, port: typeof bound === 'number' ? bound : 0 });
    // What one protocol carries cannot go on under the other.
    if (entry !== undefined) this.#withdraw(entry.spec, entry.spec.protocol === spec.protocol ? spec.endpoints : []);
    return typeof bound === 'number'
      ? { id, listening: true, port: bound }
      : { id, listening: false, reason: bound, detail: `bind: ${bound}` };
  }

  #bind({ address, listenPort, protocol }: ListenerSpec): number | BindFailure {
    if (this.info().listeners >= this.#budget) return 'fd_limit';
    const others = [...this.#entries.values()].filter((entry) => entry.spec.protocol === protocol);
    const taken = new Set(others.map((entry) => formatAddressPort(entry.spec.address, entry.port)));
    let port = listenPort === 0 ? firstFreePort : listenPort;
    while (
      listenPort === 0 &&
      (taken.has(formatAddressPort(address, port)) || this.#occupied.has(formatAddressPort(address, port)))
    )
      port++;
    const wanted = formatAddressPort(address, port);
    return this.#occupied.get(wanted) ?? (taken.has(wanted) ? 'address_in_use' : port);
  }

  #withdraw({ id, endpoints }: ListenerSpec, kept: ListenerSpec['endpoints']): void {
    const present = new Set(kept.map((each) => formatAddressPort(each.address, each.port)));
    for (const each of endpoints) {
      const endpoint = formatAddressPort(each.address, each.port);
      if (!present.has(endpoint)) this.emit({ type: 'drained', id, endpoint, closed: 0 });
    }
  }
}

function serves({ spec, port }: Entry, wanted: ListenerSpec): boolean {
  const same = spec.address === wanted.address && spec.protocol === wanted.protocol;
  return port !== 0 && same && (wanted.listenPort === 0 || wanted.listenPort === port);
}

/** What is not as usual, so that most lines stay short. */
function extras(spec: ListenerSpec): string[] {
  return [
    ...(spec.protocol === 'tcp' ? [] : [spec.protocol]),
    ...(spec.affinityMs === 0 ? [] : [`affinity=${spec.affinityMs}`]),
    ...(spec.idleMs === 0 ? [] : [`idle=${spec.idleMs}`]),
    ...(spec.maxConnections === 0 ? [] : [`max=${spec.maxConnections}`]),
    ...(spec.acceptProxy ? ['proxy-in'] : []),
    ...(spec.sendProxy === 0 ? [] : [`proxy-out=${spec.sendProxy}`]),
    ...(spec.refuse ? ['refuse'] : []),
  ];
}

function idle({ id, endpoints }: ListenerSpec): ListenerStats {
  const ended = { completed: 0, failed: 0, refused: 0, limited: 0, evicted: 0, dropped: 0, reset: 0, drained: 0 };
  return {
    id,
    active: 0,
    ...ended,
    ...{ bytesIn: 0, bytesOut: 0, dialFailures: 0 },
    endpoints: endpoints.map(({ address, port }) => ({ address, port, active: 0, total: 0, draining: false, ejected: false })),
  };
}

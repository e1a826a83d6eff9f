import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { LinkAddress } from '../../ports/link/control-link.js';
import { dial, type LinkConnection, type ReadPair } from './link-connection.js';

/** Of the name service, and of the connection after it. */
const DIAL_MS = 15_000;

export interface LinkConnectionsParts {
  /** Read at each new connection. */
  readonly readPair: ReadPair;
  readonly clock: Clock;
}

/** One connection for each address, which the link's streams, its calls and the log share. */
export class LinkConnections {
  readonly #parts: LinkConnectionsParts;
  readonly #current = new Map<string, LinkConnection>();
  readonly #dialling = new Map<string, Promise<LinkConnection>>();
  /** Whatever is open, also what no new stream is put on any more. */
  readonly #open = new Set<LinkConnection>();
  /** Servers that have announced that they take pings. */
  readonly #pings = new Set<string>();
  readonly #followers = new Set<(home: LinkConnection) => void>();
  #home: LinkConnection | undefined;
  #stop = new AbortController();
  #generation = 0;
  #closed = false;

  constructor(parts: LinkConnectionsParts) {
    this.#parts = parts;
  }

  /**
   * The one that is there, while it is known to live, or a new one within 10 s.
   * @throws AgentError `link.unreachable`, `certificate.*`; on abort with the signal's reason
   */
  async to(address: LinkAddress, { signal }: CallOptions): Promise<LinkConnection> {
    signal.throwIfAborted();
    const key = keyOf(address);
    const current = this.#current.get(key);
    if (current !== undefined && this.#fits(current, key)) return current;
    const dialling = this.#dialling.get(key) ?? this.#dial(key, address);
    const aborted = Promise.withResolvers<never>();
    const onAbort = () => aborted.reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await Promise.race([dialling, aborted.promise]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** What a server has announced counts for connections from now on: one that pings never reaches a server that did not ask for it. */
  announced(address: LinkAddress, keepalive: boolean): void {
    if (keepalive) this.#pings.add(keyOf(address));
    else this.#pings.delete(keyOf(address));
  }

  /** Where the newest stream of the link was let in. */
  get home(): LinkConnection | undefined {
    return this.#home;
  }

  /** A stream of the link was let in there: what else there is follows it, after a renewal as from a server that drains. */
  settle(connection: LinkConnection): void {
    if (this.#home === connection) return;
    this.#home = connection;
    for (const follow of [...this.#followers]) follow(connection);
  }

  /** Is told each new home, until what is returned is called. */
  onSettled(follow: (home: LinkConnection) => void): () => void {
    this.#followers.add(follow);
    return () => this.#followers.delete(follow);
  }

  /** No new call is put on what is open; each is closed with its last call. */
  retire(): void {
    this.#generation++;
    this.#current.clear();
    this.#dialling.clear();
    for (const connection of this.#open) this.#closeIfDone(connection);
  }

  /** A call begins on it. */
  hold(connection: LinkConnection): void {
    connection.calls++;
  }

  /** And is over. */
  release(connection: LinkConnection): void {
    connection.calls--;
    this.#closeIfDone(connection);
  }

  /** All that is open. What is opened afterwards, by who does not know it yet, is closed with its last call. */
  close(): void {
    this.#closed = true;
    this.#stop.abort(new AgentError('link.unreachable', { problem: 'the link is closed' }));
    this.#stop = new AbortController();
    this.retire();
    for (const connection of this.#open) this.#destroy(connection);
  }

  #dial(key: string, address: LinkAddress): Promise<LinkConnection> {
    const { readPair, clock } = this.#parts;
    const generation = this.#generation;
    const budget = new AbortController();
    const stop = this.#stop.signal;
    const onStop = () => budget.abort(stop.reason);
    const onLate = () =>
      budget.abort(new AgentError('link.unreachable', { problem: `${key}: the name service does not answer` }));
    stop.addEventListener('abort', onStop, { once: true });
    const timer = setTimeout(onLate, DIAL_MS);
    const pings = this.#pings.has(key);
    const dialling = dial({ address, readPair, pings, clock }, { signal: budget.signal })
      .then((connection) => {
        this.#open.add(connection);
        if (generation === this.#generation) this.#replace(key, connection);
        return connection;
      })
      .finally(() => {
        clearTimeout(timer);
        stop.removeEventListener('abort', onStop);
        if (this.#dialling.get(key) === dialling) this.#dialling.delete(key);
      });
    this.#dialling.set(key, dialling);
    // Whoever asked may have gone away meanwhile.
    dialling.catch(() => {});
    return dialling;
  }

  /** One that lives but does not ping serves on while calls are on it, also when the server would take pings. */
  #fits(current: LinkConnection, key: string): boolean {
    const wanted = this.#pings.has(key);
    return current.usable && (current.pings === wanted || (wanted && current.calls > 0));
  }

  #replace(key: string, connection: LinkConnection): void {
    const former = this.#current.get(key);
    this.#current.set(key, connection);
    if (former !== undefined) this.#closeIfDone(former);
  }

  #closeIfDone(connection: LinkConnection): void {
    const isKept = !this.#closed && [...this.#current.values()].includes(connection);
    if (connection.calls === 0 && !isKept) this.#destroy(connection);
  }

  #destroy(connection: LinkConnection): void {
    this.#open.delete(connection);
    if (this.#home === connection) this.#home = undefined;
    connection.destroy();
  }
}

function keyOf({ host, port }: LinkAddress): string {
  return `${host}:${port}`;
}

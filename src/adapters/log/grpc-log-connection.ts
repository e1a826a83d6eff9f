import { getClientChannel } from '@grpc/grpc-js';
import type { NodeName } from '../../domain/identity/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Cursor, LogFrame, Proposal, ProposeResult, Snapshot } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { LinkAddress } from '../../ports/link/control-link.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { LinkConnection } from '../link/link-connection.js';
import type { LinkConnections } from '../link/link-connections.js';
import { GrpcOrderedLog } from './grpc-ordered-log.js';

export interface GrpcLogConnectionParts {
  /** Those of the link, whose owner closes them. */
  readonly connections: LinkConnections;
  /** Servers of one fleet; at least one. */
  readonly addresses: readonly LinkAddress[];
  readonly nodeId: NodeName;
  readonly clock: Clock;
}

/**
 * The log says little while nothing changes, and the link's heartbeats, which would show a path that died, may be refused. So whoever has
 * heard nothing for 10 s asks a question, and a connection without an answer for 5 s more is given up: noticed within 15 s and one look.
 */
const SILENT_MS = 10_000;
const ANSWER_MS = 5_000;
const LOOK_MS = 1_000;

/**
 * The log of a control plane, on the same connection as the link: of two for each node a server of 1,000 nodes would hold 1,000 more. It
 * goes where the link is, also when that moves, and is served where the link's stream is refused. A call that finds its server out of
 * reach rejects, and the next one asks the next server.
 */
export class GrpcLogConnection implements OrderedLog {
  readonly #parts: GrpcLogConnectionParts;
  readonly #logs = new WeakMap<LinkConnection, GrpcOrderedLog>();
  /** Where the link is, but the log was not served. */
  #left: LinkConnection | undefined;
  #index = 0;

  constructor(parts: GrpcLogConnectionParts) {
    this.#parts = parts;
  }

  propose(proposal: Proposal, options: CallOptions): Promise<ProposeResult> {
    return this.#with((log) => log.propose(proposal, options), options);
  }

  snapshot(prefix: string, options: CallOptions): Promise<Snapshot> {
    return this.#with((log) => log.snapshot(prefix, options), options);
  }

  head(options: CallOptions): Promise<Cursor> {
    return this.#with((log) => log.head(options), options);
  }

  /** Rejects with `link.unreachable` as well when the link has moved to another connection: the next one is there. */
  async *watch(from: Cursor, { signal }: CallOptions): AsyncIterable<LogFrame> {
    const { connections } = this.#parts;
    const connection = await this.#connect({ signal });
    const over = new AbortController();
    const calling = AbortSignal.any([signal, over.signal]);
    const stay = connections.onSettled((home) => {
      if (home !== connection && this.#isOurs(home)) over.abort();
    });
    connections.hold(connection);
    try {
      void this.#listen(connection, calling);
      yield* this.#logOf(connection).watch(from, { signal: calling });
      if (!signal.aborted)
        throw new AgentError('link.unreachable', { problem: 'the log follows the link to another connection' });
    } catch (error) {
      if (!over.signal.aborted) this.#leave(connection, error);
      throw error;
    } finally {
      stay();
      over.abort();
      connections.release(connection);
    }
  }

  async #with<T>(call: (log: OrderedLog) => Promise<T>, options: CallOptions): Promise<T> {
    const { connections } = this.#parts;
    const connection = await this.#connect(options);
    connections.hold(connection);
    try {
      return await call(this.#logOf(connection));
    } catch (error) {
      this.#leave(connection, error);
      throw error;
    } finally {
      connections.release(connection);
    }
  }

  async #connect({ signal }: CallOptions): Promise<LinkConnection> {
    const { connections, addresses } = this.#parts;
    const { home } = connections;
    const isThere = home !== undefined && home !== this.#left && home.usable && this.#isOurs(home);
    const address = isThere ? home.address : addresses[this.#index % addresses.length];
    if (address === undefined) throw new AgentError('link.unreachable', { problem: 'no control plane is named' });
    try {
      return await connections.to(address, { signal });
    } catch (error) {
      if (!signal.aborted) this.#index++;
      throw error;
    }
  }

  #logOf(connection: LinkConnection): GrpcOrderedLog {
    const known = this.#logs.get(connection);
    if (known !== undefined) return known;
    const { clock, nodeId } = this.#parts;
    const log = new GrpcOrderedLog({ channel: getClientChannel(connection.client), clock, nodeId });
    this.#logs.set(connection, log);
    return log;
  }

  #isOurs({ address: { host, port } }: LinkConnection): boolean {
    return this.#parts.addresses.some((each) => each.host === host && each.port === port);
  }

  /** What cannot be reached, or does not serve us, is not asked again. */
  #leave(connection: LinkConnection, error: unknown): void {
    const isGone = error instanceof AgentError && (error.code === 'link.unreachable' || error.code === 'link.refused');
    if (!isGone && error instanceof AgentError) return;
    this.#left = connection;
    this.#index++;
  }

  /** Ends a connection whose path is dead: nothing else would while nothing is sent. */
  async #listen(connection: LinkConnection, signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!signal.aborted) {
      await clock.sleep(LOOK_MS, { signal }).catch(() => {});
      const heardAt = connection.lastByteAt();
      if (signal.aborted || clock.monotonic() - heardAt < SILENT_MS) continue;
      const late = AbortSignal.timeout(ANSWER_MS);
      // Whatever is answered is an answer.
      await this.#logOf(connection)
        .head({ signal: AbortSignal.any([signal, late]) })
        .catch(() => {});
      if (late.aborted && !signal.aborted && connection.lastByteAt() === heardAt) connection.destroy();
    }
  }
}

import { listenPortCandidates } from '../../domain/dataplane/listen-port.js';
import type { L4Listener, ListenerId } from '../../domain/dataplane/model.js';
import type { Clock } from '../../ports/clock.js';
import type { BindFailure, ListenResult } from '../../ports/dataplane/data-plane.js';
import type { ListenerState } from '../../ports/dataplane/listener-status.js';

type Failed = Extract<ListenerState, { state: 'failed' }>;
type Bound = { readonly address: string; readonly servicePort: number; readonly port: number };

const remedies: Readonly<Record<BindFailure, string>> = {
  address_in_use: 'stop what listens there (ss -ltnp shows it), or change the service port',
  permission_denied: 'grant CAP_NET_BIND_SERVICE, or use a port from 1024',
  address_unavailable: 'see that the service range is routed to this node',
  fd_limit: 'raise the limit of open files (LimitNOFILE, ulimit -n)',
  other: 'see the log of the daemon',
};

/** Which listener stands where, which could not be had, and which ports to go back to after a restart. */
export class ListenerBook {
  readonly #mayMove: boolean;
  readonly #clock: Clock;
  readonly #bound = new Map<ListenerId, Bound>();
  readonly #failed = new Map<ListenerId, Failed>();
  /** Of listeners that stand, or stood, somewhere else than their service says. */
  readonly #moved = new Map<ListenerId, number>();
  /** The service port for which the moved port was chosen: for another one it means nothing. */
  readonly #servicePorts = new Map<ListenerId, number>();

  constructor(mayMove: boolean, clock: Clock) {
    this.#mayMove = mayMove;
    this.#clock = clock;
  }

  remember(ports: ReadonlyMap<ListenerId, number>): void {
    for (const [id, port] of ports) this.#moved.set(id, port);
  }

  /** A listener that stands keeps its port for as long as its service's address and port are the same. */
  candidates({ id, address, port }: L4Listener): readonly number[] {
    const former = this.#servicePorts.get(id);
    if (former !== undefined && former !== port) this.#moved.delete(id);
    this.#servicePorts.set(id, port);
    const bound = this.#bound.get(id);
    if (bound !== undefined && bound.address === address && bound.servicePort === port) return [bound.port];
    return listenPortCandidates(port, this.#moved.get(id), this.#mayMove);
  }

  note({ id, address, port: servicePort }: L4Listener, result: ListenResult): void {
    if (result.listening) {
      this.#failed.delete(id);
      this.#bound.set(id, { address, servicePort, port: result.port });
      if (result.port === servicePort) this.#moved.delete(id);
      else this.#moved.set(id, result.port);
      return;
    }
    this.#bound.delete(id);
    const reason = result.reason === 'fd_limit' ? 'fd-limit' : result.detail;
    const before = this.#failed.get(id);
    const since = before?.reason === reason ? before.since : this.#clock.now();
    this.#failed.set(id, { state: 'failed', reason, remedy: remedies[result.reason], since });
  }

  forget(ids: Iterable<ListenerId>): void {
    for (const id of ids) {
      this.#bound.delete(id);
      this.#failed.delete(id);
      this.#moved.delete(id);
      this.#servicePorts.delete(id);
    }
  }

  /** Nothing listens any more; what to go back to is kept. */
  clear(): void {
    this.#bound.clear();
    this.#failed.clear();
  }

  stateOf(id: ListenerId): ListenerState {
    const bound = this.#bound.get(id);
    return bound === undefined ? (this.#failed.get(id) ?? { state: 'pending' }) : { state: 'listening', port: bound.port };
  }

  failed(): ReadonlyMap<ListenerId, Failed> {
    return this.#failed;
  }

  moved(): ReadonlyMap<ListenerId, number> {
    return this.#moved;
  }
}

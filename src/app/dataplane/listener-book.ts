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

/** Which listener stands where, and which could not be had. */
export class ListenerBook {
  readonly #mayMove: boolean;
  readonly #clock: Clock;
  readonly #bound = new Map<ListenerId, Bound>();
  readonly #failed = new Map<ListenerId, Failed>();
  #remembered: ReadonlyMap<ListenerId, number> = new Map();

  constructor(mayMove: boolean, clock: Clock) {
    this.#mayMove = mayMove;
    this.#clock = clock;
  }

  remember(ports: ReadonlyMap<ListenerId, number>): void {
    this.#remembered = ports;
  }

  /** A listener that stands keeps its port for as long as its service's address and port are the same. */
  candidates({ id, address, port }: L4Listener): readonly number[] {
    const bound = this.#bound.get(id);
    if (bound !== undefined && bound.address === address && bound.servicePort === port) return [bound.port];
    return listenPortCandidates(port, bound === undefined ? this.#remembered.get(id) : undefined, this.#mayMove);
  }

  note({ id, address, port: servicePort }: L4Listener, result: ListenResult): void {
    if (result.listening) {
      this.#failed.delete(id);
      this.#bound.set(id, { address, servicePort, port: result.port });
      return;
    }
    this.#bound.delete(id);
    const reason = result.reason === 'fd_limit' ? 'fd-limit' : result.detail;
    this.#failed.set(id, {
      state: 'failed',
      reason,
      remedy: remedies[result.reason],
      since: this.#failed.get(id)?.since ?? this.#clock.now(),
    });
  }

  forget(ids: readonly ListenerId[]): void {
    for (const id of ids) {
      this.#bound.delete(id);
      this.#failed.delete(id);
    }
  }

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

  ports(): ReadonlyMap<ListenerId, number> {
    return new Map([...this.#bound].map(([id, { port }]) => [id, port]));
  }
}

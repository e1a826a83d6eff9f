import { splitListenerId } from '../../domain/dataplane/compile.js';
import type { L4Listener, ListenerId } from '../../domain/dataplane/model.js';
import type { QualifiedName } from '../../domain/resource/model.js';
import type { Clock } from '../../ports/clock.js';
import type { PathMoves } from './path-moves.js';

/**
 * A handshake that a listener has answered is completed at that listener, and a connection that it has not accepted yet is reset when it
 * closes. The last answer of a handshake may be lost and sent once more, after 1 s (RFC 6298).
 */
const SETTLE_MS = 3_000;

/** Of UDP and TCP alike 49 days, the most that can be said: connections of a listener that has left end by themselves. */
const NO_DEADLINE_MS = 2 ** 32 - 1;

/** Listeners whose service ports the kernel is to carry: they stay until it does, and a little longer. */
export class LeavingListeners {
  readonly #moves: PathMoves;
  readonly #clock: Clock;
  readonly #listeners = new Map<ListenerId, L4Listener>();

  constructor({ moves, clock }: { readonly moves: PathMoves; readonly clock: Clock }) {
    this.#moves = moves;
    this.#clock = clock;
  }

  /** The services were compiled anew: `former` to what stands, and the ports of `elsewhere` are the kernel's now. */
  note(services: ReadonlySet<QualifiedName>, former: readonly L4Listener[], elsewhere: readonly ListenerId[]): void {
    const moving = new Set(elsewhere);
    for (const listener of former) if (moving.has(listener.id)) this.#listeners.set(listener.id, listener);
    for (const id of this.#listeners.keys()) {
      if (services.has(splitListenerId(id).service) && !moving.has(id)) this.#listeners.delete(id);
    }
  }

  /** How long until it may go, milliseconds; undefined: nobody has taken it over. 0 also when it does not move at all. */
  waitMs(id: ListenerId): number | undefined {
    if (!this.#listeners.has(id)) return 0;
    const since = this.#moves.since('kernel', id);
    return since === undefined ? undefined : Math.max(0, since + SETTLE_MS - this.#clock.monotonic());
  }

  /** Those of them that move, as they are before they close, so that their connections are not cut. */
  closing(ids: readonly ListenerId[]): readonly L4Listener[] {
    return ids.flatMap((id) => {
      const listener = this.#listeners.get(id);
      return listener === undefined ? [] : [{ ...listener, drainMs: NO_DEADLINE_MS }];
    });
  }

  /** They are closed. */
  forget(ids: readonly ListenerId[]): void {
    for (const id of ids) this.#listeners.delete(id);
  }
}

import { concerns, type Revocation } from '../../domain/certificate/revocation.js';
import type { RevocationFeed } from '../../ports/driving/revocations.js';
import type { Subsystem } from '../agent/subsystem.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { FinishedSweep } from '../dispatch/finished-sweep.js';
import type { InstructionBook } from '../dispatch/instruction-book.js';
import type { NodeSessions } from '../link/node-sessions.js';
import type { PresenceBoard } from '../link/presence-board.js';
import type { FleetOverlay } from '../overlay/fleet-overlay.js';
import type { PeerPushes } from '../overlay/peer-pushes.js';
import type { FleetVips } from '../vip/fleet-vips.js';
import type { Cordons } from './cordons.js';

export interface FleetSubsystemParts {
  readonly presence: PresenceBoard;
  readonly cordons: Cordons;
  readonly book: InstructionBook;
  readonly dispatcher: Dispatcher;
  readonly sessions: NodeSessions;
  /** Whoever is revoked loses the stream. */
  readonly revocations: RevocationFeed;
  readonly sweep: FinishedSweep;
  readonly overlay: FleetOverlay;
  readonly pushes: PeerPushes;
  readonly vips: Pick<FleetVips, 'start' | 'stop'>;
}

/** A control plane's dealings with its nodes. It starts after the store and stops before it; the port that nodes call on, inside of both. */
export class FleetSubsystem implements Subsystem {
  readonly name = 'fleet';
  readonly #parts: FleetSubsystemParts;
  #unsubscribe: () => void = () => {};

  constructor(parts: FleetSubsystemParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { presence, cordons, book, dispatcher, sessions, sweep, overlay, pushes, vips, revocations } = this.#parts;
    const endings = [
      cordons.onChange((nid) => dispatcher.look(nid)),
      revocations.onRevoked((revocation) => this.#end(revocation)),
    ];
    this.#unsubscribe = () => {
      for (const end of endings) end();
    };
    for (const part of [presence, cordons, book, dispatcher, sessions, sweep, overlay, pushes, vips]) part.start();
  }

  /** What there is has been read: streams are taken from now on. */
  async ready(signal: AbortSignal): Promise<void> {
    const { book, cordons } = this.#parts;
    await Promise.all([book.loaded({ signal }), cordons.loaded({ signal })]);
  }

  async stop(): Promise<void> {
    const { presence, cordons, book, dispatcher, sessions, sweep, overlay, pushes, vips } = this.#parts;
    this.#unsubscribe();
    for (const part of [vips, pushes, overlay, sweep, sessions, dispatcher, book, cordons, presence]) await part.stop();
  }

  #end(revocation: Revocation): void {
    const reason = { status: 'revoked', message: `revoked: ${revocation.reason}` } as const;
    this.#parts.sessions.endWhere((node) => concerns(revocation, node), reason);
  }
}

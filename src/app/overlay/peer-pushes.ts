import type { OverlaySet } from '../../domain/link/calls.js';
import type { Aid, Nid } from '../../domain/link/model.js';
import { peersPayloadOf } from '../../domain/overlay/fleet.js';
import type { Clock } from '../../ports/clock.js';
import type { Instructions } from '../../ports/driving/fleet.js';
import type { Logger } from '../../ports/logger.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { NodeSessions } from '../link/node-sessions.js';
import type { FleetOverlay } from './fleet-overlay.js';

/** Nodes that start together are one change for the others. */
const GATHER_MS = 1_000;
/** Whoever has not taken it by then asks by itself. */
const EXPIRES_MS = 60_000;
const QUIET_MS = 600_000;

export interface PeerPushesParts {
  readonly overlay: FleetOverlay;
  readonly instructions: Pick<Instructions, 'send'>;
  readonly sessions: Pick<NodeSessions, 'get'>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  /** Hex. */
  readonly sha256: (text: string) => string;
}

/** Sends the nodes whose streams are at this server their new peers, when a node joins or leaves or has another key or endpoint. */
export class PeerPushes {
  readonly #parts: PeerPushesParts;
  readonly #loop: ReconcileLoop;
  /** What each node was given last, in whatever way. */
  readonly #given = new Map<Nid, string>();
  #changed = new Set<Aid>();
  #unsubscribe: () => void = () => {};

  constructor(parts: PeerPushesParts) {
    const { clock, random, logger } = parts;
    this.#parts = parts;
    const run = (signal: AbortSignal) => this.#push(signal);
    this.#loop = new ReconcileLoop({ name: 'overlay', run, clock, random, logger, leastGapMs: 0, greatestGapMs: QUIET_MS });
  }

  start(): void {
    this.#unsubscribe = this.#parts.overlay.onChange((aid) => {
      this.#changed.add(aid);
      this.#loop.markDirty();
    });
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#loop.stop();
  }

  /** A node has just been answered with this set: it is not sent the same. */
  given(nid: Nid, set: OverlaySet): void {
    this.#given.set(nid, this.#digest(peersPayloadOf(set)));
  }

  async #push(signal: AbortSignal): Promise<void> {
    const { overlay, clock } = this.#parts;
    if (this.#changed.size === 0) return;
    await clock.sleep(GATHER_MS, { signal });
    const accounts = this.#changed;
    this.#changed = new Set();
    for (const aid of accounts) for (const nid of overlay.nodes(aid)) await this.#pushTo(nid, signal);
  }

  async #pushTo(nid: Nid, signal: AbortSignal): Promise<void> {
    const { overlay, instructions, sessions, logger } = this.#parts;
    if (sessions.get(nid) === undefined) return;
    const json = peersPayloadOf(overlay.setOf(nid));
    const digest = this.#digest(json);
    if (this.#given.get(nid) === digest) return;
    const call = { nid, type: 'SET_VPN_PEERS', json, tag: undefined, expiresMs: EXPIRES_MS, by: 'overlay' };
    try {
      await instructions.send(call, { signal });
      this.#given.set(nid, digest);
    } catch (error) {
      signal.throwIfAborted();
      // Its next sync brings it.
      logger.warn('a node could not be sent its new peers', { nid, error });
    }
  }

  #digest(text: string): string {
    return this.#parts.sha256(text);
  }
}

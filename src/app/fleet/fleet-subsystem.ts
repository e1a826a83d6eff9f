import type { RevocationFeed } from '../../ports/driving/revocations.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import { concerns, type Revocation } from '../../domain/certificate/revocation.js';
import type { Subsystem } from '../agent/subsystem.js';
import type { NodeSessions } from '../link/node-sessions.js';

/** Something that works from its start to its stop, which is safe before the start and twice. */
export interface FleetPart {
  start(): void;
  stop(): Promise<void>;
}

export interface FleetSubsystemParts {
  /** In the order of their start. */
  readonly parts: readonly FleetPart[];
  readonly sessions: Pick<NodeSessions, 'endWhere'>;
  readonly revocations: RevocationFeed;
}

/** The control plane's side of all nodes: who is there, what is to be done and what came of it. Revoked nodes lose their streams. */
export class FleetSubsystem implements Subsystem {
  readonly name = 'fleet';
  readonly #parts: FleetSubsystemParts;
  #unsubscribe: () => void = () => {};

  constructor(parts: FleetSubsystemParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { parts, revocations } = this.#parts;
    this.#unsubscribe = revocations.onRevoked((revocation) => this.#end(revocation));
    for (const part of parts) part.start();
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    this.#unsubscribe();
    for (const part of this.#parts.parts.toReversed()) await part.stop();
  }

  #end(revocation: Revocation): void {
    const isMeant = (node: PeerNode) => concerns(revocation, node);
    this.#parts.sessions.endWhere(isMeant, { status: 'revoked', message: `revoked: ${revocation.reason}` });
  }
}

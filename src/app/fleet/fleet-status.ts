import type { CertificateStatus, FleetStatus, StoreStatus } from '../../ports/driving/operations.js';
import type { EnrolmentView } from '../certificate/enrolment-view.js';
import type { InstructionBook } from '../dispatch/instruction-book.js';
import type { NodeSessions } from '../link/node-sessions.js';
import type { PresenceBoard } from '../link/presence-board.js';

export interface FleetStatusParts {
  /** Id of this replica. */
  readonly server: string;
  readonly registered: Pick<EnrolmentView, 'nodeIds'>;
  readonly presence: Pick<PresenceBoard, 'stateOf' | 'servers'>;
  readonly book: Pick<InstructionBook, 'openCount'>;
  readonly sessions: Pick<NodeSessions, 'size'>;
  readonly followers: number;
  readonly stores: readonly StoreStatus[];
  readonly certificates: readonly CertificateStatus[];
}

/** How many nodes there are and how they are, from what this replica holds in memory. */
export function fleetStatus({ server, registered, presence, book, sessions, ...others }: FleetStatusParts): FleetStatus {
  const counts = { online: 0, offline: 0, unknown: 0 };
  const ids = registered.nodeIds();
  for (const nid of ids) counts[presence.stateOf(nid)]++;
  const nodes = { nodes: ids.length, ...counts, links: sessions.size };
  return { server, ...nodes, unanswered: book.openCount(), replicas: presence.servers(), ...others };
}

import type { FleetStatus } from '../../ports/driving/operations.js';
import type { EnrolmentView } from '../certificate/enrolment-view.js';
import type { InstructionBook } from '../dispatch/instruction-book.js';
import type { PresenceBoard } from '../link/presence-board.js';

export interface FleetStatusParts {
  /** Id of this replica. */
  readonly server: string;
  readonly registered: Pick<EnrolmentView, 'nodeIds'>;
  readonly presence: Pick<PresenceBoard, 'stateOf'>;
  readonly book: Pick<InstructionBook, 'openCount'>;
}

/** How many nodes there are and how they are, from what this replica holds in memory. */
export function fleetStatus({ server, registered, presence, book }: FleetStatusParts): FleetStatus {
  const counts = { online: 0, offline: 0, unknown: 0 };
  const ids = registered.nodeIds();
  for (const nid of ids) counts[presence.stateOf(nid)]++;
  return { server, nodes: ids.length, ...counts, unanswered: book.openCount() };
}

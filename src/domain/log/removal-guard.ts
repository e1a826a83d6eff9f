import type { Cursor, Entry, LogKey, SnapshotItem } from './model.js';

/** A snapshot that would remove so many services, and more than half of them, is held back (engine.md J4). */
export const MOST_REMOVED = 10;

const SERVICE = 'service/';

/** What a node serves by now. */
export interface ServedView {
  /** Undefined when it never had a snapshot. */
  readonly cursor: Cursor | undefined;
  readonly services: Iterable<LogKey>;
}

export interface CandidateSnapshot {
  readonly cursor: Cursor;
  readonly items: readonly SnapshotItem[];
  /** Whether the server has said that the view's cursor is of another log or another past. */
  readonly changed: boolean;
}

/**
 * Why a snapshot may not replace the view before an operator has confirmed it; undefined if it may. A log that was restored, replaced or
 * emptied by mistake must not take every service off every node.
 */
export function holdBack({ cursor, services }: ServedView, snapshot: CandidateSnapshot): string | undefined {
  const served = new Set(services);
  if (cursor === undefined || served.size === 0) return undefined;
  const kept = snapshot.items.reduce((count, { key }) => count + (served.has(key) ? 1 : 0), 0);
  const removed = served.size - kept;
  const effect = `it would remove ${removed} of ${served.size} services`;
  if (cursor.logId !== snapshot.cursor.logId) return `the control plane has another log; ${effect}`;
  if (snapshot.changed || snapshot.cursor.revision < cursor.revision)
    return `the log has another past than this node knows; ${effect}`;
  return removed >= MOST_REMOVED && removed * 2 > served.size ? effect : undefined;
}

/** Whether an entry shows that the log which it is of is meant: somebody manages services by it. What nodes write themselves does not. */
export function confirmsLog({ changes }: Entry): boolean {
  return changes.some(({ key }) => key.startsWith(SERVICE));
}

export function isServiceKey(key: LogKey): boolean {
  return key.startsWith(SERVICE);
}

import type { KeptRow } from './model.js';

/** Finished rows with their results: a day, so many a node, and so many in all; the oldest go first. */
export const KEPT_MS = 24 * 3_600_000;
export const KEPT_PER_NODE = 200;
export const KEPT_IN_ALL = 20_000;

/** Which finished rows are to be removed. */
export function overdue(finished: readonly KeptRow[], now: number): readonly KeptRow[] {
  const perNode = new Map<string, number>();
  const newestFirst = [...finished].sort((a, b) => finishedAt(b) - finishedAt(a));
  return newestFirst.filter((kept, index) => {
    const count = (perNode.get(kept.row.nid) ?? 0) + 1;
    perNode.set(kept.row.nid, count);
    return index >= KEPT_IN_ALL || count > KEPT_PER_NODE || now - finishedAt(kept) >= KEPT_MS;
  });
}

function finishedAt({ row }: KeptRow): number {
  return row.finishedAt ?? row.issuedAt;
}

import { createHash } from 'node:crypto';
import {
  type Change,
  type Cursor,
  type Entry,
  type LogFrame,
  logKey,
  type Precondition,
  type Proposal,
  type ProposeResult,
  revision,
  ZERO_DIGEST,
  ZERO_REVISION,
} from '../../src/domain/log/model.js';
import type { OrderedLog } from '../../src/ports/log/ordered-log.js';

export const options = { signal: new AbortController().signal };

export const set = (key: string, value: string): Change => ({ key: logKey(key), value });
export const remove = (key: string): Change => ({ key: logKey(key), value: null });
export const at = (key: string, number: bigint): Precondition => ({ key: logKey(key), revision: revision(number) });
export const proposal = (...changes: Change[]): Proposal => ({ changes, preconditions: [] });
export const committed = (number: bigint): ProposeResult => ({ outcome: 'committed', revision: revision(number) });

export function propose(log: OrderedLog, ...changes: Change[]): Promise<ProposeResult> {
  return log.propose(proposal(...changes), options);
}

export function head(log: OrderedLog): Promise<Cursor> {
  return log.head(options);
}

export async function values(log: OrderedLog, prefix = ''): Promise<readonly string[]> {
  const { items } = await log.snapshot(prefix, options);
  return items.map((item) => `${item.key}=${item.value}@${item.revision}`);
}

/** The cursor at a past revision, as a watcher from the start would have it. */
export async function cursorAt(log: OrderedLog, number: bigint): Promise<Cursor> {
  const { logId } = await head(log);
  const start = { logId, revision: ZERO_REVISION, digest: ZERO_DIGEST };
  const last = (await entries(log, start, Number(number))).at(-1);
  return last === undefined ? start : { logId, revision: last.revision, digest: last.digest };
}

export async function nextEntry(watcher: AsyncIterator<LogFrame>): Promise<Entry> {
  for (;;) {
    const next = await watcher.next();
    if (next.done === true) throw new Error('the watch has ended');
    if (next.value.kind === 'entry') return next.value.entry;
  }
}

export async function entries(log: OrderedLog, from: Cursor, count: number): Promise<readonly Entry[]> {
  const watcher = log.watch(from, options)[Symbol.asyncIterator]();
  const found: Entry[] = [];
  while (found.length < count) found.push(await nextEntry(watcher));
  await watcher.return?.();
  return found;
}

export async function take(frames: AsyncIterable<LogFrame>, count: number): Promise<readonly LogFrame[]> {
  const found: LogFrame[] = [];
  for await (const frame of frames) {
    found.push(frame);
    if (found.length === count) break;
  }
  return found;
}

/** Written a second time on purpose: every backend and every version must agree on these bytes. */
export function canonicalDigest(entry: Entry): string {
  const pairs = entry.changes.map(({ key, value }) => [key, value]);
  const parts = [
    entry.version,
    String(entry.revision),
    entry.time,
    entry.previousDigest,
    pairs.length,
    entry.requestId ?? null,
    pairs,
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

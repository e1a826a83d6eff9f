import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LogEvent, SqliteOrderedLog } from '../../../../src/adapters/log/sqlite-ordered-log.js';
import { type Cursor, type Entry, logKey, type Proposal, ZERO_DIGEST, ZERO_REVISION } from '../../../../src/domain/log/model.js';
import type { Clock } from '../../../../src/ports/clock.js';
import type { OrderedLog } from '../../../../src/ports/log/ordered-log.js';
import { FakeClock } from '../../../fakes/fake-clock.js';

export const options = { signal: new AbortController().signal };

/** A folder that is removed when `use` is done. */
export async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-log-'));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export interface OpenLog {
  readonly log: SqliteOrderedLog;
  readonly clock: Clock;
  readonly events: readonly LogEvent[];
}

/** An open log, closed when `use` is done. */
export async function withLog<T>(file: string, use: (open: OpenLog) => Promise<T>, clock: Clock = new FakeClock()): Promise<T> {
  const events: LogEvent[] = [];
  const log = new SqliteOrderedLog({ file, clock, report: (event) => events.push(event) });
  try {
    await log.open(options);
    return await use({ log, clock, events });
  } finally {
    await log.close();
  }
}

export function setting(key: string, value: string | null): Proposal {
  return { changes: [{ key: logKey(key), value }], preconditions: [] };
}

/** `count` proposals, one after the other, over a few keys, with a deletion now and then. */
export async function fill(log: OrderedLog, count: number, size = 40): Promise<void> {
  for (let i = 0; i < count; i += 1)
    await log.propose(
      i % 11 === 10 ? setting(`k/${(i - 1) % 17}`, null) : setting(`k/${i % 17}`, JSON.stringify(`${i} ${'v'.repeat(size)}`)),
      options,
    );
}

export async function start(log: OrderedLog): Promise<Cursor> {
  return { logId: (await log.head(options)).logId, revision: ZERO_REVISION, digest: ZERO_DIGEST };
}

export async function entriesFrom(log: OrderedLog, from: Cursor): Promise<readonly Entry[]> {
  const { revision: head } = await log.head(options);
  const found: Entry[] = [];
  if (from.revision === head) return found;
  for await (const frame of log.watch(from, options)) {
    if (frame.kind === 'entry') found.push(frame.entry);
    if (frame.kind === 'entry' && frame.entry.revision === head) break;
  }
  return found;
}

/** Everything that a log says: for comparing two of them. */
export async function content(log: OrderedLog): Promise<unknown> {
  return { snapshot: await log.snapshot('', options), entries: await entriesFrom(log, await start(log)) };
}

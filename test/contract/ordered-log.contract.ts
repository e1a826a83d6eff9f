import { afterEach, describe, expect, test } from 'vitest';
import { type Cursor, logId, revision, ZERO_DIGEST, ZERO_REVISION } from '../../src/domain/log/model.js';
import type { OrderedLog } from '../../src/ports/log/ordered-log.js';
import type { FakeClock } from '../fakes/fake-clock.js';
import {
  at,
  canonicalDigest,
  committed,
  cursorAt,
  entries,
  head,
  nextEntry,
  options,
  proposal,
  propose,
  remove,
  set,
  take,
  values,
} from './ordered-log.support.js';

/** An empty log whose every wait is on `clock`. */
export interface LogUnderTest {
  readonly log: OrderedLog;
  readonly clock: FakeClock;
  /** What the other servers' clocks say. */
  readonly others: { newest: number | undefined };
  /** Closes the log and takes away what it stands on. */
  close(): Promise<void>;
}

const MIB = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;
const other = logId('another-log');

/**
 * Every OrderedLog must pass. One whose frames are under way for a time (`buffered`) knows nothing of how its reader keeps up with what it
 * has been sent; how the other end does is tested there.
 */
export function orderedLogContract(name: string, make: () => Promise<LogUnderTest>, { buffered = false } = {}): void {
  const made: LogUnderTest[] = [];
  afterEach(async () => {
    for (const each of made.splice(0)) await each.close();
  });
  const fresh = async () => {
    const each = await make();
    made.push(each);
    return each;
  };

  describe(`OrderedLog: ${name}`, () => {
    proposing(fresh);
    judging(fresh);
    timing(fresh);
    reading(fresh);
    watching(fresh);
    refusing(fresh);
    if (!buffered) pacing(fresh);
  });
}

type Fresh = () => Promise<LogUnderTest>;

function proposing(fresh: Fresh): void {
  test('revisions are 1, 2, 3', async () => {
    const { log } = await fresh();
    expect(await head(log)).toMatchObject({ revision: ZERO_REVISION, digest: ZERO_DIGEST });
    for (const n of [1n, 2n, 3n]) expect(await propose(log, set('a/b', String(n)))).toEqual(committed(n));
    expect(await head(log)).toMatchObject({ revision: 3n });
  });

  test('an entry holds all changes of its proposal, in order, and deletes', async () => {
    const { log } = await fresh();
    const from = await head(log);
    await propose(log, set('a/1', '1'), set('a/2', '2'));
    await propose(log, remove('a/1'), set('a/3', '3'));
    const [first, second] = await entries(log, from, 2);
    expect(first?.changes).toEqual([set('a/1', '1'), set('a/2', '2')]);
    expect(second?.changes).toEqual([remove('a/1'), set('a/3', '3')]);
    expect(await values(log)).toEqual(['a/2=2@1', 'a/3=3@2']);
  });

  test('what changes nothing is dropped; if nothing is left, nothing is appended and the head answered', async () => {
    const { log } = await fresh();
    await propose(log, set('a/1', '1'), set('a/2', '2'));
    await propose(log, set('b/1', '1'));
    expect(await propose(log, set('a/1', '1'), remove('a/9'))).toEqual({ outcome: 'unchanged', revision: 2n });
    expect(await propose(log, set('a/1', '1'), set('a/2', 'new'), remove('a/9'))).toEqual(committed(3n));
    const [entry] = await entries(log, await cursorAt(log, 2n), 1);
    expect(entry?.changes).toEqual([set('a/2', 'new')]);
  });

  test('200 proposals at once get unique revisions, in the order in which they were made', async () => {
    const { log } = await fresh();
    const results = await Promise.all(Array.from({ length: 200 }, (_, i) => propose(log, set(`k/${i}`, String(i)))));
    expect(results).toEqual(Array.from({ length: 200 }, (_, i) => committed(BigInt(i + 1))));
  });

  test('a batch is judged one by one: of 50 who create the same key one wins, the others see its revision', async () => {
    const { log } = await fresh();
    const attempts = Array.from({ length: 50 }, (_, i) =>
      log.propose({ changes: [set('lock', String(i))], preconditions: [at('lock', 0n)] }, options),
    );
    const results = await Promise.all(attempts);
    expect(results[0]).toEqual(committed(1n));
    expect(new Set(results.slice(1).map(({ outcome }) => outcome))).toEqual(new Set(['conflict']));
    expect(results[7]).toEqual({ outcome: 'conflict', key: 'lock', expected: 0n, actual: 1n });
  });

  test('a value of 1 MiB and text beyond ASCII come back as they were', async () => {
    const { log } = await fresh();
    const from = await head(log);
    const value = JSON.stringify({ text: 'äß€😀"\\\u0001', more: 'x'.repeat(MIB) });
    await propose(log, set('big', value));
    expect((await entries(log, from, 1))[0]?.changes).toEqual([set('big', value)]);
    expect((await log.snapshot('', options)).items[0]?.value).toBe(value);
  });

  test('12,000 changes are one entry, whole for watchers', async () => {
    const { log } = await fresh();
    const from = await head(log);
    const live = entries(log, from, 1);
    const changes = Array.from({ length: 12_000 }, (_, i) => set(`k/${i}`, String(i)));
    expect(await propose(log, ...changes)).toEqual(committed(1n));
    expect((await live)[0]?.changes).toEqual(changes);
    expect((await entries(log, from, 1))[0]?.changes).toHaveLength(12_000);
    expect((await log.snapshot('', options)).items).toHaveLength(12_000);
  });
}

function judging(fresh: Fresh): void {
  test('preconditions: absent, present at a revision, and gone again', async () => {
    const { log } = await fresh();
    const create = { changes: [set('a', '1')], preconditions: [at('a', 0n)] };
    expect(await log.propose(create, options)).toEqual(committed(1n));
    expect(await log.propose(create, options)).toEqual({ outcome: 'conflict', key: 'a', expected: 0n, actual: 1n });
    const change = { changes: [set('a', '2')], preconditions: [at('a', 1n)] };
    expect(await log.propose(change, options)).toEqual(committed(2n));
    expect(await log.propose(change, options)).toEqual({ outcome: 'conflict', key: 'a', expected: 1n, actual: 2n });
    expect(await log.propose({ changes: [remove('a')], preconditions: [at('a', 2n)] }, options)).toEqual(committed(3n));
    expect(await log.propose(create, options)).toEqual(committed(4n));
  });

  test('a precondition may be on a key that is not changed; the first that fails is named; a conflict consumes nothing', async () => {
    const { log } = await fresh();
    await propose(log, set('a', '1'));
    const refused = { changes: [set('c', '1')], preconditions: [at('a', 1n), at('b', 5n), at('a', 9n)] };
    expect(await log.propose(refused, options)).toEqual({ outcome: 'conflict', key: 'b', expected: 5n, actual: 0n });
    expect(await propose(log, set('d', '1'))).toEqual(committed(2n));
    expect(await values(log)).toEqual(['a=1@1', 'd=1@2']);
  });

  test('a request that is repeated gets its first answer and does nothing, at once as later', async () => {
    const { log } = await fresh();
    const request = { changes: [set('a', '1')], preconditions: [at('a', 0n)], requestId: 'request-1' };
    expect(await Promise.all([log.propose(request, options), log.propose(request, options)])).toEqual([
      committed(1n),
      committed(1n),
    ]);
    await propose(log, set('a', '2'));
    expect(await log.propose(request, options)).toEqual(committed(1n));
    expect(await log.propose({ ...request, requestId: 'request-2' }, options)).toMatchObject({ outcome: 'conflict' });
    expect(await values(log)).toEqual(['a=2@2']);
  });

  test('more than 200,000 changes are refused and leave no trace', async () => {
    const { log } = await fresh();
    const changes = Array.from({ length: 200_001 }, (_, i) => set(`k/${i}`, '1'));
    await expect(log.propose({ changes, preconditions: [] }, options)).rejects.toMatchObject({ code: 'log.too_large' });
    expect(await propose(log, set('a', '1'))).toEqual(committed(1n));
  });

  test('a key twice in one proposal is refused and leaves no trace', async () => {
    const { log } = await fresh();
    await expect(propose(log, set('a', '1'), set('a', '2'))).rejects.toThrow('a key twice');
    expect(await head(log)).toMatchObject({ revision: 0n });
  });

  test('an aborted proposal rejects, and the request id tells whether it was written', async () => {
    const { log } = await fresh();
    const abort = new AbortController();
    const request = { ...proposal(set('a', '1')), requestId: 'aborted' };
    const attempt = log.propose(request, { signal: abort.signal });
    abort.abort(new Error('enough'));
    await attempt.catch((error: unknown) => expect(error).toMatchObject({ message: 'enough' }));
    expect(await log.propose(request, options)).toEqual(committed(1n));
    await expect(log.propose(request, { signal: AbortSignal.abort() })).rejects.toThrow();
  });

  test('log time never goes back', async () => {
    const { log, clock } = await fresh();
    const from = await head(log);
    const start = clock.now();
    await propose(log, set('a', '1'));
    clock.setWall(start - 3_600_000);
    await propose(log, set('a', '2'));
    clock.setWall(start + 5);
    await propose(log, set('a', '3'));
    expect((await entries(log, from, 3)).map(({ time }) => time - start)).toEqual([0, 0, 5]);
    expect((await log.snapshot('', options)).time - start).toBe(5);
  });
}

function timing(fresh: Fresh): void {
  test('E19: a clock that is ahead of the log and of the other servers is refused, and taken when it is set or they say so too', async () => {
    const { log, clock, others } = await fresh();
    await propose(log, set('a', '1'));
    const right = clock.now();
    others.newest = right;
    clock.setWall(right + 60_001);
    await expect(propose(log, set('a', '2'))).rejects.toMatchObject({ code: 'log.clock_ahead' });
    expect(await propose(log, set('a', '1'))).toMatchObject({ outcome: 'unchanged' });
    expect(await values(log)).toEqual(['a=1@1']);
    clock.setWall(right + 60_000);
    expect(await propose(log, set('a', '3'))).toEqual(committed(2n));
    // Everybody was idle for 2 h.
    clock.setWall(right + 2 * 3_600_000);
    others.newest = right + 2 * 3_600_000 - 5_000;
    expect(await propose(log, set('a', '4'))).toEqual(committed(3n));
    clock.setWall(right + DAY_MS);
    others.newest = undefined;
    expect(await propose(log, set('a', '5'))).toEqual(committed(4n));
  });
}

function reading(fresh: Fresh): void {
  test('a snapshot has the prefix only, sorted, as of one revision', async () => {
    const { log } = await fresh();
    await propose(log, set('b/2', '1'), set('a/1', '1'), set('b/10', '1'), set('bb', '1'));
    await propose(log, set('b/1', '2'), remove('a/1'));
    expect(await values(log, 'b/')).toEqual(['b/1=2@2', 'b/10=1@1', 'b/2=1@1']);
    expect(await values(log, 'c')).toEqual([]);
    expect((await log.snapshot('b/', options)).cursor).toEqual(await head(log));
  });

  test('snapshots under concurrent proposals are whole: two keys of one proposal are never apart', async () => {
    const { log } = await fresh();
    const writing = Promise.all(Array.from({ length: 50 }, (_, i) => propose(log, set('x', String(i)), set('y', String(i)))));
    for (let i = 0; i < 50; i += 1) {
      const { items, cursor } = await log.snapshot('', options);
      expect(items[0]?.value).toBe(items[1]?.value);
      expect(items[0]?.revision ?? 0n).toBe(cursor.revision);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await writing;
  });

  test('head and snapshot hold every proposal that had resolved', async () => {
    const { log } = await fresh();
    for (let i = 1; i <= 20; i += 1) {
      await propose(log, set('a', String(i)));
      expect(await head(log)).toMatchObject({ revision: BigInt(i) });
      expect(await values(log)).toEqual([`a=${i}@${i}`]);
    }
  });

  test('entries chain: each names the digest of the one before it, the head that of the last', async () => {
    const { log } = await fresh();
    const from = await head(log);
    for (let i = 0; i < 5; i += 1) await propose(log, set('a', `"${i}"`));
    const chain = await entries(log, from, 5);
    expect(chain.map(({ previousDigest }) => previousDigest)).toEqual([
      ZERO_DIGEST,
      ...chain.slice(0, 4).map(({ digest }) => digest),
    ]);
    expect(chain.map(canonicalDigest)).toEqual(chain.map(({ digest }) => digest));
    expect((await head(log)).digest).toBe(chain.at(-1)?.digest);
  });
}

function watching(fresh: Fresh): void {
  test('replay goes over to live without a gap, while others propose', async () => {
    const { log } = await fresh();
    const from = await head(log);
    for (let i = 0; i < 30; i += 1) await propose(log, set('a', `old ${i}`));
    const starts = [from, from, await cursorAt(log, 17n)];
    const watched = starts.map((start) => entries(log, start, 130 - Number(start.revision)));
    await Promise.all(Array.from({ length: 100 }, (_, i) => propose(log, set('a', `new ${i}`))));
    for (const [i, found] of (await Promise.all(watched)).entries()) {
      const first = Number(starts[i]?.revision) + 1;
      expect(found.map((entry) => Number(entry.revision))).toEqual(Array.from({ length: 131 - first }, (_, n) => first + n));
    }
  });

  test('500 watchers each get every change, also those that are made while others are still being told', async () => {
    const { log } = await fresh();
    const from = await head(log);
    const all = Array.from({ length: 500 }, () => entries(log, from, 20));
    for (let round = 0; round < 20; round += 1) await propose(log, set('a/k', String(round)));
    const last = (await Promise.all(all)).map((each) => each.at(-1)?.revision);
    expect(new Set(last)).toEqual(new Set([20n]));
  });

  test('frames name what came before them', async () => {
    const { log } = await fresh();
    const from = await head(log);
    for (let i = 0; i < 3; i += 1) await propose(log, set('a', String(i)));
    const frames = await take(log.watch(from, options), 3);
    expect(frames.map(({ previous }) => previous)).toEqual([0n, 1n, 2n]);
  });

  test('a watcher that reads slowly holds up neither proposers nor another watcher', async () => {
    const { log } = await fresh();
    const from = await head(log);
    const slow = log.watch(from, options)[Symbol.asyncIterator]();
    await propose(log, set('a', 'first'));
    expect(await nextEntry(slow)).toMatchObject({ revision: 1n });
    for (let i = 0; i < 100; i += 1) await propose(log, set('a', String(i)));
    expect(await entries(log, from, 101)).toHaveLength(101);
    for (let n = 2n; n <= 101n; n += 1n) expect((await nextEntry(slow)).revision).toBe(n);
    await slow.return?.();
  });

  test('an idle watcher gets a bookmark at the latest every 5 s', async () => {
    const { log, clock } = await fresh();
    await propose(log, set('a', '1'));
    const watcher = log.watch(await head(log), options)[Symbol.asyncIterator]();
    for (let i = 0; i < 3; i += 1) {
      const frame = watcher.next();
      await clock.advance(5_000);
      expect((await frame).value).toMatchObject({ kind: 'bookmark', previous: 1n, revision: 1n, head: 1n });
    }
    await watcher.return?.();
  });

  test('abort ends a watch without an error: while it waits, between frames, and before the start', async () => {
    const { log } = await fresh();
    const from = await head(log);
    await propose(log, set('a', '1'));
    for (const frames of [1, 0]) {
      const abort = new AbortController();
      const watcher = log.watch(from, { signal: abort.signal })[Symbol.asyncIterator]();
      for (let i = 0; i < frames; i += 1) await watcher.next();
      const pending = frames === 1 ? watcher.next() : undefined;
      await new Promise((resolve) => setImmediate(resolve));
      abort.abort();
      expect(await (pending ?? watcher.next())).toMatchObject({ done: true });
    }
  });

  test('close ends watchers and later calls with log.closed', async () => {
    const { log, close } = await fresh();
    const from = await head(log);
    const waiting = log.watch(from, options)[Symbol.asyncIterator]().next();
    waiting.catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    await close();
    const closed = { code: 'log.closed' };
    await expect(waiting).rejects.toMatchObject(closed);
    await expect(propose(log, set('a', '1'))).rejects.toMatchObject(closed);
    await expect(log.snapshot('', options)).rejects.toMatchObject(closed);
    await expect(head(log)).rejects.toMatchObject(closed);
    await expect(entries(log, from, 1)).rejects.toMatchObject(closed);
  });
}

function refusing(fresh: Fresh): void {
  test.each<{ name: string; bend: (cursor: Cursor) => Cursor }>([
    { name: 'another log id', bend: (cursor) => ({ ...cursor, logId: other }) },
    { name: 'a revision ahead of the head', bend: (cursor) => ({ ...cursor, revision: revision(9n) }) },
    { name: 'another digest at the head', bend: (cursor) => ({ ...cursor, digest: ZERO_DIGEST }) },
    { name: 'another digest in the past', bend: (cursor) => ({ ...cursor, revision: revision(1n) }) },
    { name: 'another digest before the first', bend: (cursor) => ({ ...cursor, revision: ZERO_REVISION }) },
  ])('a cursor with $name is refused with log.changed', async ({ bend }) => {
    const { log } = await fresh();
    for (let i = 0; i < 3; i += 1) await propose(log, set('a', String(i)));
    await expect(entries(log, bend(await head(log)), 1)).rejects.toMatchObject({ code: 'log.changed' });
  });

  test('entries older than 24 h go, with their request ids; from before them is log.compacted; the last one stays', async () => {
    const { log, clock } = await fresh();
    const from = await head(log);
    const request = { ...proposal(set('a', '1')), requestId: 'old' };
    await log.propose(request, options);
    await propose(log, set('b', '1'));
    const second = await cursorAt(log, 2n);
    await clock.advance(DAY_MS + 1);
    await propose(log, set('c', '1'));
    await expect(entries(log, from, 1)).rejects.toMatchObject({ code: 'log.compacted' });
    expect(await entries(log, second, 1)).toMatchObject([{ revision: 3n }]);
    expect(await log.propose(request, options)).toEqual({ outcome: 'unchanged', revision: 3n });
    expect(await values(log)).toEqual(['a=1@1', 'b=1@2', 'c=1@3']);
    await clock.advance(2 * DAY_MS);
    expect(await entries(log, second, 1)).toMatchObject([{ revision: 3n }]);
  });
}

function pacing(fresh: Fresh): void {
  test('a watcher that holds back more than 16 MiB for 30 s is told log.slow', async () => {
    const { log, clock } = await fresh();
    const from = await head(log);
    const watcher = log.watch(from, options)[Symbol.asyncIterator]();
    await propose(log, set('a', 'first'));
    await nextEntry(watcher);
    for (let i = 0; i < 17; i += 1) await propose(log, set('a', `${i}${'x'.repeat(MIB)}`));
    await clock.advance(29_000);
    expect(await nextEntry(watcher)).toMatchObject({ revision: 2n });
    for (let i = 0; i < 2; i += 1) await propose(log, set('a', `more ${i}${'x'.repeat(MIB)}`));
    await clock.advance(1_001);
    await expect(nextEntry(watcher)).rejects.toMatchObject({ code: 'log.slow' });
    expect(await entries(log, from, 20)).toHaveLength(20);
  });

  test('a watcher whose place was dropped is told log.slow', async () => {
    const { log, clock } = await fresh();
    const watcher = log.watch(await head(log), options)[Symbol.asyncIterator]();
    for (let i = 0; i < 3; i += 1) await propose(log, set('a', String(i)));
    await nextEntry(watcher);
    await clock.advance(DAY_MS + 1);
    await propose(log, set('a', 'new'));
    await expect(nextEntry(watcher)).rejects.toMatchObject({ code: 'log.slow' });
  });
}

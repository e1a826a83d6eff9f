import { mkdirSync, readdirSync, rmdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COPY_MS, FIRST_COPY_MS } from '../../../src/adapters/log/log-copies.js';
import { listCopies } from '../../../src/adapters/log/sqlite-log-copies.js';
import { restoreLog } from '../../../src/adapters/log/sqlite-log-restore.js';
import type { LogEvent } from '../../../src/adapters/log/sqlite-ordered-log.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { content, entriesFrom, fill, inFolder, options, setting, start, withLog } from './support/test-log.js';

const NOON = Date.UTC(2026, 0, 31, 12);

/** Lets `ms` pass and waits until the copy that is then due is reported. */
async function copied(clock: FakeClock, events: readonly LogEvent[], ms: number): Promise<LogEvent | undefined> {
  const before = events.length;
  await clock.advance(ms);
  await expect.poll(() => events.length).toBeGreaterThan(before);
  return events.at(-1);
}

/** A log with hourly copies at revisions 10, 20, 30, 40, then 5 more entries. */
async function withCopies(file: string): Promise<unknown> {
  const clock = new FakeClock(NOON);
  return withLog(
    file,
    async ({ log, events }) => {
      for (let i = 0; i < 4; i += 1) {
        await fill(log, 10, 40 + i);
        await copied(clock, events, i === 0 ? FIRST_COPY_MS : COPY_MS);
      }
      const atCopy = await content(log);
      await fill(log, 5, 50);
      return atCopy;
    },
    clock,
  );
}

describe('hourly copies', () => {
  test('the first one shortly after the open, then hourly, the newest 3 kept, 0600, each whole', () =>
    inFolder(async (folder) => {
      const file = join(folder, 'log.db');
      await withCopies(file);
      expect(listCopies(file)).toEqual(
        ['20260131T150010Z', '20260131T140010Z', '20260131T130010Z'].map((time, i) => ({
          file: `${file}.copy-${time}`,
          time: NOON + 10_000 + (3 - i) * COPY_MS,
          head: expect.objectContaining({ revision: BigInt(40 - 10 * i) }),
          problem: undefined,
        })),
      );
      for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777, name).toBe(0o600);
    }));

  test('an empty log is not copied, nor one that has not changed, nor one with a copy of this hour', () =>
    inFolder(async (folder) => {
      const file = join(folder, 'log.db');
      const clock = new FakeClock(NOON);
      const silence = async ({ events }: { events: readonly LogEvent[] }, ms: number) => {
        await clock.advance(ms);
        await new Promise((resolve) => setTimeout(resolve, 50));
        expect(events).toEqual([]);
      };
      await withLog(file, async (open) => silence(open, 3 * COPY_MS), clock);
      await withLog(
        file,
        async ({ log, events }) => {
          await fill(log, 5);
          expect(await copied(clock, events, FIRST_COPY_MS)).toMatchObject({ event: 'copied', revision: 5n });
          await clock.advance(3 * COPY_MS);
          expect(events).toHaveLength(1);
        },
        clock,
      );
      clock.setWall(NOON + 3 * COPY_MS + FIRST_COPY_MS + 1_000);
      await withLog(file, async (open) => silence(open, 50 * 60_000), clock);
    }));

  test('a copy that fails is reported, and made when its place is free', () =>
    inFolder(async (folder) => {
      const clock = new FakeClock(NOON);
      const file = join(folder, 'log.db');
      await withLog(
        file,
        async ({ log, events }) => {
          await fill(log, 5);
          mkdirSync(`${file}.copying`);
          expect(await copied(clock, events, FIRST_COPY_MS)).toMatchObject({ event: 'copy_failed' });
          expect(await log.propose(setting('a', '1'), options)).toMatchObject({ outcome: 'committed' });
          rmdirSync(`${file}.copying`);
          expect(await copied(clock, events, 60_000)).toMatchObject({ event: 'copied', revision: 6n });
        },
        clock,
      );
    }));

  test('a clock that went back does not make a new copy the oldest one', () =>
    inFolder(async (folder) => {
      const file = join(folder, 'log.db');
      await withCopies(file);
      const clock = new FakeClock(NOON - 24 * COPY_MS);
      await withLog(
        file,
        async ({ log, events }) => {
          await fill(log, 3, 99);
          await copied(clock, events, COPY_MS);
        },
        clock,
      );
      expect(listCopies(file)[0]).toMatchObject({ time: NOON + 3 * COPY_MS + 11_000 });
    }));
});

describe('restore', () => {
  test('the newest intact copy takes the place of the damaged log, under a new log id', () =>
    inFolder(async (folder) => {
      const file = join(folder, 'log.db');
      const atCopy = await withCopies(file);
      writeFileSync(file, 'garbage');
      const intact = `${file}.copy-20260131T150010Z`;
      await expect(withLog(file, async () => {})).rejects.toMatchObject({
        code: 'log.corrupt',
        facts: { file, newestIntactCopy: intact },
      });

      const restored = restoreLog({ file, now: NOON });
      const aside = `${file}.corrupt-20260131T120000Z`;
      expect(restored).toMatchObject({ copy: intact, revision: 40n, acknowledged: 45n, aside: [aside, `${aside}.head`] });
      await withLog(file, async ({ log }) => {
        const { logId } = await log.head(options);
        expect(logId).toBe(restored.logId);
        const old = JSON.parse(JSON.stringify(atCopy, text));
        expect(JSON.parse(JSON.stringify(await content(log), text))).toEqual({
          ...old,
          snapshot: { ...old.snapshot, cursor: { ...old.snapshot.cursor, logId } },
        });
        expect(old.snapshot.cursor.logId).not.toBe(logId);
        expect(await log.propose(setting('a', '"new"'), options)).toEqual({ outcome: 'committed', revision: 41n });
        expect(await entriesFrom(log, await start(log))).toHaveLength(41);
      });
      expect(readdirSync(folder).filter((name) => name.includes('restoring'))).toEqual([]);
    }));

  test('a damaged copy is passed over, a named one taken, and without any the log stays as it is', () =>
    inFolder(async (folder) => {
      const file = join(folder, 'log.db');
      await withCopies(file);
      truncateSync(file, 5_000);
      const [newest, second, third] = listCopies(file).map((copy) => copy.file);
      truncateSync(newest ?? '', 9_000);
      expect(listCopies(file)[0]).toMatchObject({ head: undefined, problem: expect.stringContaining('log.corrupt') });
      expect(() => restoreLog({ file, now: NOON, copy: newest ?? '' })).toThrow('log.corrupt');
      expect(restoreLog({ file, now: NOON })).toMatchObject({ copy: second, revision: 30n });
      expect(restoreLog({ file, now: NOON, copy: third ?? '' })).toMatchObject({ copy: third, revision: 20n });
      for (const { file: copy } of listCopies(file)) truncateSync(copy, 100);
      truncateSync(file, 5_000);
      expect(() => restoreLog({ file, now: NOON })).toThrow('no copy of it is intact');
      expect(statSync(file).size).toBe(5_000);
      const asides = readdirSync(folder).filter((name) => /corrupt.*[^lm]$/.test(name));
      expect(asides.toSorted()).toEqual(
        ['', '-2', '.head'].map((suffix) => `${basename(file)}.corrupt-20260131T120000Z${suffix}`),
      );
    }));

  test('while a server runs it is refused', () =>
    inFolder(async (folder) => {
      const file = join(folder, 'log.db');
      await withCopies(file);
      await withLog(file, async ({ log }) => {
        expect(() => restoreLog({ file, now: NOON })).toThrow('agent.data_dir_locked');
        expect(await log.propose(setting('a', '1'), options)).toMatchObject({ outcome: 'committed' });
      });
    }));
});

const text = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);

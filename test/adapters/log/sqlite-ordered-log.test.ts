import { chmodSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { content, entriesFrom, fill, inFolder, options, setting, start, withLog } from './support/test-log.js';

test('after a reopening everything is as before, also what is older than the ring, and revisions go on', () =>
  inFolder(async (folder) => {
    const file = join(folder, 'log.db');
    const before = await withLog(file, async ({ log }) => {
      await fill(log, 30, 800_000);
      await fill(log, 300);
      return content(log);
    });
    await withLog(file, async ({ log }) => {
      expect(await content(log)).toEqual(before);
      const { revision } = await log.head(options);
      const live = entriesFrom(log, await start(log));
      await Promise.all(Array.from({ length: 50 }, (_, i) => log.propose(setting(`new/${i}`, '1'), options)));
      expect((await live).map((entry) => entry.revision).slice(0, 40)).toEqual(
        Array.from({ length: 40 }, (_, i) => BigInt(i + 1)),
      );
      expect(await log.head(options)).toMatchObject({ revision: revision + 50n });
    });
  }));

test('a request id is remembered as long as its entry, also by the next process', () =>
  inFolder(async (folder) => {
    const file = join(folder, 'log.db');
    const request = { ...setting('a', '1'), requestId: 'request "1"' };
    await withLog(file, async ({ log }) => log.propose(request, options));
    await withLog(file, async ({ log }) => {
      await log.propose(setting('a', '2'), options);
      expect(await log.propose(request, options)).toEqual({ outcome: 'committed', revision: 1n });
    });
  }));

test('what retention dropped is gone from the file too, and the next process knows it', () =>
  inFolder(async (folder) => {
    const file = join(folder, 'log.db');
    await withLog(file, async ({ log, clock }) => {
      const from = await start(log);
      await fill(log, 20);
      // A log time of two days later: everything before is older than 24 h.
      if ('setWall' in clock && typeof clock.setWall === 'function') clock.setWall(clock.now() + 2 * 24 * 3_600_000);
      await log.propose(setting('new', '1'), options);
      await expect(entriesFrom(log, from)).rejects.toMatchObject({ code: 'log.compacted', facts: { minimum: '21' } });
    });
    await withLog(file, async ({ log }) => {
      await expect(entriesFrom(log, await start(log))).rejects.toMatchObject({ code: 'log.compacted', facts: { minimum: '21' } });
      expect((await log.snapshot('', options)).cursor.revision).toBe(21n);
    });
  }));

test('every file is 0600, and made so again', () =>
  inFolder(async (folder) => {
    const file = join(folder, 'deep', 'data', 'log.db');
    const modes = () => new Set(readdirSync(join(file, '..')).map((name) => statSync(join(file, '..', name)).mode & 0o777));
    await withLog(file, async ({ log }) => {
      await fill(log, 3);
      expect(modes()).toEqual(new Set([0o600]));
    });
    for (const name of readdirSync(join(file, '..'))) chmodSync(join(file, '..', name), 0o644);
    await withLog(file, async () => expect(modes()).toEqual(new Set([0o600])));
    expect(statSync(join(file, '..')).mode & 0o777).toBe(0o700);
  }));

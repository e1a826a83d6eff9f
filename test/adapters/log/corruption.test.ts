import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sha256 } from '../../../src/adapters/log/sha256.js';
import { SqliteLogFile } from '../../../src/adapters/log/sqlite-log-file.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { revision } from '../../../src/domain/log/model.js';
import { content, entriesFrom, fill, inFolder, options, setting, start, withLog } from './support/test-log.js';

const bases = mkdtempSync(join(tmpdir(), 'holdfast-log-bases-'));
afterAll(() => rmSync(bases, { recursive: true, force: true }));
beforeAll(async () => {
  await makeClosed(join(bases, 'closed'));
  await makeCrashed(join(bases, 'crashed'));
});

const closed = (folder: string) => fromBase('closed', folder);
const crashed = (folder: string) => fromBase('crashed', folder);

async function fromBase(base: string, folder: string): Promise<string> {
  const file = join(folder, 'log.db');
  for (const suffix of ['', '-wal', '.head']) put(`${file}${suffix}`, bytesOf(join(bases, base, `log.db${suffix}`)));
  return file;
}

/** Files of a log as a crash leaves them: the newest commits in the WAL only. */
async function makeCrashed(folder: string): Promise<void> {
  const [live, file] = [join(folder, 'live.db'), join(folder, 'log.db')];
  await withLog(live, async ({ log }) => fill(log, 60));
  await withLog(live, async ({ log }) => {
    await fill(log, 61);
    for (const suffix of ['', '-wal', '.head']) copyFileSync(`${live}${suffix}`, `${file}${suffix}`);
  });
}

/** After a clean end: no WAL. */
async function makeClosed(folder: string): Promise<void> {
  await withLog(join(folder, 'log.db'), async ({ log }) => fill(log, 60));
}

function flip(file: string, offset: number, mask = 0x10): void {
  const bytes = readFileSync(file);
  bytes[offset] = (bytes[offset] ?? 0) ^ mask;
  writeFileSync(file, bytes);
}

function replace(file: string, make: (file: string) => void): void {
  rmSync(file);
  make(file);
}

function edit(file: string, sql: string): void {
  const db = new DatabaseSync(file);
  db.exec(sql);
  db.close();
}

function find(file: string, text: string): number {
  const offset = readFileSync(file).lastIndexOf(text);
  expect(offset).toBeGreaterThan(0);
  return offset;
}

const damages: readonly {
  name: string;
  make: (folder: string) => Promise<string>;
  damage: (file: string) => void;
  problem: RegExp;
}[] = [
  {
    name: 'garbage in its place',
    make: closed,
    damage: (file) => writeFileSync(file, 'garbage '.repeat(4096)),
    problem: /does not begin/,
  },
  { name: 'an empty file', make: closed, damage: (file) => truncateSync(file), problem: /is empty/ },
  { name: 'an empty file with a WAL', make: crashed, damage: (file) => truncateSync(file), problem: /is empty/ },
  { name: 'half of the file', make: closed, damage: (file) => truncateSync(file, statSync(file).size >> 1), problem: /./ },
  { name: 'a page too few', make: closed, damage: (file) => truncateSync(file, statSync(file).size - 4096), problem: /./ },
  { name: 'ten bytes of the file', make: closed, damage: (file) => truncateSync(file, 10), problem: /does not begin/ },
  { name: 'a missing WAL', make: crashed, damage: (file) => rmSync(`${file}-wal`), problem: /acknowledged/ },
  { name: 'a truncated WAL', make: crashed, damage: (file) => truncateSync(`${file}-wal`, 9_000), problem: /acknowledged/ },
  {
    name: 'a flipped byte in the WAL',
    make: crashed,
    damage: (file) => flip(`${file}-wal`, statSync(`${file}-wal`).size >> 1),
    problem: /acknowledged/,
  },
  { name: 'a directory in its place', make: closed, damage: (file) => replace(file, mkdirSync), problem: /EISDIR/ },
  { name: 'a link to itself', make: closed, damage: (file) => replace(file, () => symlinkSync(file, file)), problem: /ELOOP/ },
  { name: 'no file, but its witness', make: closed, damage: (file) => rmSync(file), problem: /is missing/ },
  {
    name: 'no file, but its WAL',
    make: crashed,
    damage: (file) => replace(file, () => rmSync(`${file}.head`)),
    problem: /is missing/,
  },
  {
    name: 'a flipped byte in an entry',
    make: closed,
    damage: (file) => flip(file, find(file, '[1,"31",') + 100, 1),
    problem: /entry 31 is damaged/,
  },
  {
    name: 'a flipped byte in a value',
    make: closed,
    damage: (file) => flip(file, find(file, '"53 vvv') + 20, 1),
    problem: /damaged/,
  },
  {
    name: 'a lost key',
    make: closed,
    damage: (file) => edit(file, "DELETE FROM kv WHERE key = 'k/3'"),
    problem: /keys instead of/,
  },
  {
    name: 'a swapped value',
    make: closed,
    damage: (file) => edit(file, "UPDATE kv SET value = '1' WHERE key = 'k/3'"),
    problem: /content of a key/,
  },
  {
    name: 'a lost entry',
    make: closed,
    damage: (file) => edit(file, 'DELETE FROM entries WHERE revision = 20'),
    problem: /entry 20 is missing/,
  },
  {
    name: 'a lost last entry',
    make: closed,
    damage: (file) => edit(file, 'DELETE FROM entries WHERE revision = 60'),
    problem: /entry 60 is missing/,
  },
  { name: 'no entries', make: closed, damage: (file) => edit(file, 'DELETE FROM entries'), problem: /missing/ },
  {
    name: 'a state row from elsewhere',
    make: closed,
    damage: (file) => edit(file, "UPDATE meta SET value = value || '0' WHERE name = 'state'"),
    problem: /state row is damaged/,
  },
  {
    name: 'another SQLite database',
    make: closed,
    damage: (file) => replace(file, () => edit(file, 'PRAGMA journal_mode = WAL; CREATE TABLE t (a)')),
    problem: /no such table/,
  },
  { name: 'no tables', make: closed, damage: (file) => edit(file, 'DROP TABLE kv'), problem: /no such table/ },
];

describe('a damaged log', () => {
  test.each(damages)('$name: log.corrupt, and nothing is made in its place', ({ make, damage, problem }) =>
    inFolder(async (folder) => {
      const file = await make(folder);
      damage(file);
      const damaged = { code: 'log.corrupt', message: expect.stringMatching(problem), facts: { file, newestIntactCopy: 'none' } };
      expect(failureOf(() => new SqliteLogFile(file).open())).toMatchObject(damaged);
      // Once more: the first refusal has made nothing that the second would open.
      expect(failureOf(() => new SqliteLogFile(file).open())).toMatchObject({ code: 'log.corrupt' });
    }),
  );

  test('the refusal comes out of the worker as it is', () =>
    inFolder(async (folder) => {
      const file = await crashed(folder);
      rmSync(`${file}-wal`);
      await expect(withLog(file, async () => {})).rejects.toMatchObject({
        code: 'log.corrupt',
        facts: { file, newestIntactCopy: 'none', problem: expect.stringContaining('acknowledged') },
      });
    }));

  test('an older file put in its place is told from the newest acknowledged revision', () =>
    inFolder(async (folder) => {
      const file = await closed(folder);
      copyFileSync(file, join(folder, 'old'));
      await withLog(file, async ({ log }) => fill(log, 5));
      renameSync(join(folder, 'old'), file);
      await expect(withLog(file, async () => {})).rejects.toThrow(/ends at revision 60, but 65 had been acknowledged/);
    }));

  test('a newer schema is refused by its own code', () =>
    inFolder(async (folder) => {
      const file = await closed(folder);
      edit(file, `UPDATE meta SET value = '2.0', digest = '${sha256('schema\n2.0')}' WHERE name = 'schema'`);
      await expect(withLog(file, async () => {})).rejects.toMatchObject({
        code: 'log.newer_schema',
        facts: { schema: '2.0', file },
      });
      edit(file, `UPDATE meta SET value = '1.7', digest = '${sha256('schema\n1.7')}' WHERE name = 'schema'`);
      expect(await withLog(file, async ({ log }) => (await log.head(options)).revision)).toBe(60n);
    }));

  test('a second process is refused, and the first goes on', () =>
    inFolder(async (folder) => {
      const file = await closed(folder);
      await withLog(file, async ({ log }) => {
        await expect(withLog(file, async () => {})).rejects.toMatchObject({ code: 'agent.data_dir_locked' });
        expect(await log.propose(setting('a', '1'), options)).toMatchObject({ outcome: 'committed' });
      });
    }));

  test('an entry that is damaged while the log is open is told to the watcher who needs it, and to nobody else', () =>
    inFolder(async (folder) => {
      const file = join(folder, 'log.db');
      await withLog(file, async ({ log }) => {
        // Only in an entry's text is the quote escaped twice.
        for (let i = 1; i <= 40; i += 1)
          await log.propose(setting(`k/${i}`, JSON.stringify(`${'v'.repeat(800_000)}"mark-${i}.`)), options);
      });
      const offset = find(file, '\\\\\\"mark-3.') + 4;
      await withLog(file, async ({ log }) => {
        overwrite(file, offset, 'X');
        const reading = entriesFrom(log, await start(log)).then(({ length }) => length);
        await expect(reading).rejects.toMatchObject({ code: 'log.corrupt', message: expect.stringContaining('entry 3') });
        expect(await log.propose(setting('a', '1'), options)).toMatchObject({ outcome: 'committed' });
      });
    }));
});

describe('a flipped byte at a random place', () => {
  const cases = [
    { part: 'log.db after a clean end', make: closed, suffix: '' },
    { part: 'log.db after a crash', make: crashed, suffix: '' },
    { part: 'the WAL after a crash', make: crashed, suffix: '-wal' },
    { part: 'the witness', make: closed, suffix: '.head' },
  ];
  test.each(cases)('in $part: exactly the right content, or log.corrupt', { timeout: 120_000 }, ({ make, suffix }) =>
    inFolder(async (folder) => {
      const file = await make(folder);
      const whole = new Map(['', '-wal', '.head'].map((end) => [end, bytesOf(`${file}${end}`)]));
      const expected = await withLog(file, async ({ log }) => content(log));
      const target = whole.get(suffix) ?? Buffer.alloc(0);
      for (let i = 0; i < 150; i += 1) {
        for (const [end, bytes] of whole) put(`${file}${end}`, bytes);
        const bytes = Buffer.from(target);
        const offset = Math.floor(Math.random() * bytes.length);
        const mask = 1 + Math.floor(Math.random() * 255);
        bytes[offset] = (bytes[offset] ?? 0) ^ mask;
        writeFileSync(`${file}${suffix}`, bytes);
        expect(openDirectly(file), `byte ${offset} ^ ${mask}`).toBeOneOf(['log.corrupt', JSON.stringify(expected, bigints)]);
      }
    }),
  );
});

function failureOf(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}

/** In place, as a disk does it. In a process of its own: closing the file here would drop SQLite's lock on it. */
function overwrite(file: string, offset: number, text: string): void {
  execFileSync('dd', [`of=${file}`, 'bs=1', `seek=${offset}`, 'conv=notrunc', 'status=none'], { input: text });
}

/** In this thread, so that hundreds of opens take a second. */
function openDirectly(file: string): string {
  const log = new SqliteLogFile(file);
  try {
    const { logId, last, items } = log.open();
    const { revision: number, digest, time } = last;
    const snapshot = { cursor: { logId, revision: number, digest }, time, items };
    return JSON.stringify({ snapshot, entries: log.read(revision(1n)) }, bigints);
  } catch (error) {
    if (error instanceof AgentError) return error.code;
    throw error;
  } finally {
    log.close();
  }
}

const bigints = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);

function bytesOf(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

function put(file: string, bytes: Buffer | undefined): void {
  if (bytes === undefined) rmSync(file, { force: true });
  else writeFileSync(file, bytes);
}

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { SqliteJournal } from '../../../src/adapters/instruction/sqlite-journal.js';
import { sourceArguments } from '../../../src/adapters/threads/typescript-worker.js';
import { type RowState, rowStates } from '../../../src/domain/instruction/row.js';
import { key, sampleRow } from '../../contract/journal.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };
const program = (name: string) => fileURLToPath(new URL(`./support/${name}.ts`, import.meta.url));
const journalAt = (file: string) => new SqliteJournal({ file, clock: new FakeClock(1_000), reserveBytes: 4_096 });

async function filled(): Promise<{ readonly file: string; readonly id: string | undefined }> {
  const file = join(await tempFolder(), 'journal.db');
  const journal = journalAt(file);
  await journal.open(options);
  const rows = Array.from({ length: 100 }, (_, number) => sampleRow(`t${number}`));
  await journal.commit(
    rows.map((row) => ({ change: 'row', row })),
    options,
  );
  const id = journal.facts()?.id;
  await journal.close();
  return { file, id };
}

async function runAndKill(file: string, run: number, delay: number): Promise<ReadonlyMap<string, RowState>> {
  const child = spawn(process.execPath, [...sourceArguments, program('commit-loop'), file, String(run)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const durable = new Map<string, RowState>();
  for await (const line of createInterface(child.stdout)) {
    const [tag = '', text] = line.split(' ');
    // The last line may be cut by the kill: it is then no promise.
    const state = rowStates.find((each) => each === text);
    if (state === undefined) continue;
    if (durable.size === 0) setTimeout(() => child.kill('SIGKILL'), delay);
    durable.set(tag, state);
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  expect(child.signalCode).toBe('SIGKILL');
  return durable;
}

test('A1: kill -9, 8 times: every commit that had resolved is there, and the counter never falls', {
  timeout: 120_000,
}, async () => {
  const file = join(await tempFolder(), 'journal.db');
  const durable = new Map<string, RowState>();
  let counter = 0n;
  for (let run = 0; run < 8; run += 1) {
    for (const [tag, state] of await runAndKill(file, run, 10 + ((run * 37) % 150))) durable.set(tag, state);
    const journal = journalAt(file);
    await journal.open(options);
    const tags = [...durable.keys()];
    const entries = await journal.find(
      tags.map((tag) => key(tag, 'f')),
      options,
    );
    for (const [place, tag] of tags.entries()) {
      const [found, promised] = [entries[place]?.row.state, durable.get(tag)];
      expect(rowStates.indexOf(found ?? 'received'), tag).toBeGreaterThanOrEqual(rowStates.indexOf(promised ?? 'received'));
      expect(entries[place]?.hasReply, tag).toBe(found === 'finished');
    }
    expect(journal.facts()?.counter).toBeGreaterThan(counter);
    counter = journal.facts()?.counter ?? 0n;
    await journal.close();
  }
  expect(durable.size).toBeGreaterThan(8);
});

test.each<[string, (file: string) => Promise<void>]>([
  ['overwritten', (file) => writeFile(file, 'no database at all, but long enough to have a header')],
  [
    'damaged in the middle',
    async (file) => {
      const handle = await open(file, 'r+');
      await handle.write(Buffer.alloc(6_000, 0x5a), 0, 6_000, 4_096);
      await handle.close();
    },
  ],
  [
    'of another program',
    async (file) => {
      const db = new DatabaseSync(file);
      db.exec('DROP TABLE meta');
      db.close();
    },
  ],
])('K, A12: a journal that is %s is set aside whole, a new id says that the memory is gone', async (_, damage) => {
  const { file, id } = await filled();
  await damage(file);
  const bytes = await readFile(file);
  const journal = journalAt(file);
  expect((await journal.open(options)).live).toEqual([]);
  expect(journal.facts()?.id).not.toBe(id);
  expect(journal.problems().map(({ reason }) => reason)).toEqual([
    `the journal was damaged and stands aside as ${file}.damaged-1000`,
  ]);
  expect((await readFile(`${file}.damaged-1000`)).equals(bytes)).toBe(true);
  await journal.commit([{ change: 'row', row: sampleRow('t1') }], options);
  await journal.close();
});

test('an empty file, as an open that was killed leaves it, is made a journal', async () => {
  const file = join(await tempFolder(), 'journal.db');
  await writeFile(file, '');
  const journal = journalAt(file);
  await journal.open(options);
  expect(journal.problems()).toEqual([]);
  await journal.close();
});

test('A16: a file of a newer major version is refused and left as it is', async () => {
  const { file } = await filled();
  const db = new DatabaseSync(file);
  db.exec("UPDATE meta SET value = '2.0' WHERE name = 'schema'");
  db.close();
  const journal = journalAt(file);
  await expect(journal.open(options)).rejects.toEqual(expect.objectContaining({ code: 'journal.newer_schema' }));
  await journal.close();
  expect((await readdir(join(file, '..'))).filter((name) => name.includes('damaged'))).toEqual([]);
});

test('a journal that another process holds is not taken', async () => {
  const { file } = await filled();
  const first = journalAt(file);
  await first.open(options);
  const second = journalAt(file);
  await expect(second.open(options)).rejects.toEqual(expect.objectContaining({ code: 'agent.data_dir_locked' }));
  await second.close();
  await first.close();
});

test('a folder that cannot be made leaves the journal unavailable, with the reason', async () => {
  const folder = await tempFolder();
  await writeFile(join(folder, 'file'), '');
  const journal = journalAt(join(folder, 'file', 'journal.db'));
  await expect(journal.open(options)).rejects.toEqual(expect.objectContaining({ code: 'journal.unavailable' }));
  expect(journal.problems().map(({ reason }) => reason)).toEqual([expect.stringContaining('ENOTDIR')]);
  await journal.close();
});

function canMount(): boolean {
  try {
    execFileSync('unshare', ['--mount', 'sh', '-c', 'mount -t tmpfs tmpfs /mnt'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

test.skipIf(!canMount())(
  'K: on a full disk (a tmpfs; needs root) the reserve finishes what runs, and what is new is refused',
  { timeout: 60_000 },
  async () => {
    const folder = await tempFolder();
    const script = 'mount -t tmpfs -o size=2m tmpfs "$1" && shift && exec "$@"';
    const args = [
      '--mount',
      'sh',
      '-c',
      script,
      'sh',
      folder,
      process.execPath,
      ...sourceArguments,
      program('full-disk'),
      join(folder, 'journal.db'),
    ];
    const { taken, ...seen } = JSON.parse(execFileSync('unshare', args, { encoding: 'utf8', timeout: 50_000 }));
    expect(taken).toBeGreaterThan(50);
    expect(seen).toEqual({
      ends: Array.from({ length: 10 }, () => 'committed'),
      whileFull: 'journal.unavailable',
      problems: ['journal'],
      state: 'finished',
      after: 'committed',
      healed: 0,
    });
  },
);

import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SqliteViewStore } from '../../../src/adapters/log/sqlite-view-store.js';
import { sourceArguments } from '../../../src/adapters/threads/typescript-worker.js';
import { binding, first, viewStoreContract } from '../../contract/view-store.contract.js';
import { type FakeViewFile, FakeViewStore } from '../../fakes/fake-view-store.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };

viewStoreContract('fake', async () => {
  const file: FakeViewFile = {};
  return { make: () => new FakeViewStore(file), close: async () => {} };
});

viewStoreContract('sqlite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-view-'));
  const made: SqliteViewStore[] = [];
  const make = () => {
    const store = new SqliteViewStore(join(folder, 'view.db'));
    made.push(store);
    return store;
  };
  const close = async () => {
    for (const store of made) await store.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { make, close };
});

/** A file with `first` in it, closed. */
async function stored(): Promise<string> {
  const file = join(await tempFolder(), 'sub', 'view.db');
  const store = new SqliteViewStore(file);
  await store.open(binding, options);
  await store.replace(first, options);
  await store.close();
  return file;
}

async function open(file: string) {
  const store = new SqliteViewStore(file);
  onTestFinished(() => store.close());
  return { store, opened: await store.open(binding, options) };
}

function inside(file: string, sql: string): void {
  const db = new DatabaseSync(file);
  db.exec(sql);
  db.close();
}

describe('K: what cannot be used is dropped and said, and the next view is stored', () => {
  test.each<[string, (file: string) => void, RegExp]>([
    ['empty', (file) => writeFileSync(file, ''), /is empty/],
    ['something else', (file) => writeFileSync(file, 'hello '.repeat(1_000)), /does not begin as/],
    ['cut short', (file) => writeFileSync(file, readFileSync(file).subarray(0, 5_000)), /malformed|damaged|corrupt/],
    ['a changed value', (file) => inside(file, `UPDATE kv SET value = '"other"' WHERE key = 'a'`), /content is damaged/],
    ['a lost row', (file) => inside(file, "DELETE FROM kv WHERE key = 'a'"), /content is damaged/],
    [
      'a changed cursor',
      (file) => inside(file, "UPDATE meta SET value = replace(value, 'log-1', 'log-2') WHERE name = 'state'"),
      /state row is damaged/,
    ],
    ['another format', (file) => inside(file, "UPDATE meta SET value = 'view 2' WHERE name = 'schema'"), /schema row is damaged/],
    ['another program’s file', (file) => inside(file, 'DROP TABLE meta'), /no such table/],
  ])('%s', async (_, spoil, dropped) => {
    const file = await stored();
    spoil(file);
    const { store, opened } = await open(file);
    expect(opened).toEqual({ view: undefined, dropped: expect.stringMatching(dropped) });
    await store.replace(first, options);
    await store.close();
    expect((await open(file)).opened.view).toEqual(first);
  });

  test('a flipped bit in a page', async () => {
    const file = await stored();
    const bytes = readFileSync(file);
    const at = bytes.indexOf('"x":1') + 4;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    expect((await open(file)).opened).toEqual({ view: undefined, dropped: expect.stringMatching(/content is damaged/) });
  });
});

describe('the disk is at fault', () => {
  test('K: where nothing can be kept that is said, and tried again by the next call', async () => {
    const file = join(await tempFolder(), 'view.db');
    mkdirSync(file);
    const store = new SqliteViewStore(file);
    onTestFinished(() => store.close());
    await expect(store.open(binding, options)).rejects.toMatchObject({ code: 'log.view_not_written' });
    await expect(store.replace(first, options)).rejects.toMatchObject({ code: 'log.view_not_written' });
    rmSync(file, { recursive: true });
    await store.replace(first, options);
    await store.close();
    expect((await open(file)).opened.view).toEqual(first);
  });

  test('the file is for its user alone', async () => {
    const file = await stored();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    chmodSync(file, 0o644);
    await open(file);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(existsSync(`${file}-shm`)).toBe(false);
  });
});

/** Runs the loop on `file` until it has stored `count` batches, kills it, and says how it found the file and what it told last. */
async function killedAfter(file: string, count: number): Promise<{ readonly opened: string; readonly told: number }> {
  const program = join(import.meta.dirname, 'support/view-loop.ts');
  const child: ChildProcess = spawn(process.execPath, [...sourceArguments, program, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let opened = '';
  let told = 0;
  let seen = 0;
  if (child.stdout === null) throw new Error('no output');
  for await (const line of createInterface(child.stdout)) {
    if (line.startsWith('open')) opened = line;
    else told = Number(line);
    if (seen++ === count) child.kill('SIGKILL');
  }
  return { opened, told };
}

test('J1: kill -9 at any moment costs at most a replay: what is there is whole, and not behind what was told', async () => {
  const file = join(await tempFolder(), 'view.db');
  let told = 0;
  for (const count of [3, 17, 40, 1, 25]) {
    const run = await killedAfter(file, count);
    const [, at, whole, dropped] = run.opened.split(' ');
    expect([whole, dropped]).toEqual(['true', '-']);
    expect(Number(at)).toBeGreaterThanOrEqual(told);
    told = run.told;
  }
});

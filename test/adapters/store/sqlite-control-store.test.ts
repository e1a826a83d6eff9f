import { existsSync } from 'node:fs';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SqliteControlStore } from '../../../src/adapters/store/sqlite-control-store.js';
import { put } from '../../contract/control-store.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };

async function opened(file: string): Promise<SqliteControlStore> {
  const store = new SqliteControlStore({ file, clock: new FakeClock() });
  onTestFinished(() => store.close());
  await store.open(options);
  return store;
}

/** A closed file that holds `a/0` … `a/19`. */
async function written(): Promise<string> {
  const file = join(await tempFolder(), 'data', 'control.db');
  const store = await opened(file);
  for (let i = 0; i < 20; i += 1) await put(store, { [`a/${i}`]: `value ${i} ${'v'.repeat(500)}` });
  await store.close();
  return file;
}

describe('the file', () => {
  test('is private, and holds after a close what was committed', async () => {
    const file = await written();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const store = await opened(file);
    expect(await store.list('a/', options)).toHaveLength(20);
    expect(await put(store, { b: '1' })).toBe(21n);
  });

  test('versions go on after a restart, also when everything was removed', async () => {
    const file = await written();
    const store = await opened(file);
    for (const { key } of await store.list('', options)) await put(store, { [key]: null });
    await store.close();
    expect(await put(await opened(file), { a: '1' })).toBe(41n);
  });

  test('a second process is told at once', async () => {
    const file = await written();
    await opened(file);
    await expect(opened(file)).rejects.toMatchObject({ code: 'agent.data_dir_locked' });
  });

  test.each([
    ['empty', () => Buffer.alloc(0)],
    ['foreign', () => Buffer.from('something else that is no database')],
    ['cut', (content: Buffer) => content.subarray(0, 4_096)],
    ['damaged in a value', (content: Buffer) => flipped(content, content.lastIndexOf('value 7 vvv') + 3)],
    ['damaged in a page', (content: Buffer) => flipped(content, 2 * 4_096 + 1)],
  ])('an %s one is refused and left as it is', async (_, damage) => {
    const file = await written();
    const damaged = damage(await readFile(file));
    await writeFile(file, damaged);
    await expect(opened(file)).rejects.toMatchObject({ code: 'store.corrupt', message: expect.stringContaining(file) });
    expect((await readFile(file)).equals(damaged)).toBe(true);
  });

  test('that is gone while its WAL is there is not made anew', async () => {
    const file = await written();
    await rm(file);
    await writeFile(`${file}-wal`, 'x');
    await expect(opened(file)).rejects.toMatchObject({ code: 'store.corrupt' });
    expect(existsSync(file)).toBe(false);
  });

  test('of a newer schema is refused', async () => {
    const file = await written();
    const db = new DatabaseSync(file);
    const digest = (await import('node:crypto')).hash('sha256', 'schema\n0\n2.0');
    db.prepare("UPDATE meta SET value = '2.0', digest = ? WHERE name = 'schema'").run(digest);
    db.close();
    await expect(opened(file)).rejects.toMatchObject({ code: 'store.newer_schema', message: expect.stringContaining('2.0') });
  });

  test('in a folder that cannot be made', async () => {
    const file = join(await tempFolder(), 'file', 'control.db');
    await writeFile(join(file, '..'), '');
    await expect(opened(file)).rejects.toMatchObject({ code: 'store.unavailable' });
  });
});

describe('calls', () => {
  test('of many at once share a commit to the disk and are answered in order', async () => {
    const store = await opened(join(await tempFolder(), 'control.db'));
    const versions = await Promise.all(Array.from({ length: 500 }, (_, i) => put(store, { [`k/${i}`]: 'x' })));
    expect(versions).toEqual(versions.map((_, i) => BigInt(i + 1)));
  });

  test('before open and after close say that it is not open', async () => {
    const store = new SqliteControlStore({ file: join(await tempFolder(), 'control.db'), clock: new FakeClock() });
    await expect(store.get('a', options)).rejects.toMatchObject({ code: 'store.unavailable' });
    await store.open(options);
    const watch = store.watch('', options)[Symbol.asyncIterator]();
    const next = watch.next();
    await put(store, { a: '1' });
    expect((await next).value).toMatchObject([{ key: 'a' }]);
    const late = watch.next();
    const last = put(store, { b: '2' });
    await Promise.all([store.close(), store.close()]);
    expect(await last).toBe(2n);
    expect((await late).value).toMatchObject([{ key: 'b' }]);
    await expect(watch.next()).rejects.toMatchObject({ code: 'store.unavailable' });
    await expect(store.commit([], [], options)).rejects.toMatchObject({ code: 'store.unavailable' });
    await expect(store.open(options)).rejects.toMatchObject({ code: 'store.unavailable' });
  });

  test('an open that is given up leaves nothing open', async () => {
    const file = join(await tempFolder(), 'control.db');
    const store = new SqliteControlStore({ file, clock: new FakeClock() });
    await expect(store.open({ signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough');
    await store.close();
    await opened(file);
  });
});

function flipped(content: Buffer, at: number): Buffer {
  const copy = Buffer.from(content);
  copy.writeUInt8(copy.readUInt8(at) ^ 0x20, at);
  return copy;
}

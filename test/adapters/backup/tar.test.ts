import { execFileSync } from 'node:child_process';
import { open, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readTar, TAR_END, tarHeader, tarPadding } from '../../../src/adapters/backup/tar.js';
import { tempFolder } from '../../support/temp-folder.js';

const files = [0, 1, 511, 512, 513, 5_000].map((bytes) => ({ name: `f${bytes}`, content: Buffer.alloc(bytes, `${bytes % 10}`) }));

async function archive() {
  const path = join(await tempFolder(), 'a.tar');
  const pieces = files.flatMap(({ name, content }) => [
    tarHeader(name, content.length, Date.UTC(2026, 0, 31)),
    content,
    tarPadding(content.length),
  ]);
  await writeFile(path, Buffer.concat([...pieces, TAR_END]));
  return path;
}

async function members(path: string) {
  const file = await open(path);
  try {
    return await readTar(file);
  } finally {
    await file.close();
  }
}

test('every file is where it is said to be, whatever its size', async () => {
  const path = await archive();
  const bytes = await readFile(path);
  const found = await members(path);
  expect(found?.map(({ name, offset, bytes: size }) => ({ name, content: bytes.subarray(offset, offset + size) }))).toEqual(
    files,
  );
});

test('the tar of the system reads it', async () => {
  const path = await archive();
  expect(execFileSync('tar', ['-tf', path]).toString().trim().split('\n')).toEqual(files.map(({ name }) => name));
  expect(execFileSync('tar', ['-xOf', path, 'f513'])).toEqual(files[4]?.content);
});

test.each([
  ['without its end', -1_024],
  ['cut in a header', -1_024 - 5_120 - 100],
])('%s it is none', async (_, by) => {
  const path = await archive();
  await truncate(path, (await readFile(path)).length + by);
  expect(await members(path)).toBeUndefined();
});

test('a header that was changed, and what is no tar', async () => {
  const path = await archive();
  const bytes = await readFile(path);
  bytes[3] = 0x41;
  await writeFile(path, bytes);
  expect(await members(path)).toBeUndefined();
  await writeFile(path, Buffer.alloc(10_000, 'x'));
  expect(await members(path)).toBeUndefined();
});

test('what does not fit is refused', () => {
  expect(() => tarHeader('a', 8 ** 11, 0)).toThrow(RangeError);
  expect(() => tarHeader('a'.repeat(101), 1, 0)).toThrow(RangeError);
});

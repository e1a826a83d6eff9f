import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { OverlayKeyFile } from '../../../src/adapters/overlay/overlay-key-file.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };

async function keyFile() {
  return new OverlayKeyFile(join(await tempFolder(), 'overlay.key'));
}

test('a key is made once, for this user alone', async () => {
  const key = await keyFile();
  expect(await key.load(options)).toBeUndefined();
  const made = await key.make(options);
  expect([await key.make(options), await key.load(options)]).toEqual([made, made]);
  expect((await stat(key.path)).mode & 0o777).toBe(0o600);
});

test('a key that is kept is the one that it was, and replaces none', async () => {
  const [first, second] = [await keyFile(), await keyFile()];
  const made = await first.make(options);
  const text = (await readFile(first.path, 'utf8')).trim();
  expect(await second.keep(text, options)).toBe(made);
  expect(await second.keep(Buffer.alloc(32, 7).toString('base64'), options)).toBe(made);
});

test.each(['', 'x', Buffer.alloc(31).toString('base64')])('a file with %j is no key, and is not replaced', async (text) => {
  const key = await keyFile();
  await writeFile(key.path, text);
  const unreadable = { code: 'overlay.key_unreadable' };
  await expect(key.load(options)).rejects.toMatchObject(unreadable);
  await expect(key.make(options)).rejects.toMatchObject(unreadable);
});

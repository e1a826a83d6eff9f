import { mkdir, mkdtemp, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createFile, ensureFolder, replaceFile } from '../../../src/adapters/files/durable-file.js';

const options = { signal: new AbortController().signal };
const folder = () => mkdtemp(join(tmpdir(), 'holdfast-files-'));

describe('replaceFile', () => {
  test('puts new content in place of the old, with the mode that is asked for, and leaves nothing else', async () => {
    const inside = await folder();
    const path = join(inside, 'listen-ports.json');
    await replaceFile(path, 'old and longer', options);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await replaceFile(path, Buffer.from('new'), { ...options, mode: 0o644 });
    expect(await readFile(path, 'utf8')).toBe('new');
    expect((await stat(path)).mode & 0o777).toBe(0o644);
    expect(await readdir(inside)).toEqual(['listen-ports.json']);
  });

  test('many at once leave the whole content of one', async () => {
    const inside = await folder();
    const path = join(inside, 'file');
    const contents = Array.from({ length: 20 }, (_, index) => String(index).repeat(10_000));
    await Promise.all(contents.map((content) => replaceFile(path, content, options)));
    expect(contents).toContain(await readFile(path, 'utf8'));
    expect(await readdir(inside)).toEqual(['file']);
  });

  test('a failure leaves the old content and no temporary file', async () => {
    const inside = await folder();
    await mkdir(join(inside, 'taken'));
    await expect(replaceFile(join(inside, 'taken'), 'x', options)).rejects.toThrow();
    await expect(replaceFile(join(inside, 'none/file'), 'x', options)).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(replaceFile(join(inside, 'file'), 'x', { signal: AbortSignal.abort() })).rejects.toThrow();
    expect(await readdir(inside)).toEqual(['taken']);
  });
});

describe('createFile', () => {
  test('creates once', async () => {
    const inside = await folder();
    const path = join(inside, 'file');
    const created = await Promise.all(['a', 'b', 'c'].map((content) => createFile(path, content, options)));
    expect(created.filter(Boolean)).toEqual([true]);
    expect(await readFile(path, 'utf8')).toBe(['a', 'b', 'c'][created.indexOf(true)]);
    expect(await readdir(inside)).toEqual(['file']);
  });

  test('whatever stands there stays', async () => {
    const inside = await folder();
    await writeFile(join(inside, 'empty'), '');
    await mkdir(join(inside, 'folder'));
    await symlink('/nowhere', join(inside, 'link'));
    for (const name of ['empty', 'folder', 'link']) expect(await createFile(join(inside, name), 'x', options)).toBe(false);
    expect(await readFile(join(inside, 'empty'), 'utf8')).toBe('');
  });
});

test.each([
  ['where the kernel makes none, which Node tries for ever', '/proc/holdfast/a/b', 'ENOENT'],
  ['below a file', '/proc/version/a', 'ENOTDIR'],
  ['in place of a file', '/proc/version', 'ENOTDIR'],
  ['with a name that is too long', `/tmp/${'x'.repeat(300)}`, 'ENAMETOOLONG'],
])('ensureFolder %s says so', async (_, path, code) => {
  await expect(ensureFolder(path)).rejects.toMatchObject({ code });
});

test('ensureFolder of many at once makes one, and not in place of a link that leads nowhere', async () => {
  const inside = await folder();
  await Promise.all(Array.from({ length: 20 }, () => ensureFolder(join(inside, 'a/b/c'))));
  expect(await readdir(join(inside, 'a/b'))).toEqual(['c']);
  await symlink('nowhere', join(inside, 'link'));
  await expect(ensureFolder(join(inside, 'link'))).rejects.toMatchObject({ code: 'EEXIST' });
});

test('ensureFolder makes what is missing, private, and leaves what is there', async () => {
  const inside = await folder();
  await mkdir(join(inside, 'open'), { mode: 0o755 });
  await ensureFolder(join(inside, 'open/a/b'));
  await ensureFolder(join(inside, 'open/a/b'));
  const modes = await Promise.all(['open', 'open/a', 'open/a/b'].map((name) => stat(join(inside, name))));
  expect(modes.map(({ mode }) => (mode & 0o777).toString(8))).toEqual(['755', '700', '700']);
});

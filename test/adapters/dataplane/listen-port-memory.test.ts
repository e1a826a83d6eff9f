import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { FileListenPortMemory } from '../../../src/adapters/dataplane/file-listen-port-memory.js';
import type { ListenerId } from '../../../src/domain/dataplane/model.js';
import { listenPortMemoryContract } from '../../contract/listen-port-memory.contract.js';
import { FakeListenPortMemory } from '../../fakes/fake-listen-port-memory.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };

listenPortMemoryContract('fake', async () => {
  const memory = new FakeListenPortMemory();
  return () => memory;
});

listenPortMemoryContract('file', async () => {
  const file = join(await tempFolder(), 'listen-ports.json');
  return () => new FileListenPortMemory(file);
});

describe('the file', () => {
  test('is JSON in the order of its keys, and nothing is left beside it', async () => {
    const folder = await tempFolder();
    const file = join(folder, 'listen-ports.json');
    const ports = new Map([
      ['default/b/http' as ListenerId, 2],
      ['default/a/http' as ListenerId, 1],
    ]);
    await new FileListenPortMemory(file).save(ports, options);
    expect(await readFile(file, 'utf8')).toBe('{"default/a/http":1,"default/b/http":2}\n');
    expect(await readdir(folder)).toEqual(['listen-ports.json']);
  });

  test.each([
    ['empty', ''],
    ['half of it', '{"default/a/http":80'],
    ['a list', '[8080]'],
    ['null', 'null'],
    ['binary', '\u0000\u0001'],
    ['no numbers', '{"default/a/http":"80"}'],
    ['no ports', '{"a/b/c":0,"a/b/d":65536,"a/b/e":1.5}'],
  ])('%s counts as none', async (_, text) => {
    const file = join(await tempFolder(), 'listen-ports.json');
    await writeFile(file, text);
    expect(await new FileListenPortMemory(file).load(options)).toEqual(new Map());
  });

  test('a folder in its place counts as none, and is an error to save', async () => {
    const file = join(await tempFolder(), 'listen-ports.json');
    await mkdir(file);
    const memory = new FileListenPortMemory(file);
    expect(await memory.load(options)).toEqual(new Map());
    await expect(memory.save(new Map(), options)).rejects.toThrow();
  });
});

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { FileIdentityStore } from '../../../src/adapters/identity/file-identity-store.js';
import { mintIdentity } from '../../../src/domain/identity/plan.js';
import { identityStoreContract } from '../../contract/identity-store.contract.js';
import { FakeIdentityStore } from '../../fakes/fake-identity-store.js';

const { signal } = new AbortController();
const newPath = async () => join(await mkdtemp(join(tmpdir(), 'holdfast-identity-')), 'node-identity.json');
const identity = mintIdentity({ explicitName: 'a', hostname: 'host', labels: {}, randomBytes: new Uint8Array(8) });

identityStoreContract('fake', async (text) => new FakeIdentityStore(text));

identityStoreContract('file', async (text) => {
  const path = await newPath();
  if (text !== undefined) await writeFile(path, text);
  return new FileIdentityStore(path);
});

describe('FileIdentityStore', () => {
  test('writes JSON for this user alone, whatever the umask, and leaves nothing else', async () => {
    const path = await newPath();
    await new FileIdentityStore(path).create(identity, { signal });
    expect(await readFile(path, 'utf8')).toBe('{\n  "node_id": "a",\n  "hostname": "host",\n  "labels": {}\n}\n');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(dirname(path))).toEqual(['node-identity.json']);
  });

  test('makes the data directory, for this user alone', async () => {
    const path = join(dirname(await newPath()), 'deep/er/node-identity.json');
    await new FileIdentityStore(path).create(identity, { signal });
    expect((await stat(dirname(path))).mode & 0o777).toBe(0o700);
  });

  test('says what is wrong with a file in words', async () => {
    const path = await newPath();
    await writeFile(path, '');
    await expect(new FileIdentityStore(path).load({ signal })).rejects.toMatchObject({
      message: `identity.malformed: ${path} is empty`,
      remedy: 'put the file back from a copy; remove it only if this node may become a new one',
    });
  });

  test.each<{ name: string; put: (path: string) => Promise<unknown>; problem: string }>([
    { name: 'a directory', put: (path) => mkdir(path), problem: 'is a directory' },
    { name: 'a FIFO', put: (path) => promisify(execFile)('mkfifo', [path]), problem: 'is not a regular file' },
    {
      name: 'bytes that are no text',
      put: (path) => writeFile(path, Buffer.from([0x7b, 0xff])),
      problem: 'is not UTF-8, first on line 1',
    },
    { name: 'a link to itself', put: (path) => symlink(path, path), problem: 'cannot be read: ELOOP' },
    { name: 'far too much', put: (path) => writeFile(path, ' '.repeat(300_000)), problem: 'has more than 262144 bytes' },
  ])('$name in its place is unreadable and stays', async ({ put, problem }) => {
    const path = await newPath();
    await put(path);
    const expected = { code: 'identity.unreadable', facts: { problem: `${path} ${problem}` } };
    await expect(new FileIdentityStore(path).load({ signal })).rejects.toMatchObject(expected);
    await expect(new FileIdentityStore(path).create(identity, { signal })).rejects.toMatchObject(expected);
  });

  test('a link that leads nowhere is not taken for a new node', async () => {
    const path = await newPath();
    await symlink('/nowhere/at/all', path);
    await expect(new FileIdentityStore(path).create(identity, { signal })).rejects.toMatchObject({ code: 'identity.unreadable' });
  });

  test('a folder in which it cannot be written', async () => {
    const path = await newPath();
    await writeFile(join(dirname(path), 'file'), '');
    const below = new FileIdentityStore(join(dirname(path), 'file/node-identity.json'));
    await expect(below.create(identity, { signal })).rejects.toMatchObject({ code: 'identity.not_written' });
  });

  test('what dead writers left is removed, what living ones write and what others own is not', async () => {
    const path = await newPath();
    const folder = dirname(path);
    const old = new Date(Date.now() - 3_600_000);
    const names = [
      '.node-identity.json.0000000000000000.tmp',
      '.node-identity.json.1111111111111111.tmp',
      '.other.json.0000000000000000.tmp',
      '.node-identity.json.mine.tmp',
    ];
    for (const name of names) {
      await writeFile(join(folder, name), '');
      if (!name.includes('1111')) await utimes(join(folder, name), old, old);
    }
    await new FileIdentityStore(path).create(identity, { signal });
    expect((await readdir(folder)).sort()).toEqual([
      '.node-identity.json.1111111111111111.tmp',
      '.node-identity.json.mine.tmp',
      '.other.json.0000000000000000.tmp',
      'node-identity.json',
    ]);
  });
});

describe('across processes', () => {
  const child = (...args: readonly string[]): ChildProcess => {
    const hook = join(import.meta.dirname, '../../support/resolve-typescript.mjs');
    const script = join(import.meta.dirname, 'mint-child.ts');
    return spawn(process.execPath, ['--import', hook, script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  };

  test('several starters at once get one identity', async () => {
    const folder = dirname(await newPath());
    const outputs = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => Buffer.concat((await child(folder, name, '20').stdout?.toArray()) ?? []).toString()),
    );
    const [first = ''] = outputs;
    expect(first).toMatch(/^([abc]\n){20}$/);
    expect(outputs).toEqual([first, first, first]);
  });

  test('kill -9 in the middle of minting leaves whole files, and the next start goes on', { timeout: 60_000 }, async () => {
    for (let round = 0; round < 10; round++) {
      const folder = dirname(await newPath());
      const starter = child(folder, 'a', '100000');
      if (starter.stdout !== null) await once(starter.stdout, 'data');
      await setTimeout(20 + round * 7.3);
      starter.kill('SIGKILL');
      await once(starter, 'exit');
      const nodes = await readdir(folder);
      expect(nodes.length).toBeGreaterThan(1);
      for (const node of nodes) {
        const store = new FileIdentityStore(join(folder, node, 'node-identity.json'));
        const found = await store.load({ signal });
        expect((await store.create(identity, { signal })).labels).toEqual(found?.labels ?? {});
      }
    }
  });
});

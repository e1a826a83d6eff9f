import { appendFile, chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SealerKeyFile } from '../../../src/adapters/certificate/sealer-key-file.js';
import { sealerContract } from '../../contract/sealer.contract.js';
import { FakeSealerKeys } from '../../fakes/fake-sealer.js';
import { tempFolder } from '../../support/temp-folder.js';
import { options } from './support.js';

sealerContract('fake', async () => {
  const keys = new FakeSealerKeys();
  return { keys, rotate: async () => keys.rotate('k2') };
});

sealerContract('AES-256-GCM with a key file', async () => {
  const path = join(await tempFolder(), 'seal.key');
  const rotate = () => appendFile(path, `k2 ${Buffer.alloc(32, 7).toString('base64')}\n`);
  return { keys: new SealerKeyFile(path), rotate };
});

const key = (byte: number) => Buffer.alloc(32, byte).toString('base64');

describe('the key file', () => {
  test('E16: is for this user alone, whatever the umask', async () => {
    const path = join(await tempFolder(), 'deep/seal.key');
    await new SealerKeyFile(path).create(options);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(path))).mode & 0o777).toBe(0o700);
    expect(await readFile(path, 'utf8')).toMatch(/^k-[0-9a-f]{8} [A-Za-z0-9+/]{43}=\n$/);
  });

  test('that others may read is made private', async () => {
    const path = join(await tempFolder(), 'seal.key');
    await writeFile(path, `k1 ${key(1)}\n`);
    await chmod(path, 0o644);
    await new SealerKeyFile(path).load(options);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test('of several starters at once all have the same', async () => {
    const path = join(await tempFolder(), 'seal.key');
    const sealers = await Promise.all(Array.from({ length: 5 }, () => new SealerKeyFile(path).create(options)));
    expect(new Set(sealers.map(({ keyId }) => keyId)).size).toBe(1);
  });

  test('may have comments and empty lines', async () => {
    const path = join(await tempFolder(), 'seal.key');
    await writeFile(path, `# of the fleet\nk1 ${key(1)}\n\nk2 ${key(2)}\n`, { mode: 0o600 });
    expect((await new SealerKeyFile(path).load(options))?.keyId).toBe('k2');
  });

  test.each([
    ['nothing', '', 'holds no key'],
    ['noise', 'hello\n', 'has no key on line 1'],
    ['a short key', `k1 ${Buffer.alloc(16).toString('base64')}\n`, 'has no key on line 1'],
    ['an id twice', `k1 ${key(1)}\nk1 ${key(2)}\n`, 'holds an id twice'],
    ['a bad second line', `k1 ${key(1)}\nK2 ${key(2)}\n`, 'has no key on line 2'],
  ])('with %s is not used, and not overwritten', async (_, text, problem) => {
    const path = join(await tempFolder(), 'seal.key');
    await writeFile(path, text, { mode: 0o600 });
    const expected = { code: 'store.key_unreadable', facts: { problem: `${path} ${problem}` } };
    await expect(new SealerKeyFile(path).load(options)).rejects.toMatchObject(expected);
    await expect(new SealerKeyFile(path).create(options)).rejects.toMatchObject(expected);
    expect(await readFile(path, 'utf8')).toBe(text);
  });

  test('a folder in its place is named', async () => {
    const path = join(await tempFolder(), 'seal.key');
    await mkdir(path);
    await expect(new SealerKeyFile(path).load(options)).rejects.toMatchObject({ facts: { problem: `${path} is a directory` } });
  });

  test('one that cannot be made is named', async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, 'file'), '');
    await expect(new SealerKeyFile(join(folder, 'file/seal.key')).create(options)).rejects.toMatchObject({
      code: 'store.key_unreadable',
    });
  });

  test('E16: neither text nor name can be found in what is sealed', async () => {
    const sealer = await new SealerKeyFile(join(await tempFolder(), 'seal.key')).create(options);
    const sealed = sealer.seal('ca/l2', '-----BEGIN PRIVATE KEY-----');
    const bytes = Buffer.from(sealed.split('.')[1] ?? '', 'base64url').toString('latin1');
    expect(sealed + bytes).not.toMatch(/PRIVATE|ca\/l2/);
  });
});

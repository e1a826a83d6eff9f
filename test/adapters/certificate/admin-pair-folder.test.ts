import { chmod, mkdir, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  makeAdminFolder,
  readAdminPair,
  removeAdminPair,
  writeAdminPair,
} from '../../../src/adapters/certificate/admin-pair-folder.js';
import { aid } from '../../../src/domain/link/model.js';
import { tempFolder } from '../../support/temp-folder.js';
import { newAuthority, newPair, options } from './support.js';

const alice = { role: 'admin', aid: aid('acme'), name: 'alice', grade: 'admin' } as const;
const pairOf = async () => newPair(await newAuthority('admins'), alice);

test('what was written is read, with a key that is private, also when somebody has opened it', async () => {
  const folder = join(await tempFolder(), 'a/b');
  const pair = await pairOf();
  await writeAdminPair(folder, pair, options);
  expect((await stat(join(folder, 'admin.key'))).mode & 0o777).toBe(0o600);
  await chmod(join(folder, 'admin.key'), 0o644);
  expect(await readAdminPair(folder, options)).toMatchObject(pair);
  expect((await stat(join(folder, 'admin.key'))).mode & 0o777).toBe(0o600);
});

test('another pair takes the place of the former', async () => {
  const folder = join(await tempFolder(), 'a');
  await writeAdminPair(folder, await pairOf(), options);
  const next = await pairOf();
  await writeAdminPair(folder, next, options);
  expect(await readAdminPair(folder, options)).toMatchObject(next);
});

test('a folder without, with a part, and with parts of two', async () => {
  const folder = join(await tempFolder(), 'a');
  const unusable = (problem: RegExp) => ({ code: 'certificate.unusable', facts: { problem: expect.stringMatching(problem) } });
  await expect(readAdminPair(folder, options)).rejects.toMatchObject(unusable(/has no admin\.crt, admin\.key and admin-ca\.crt/));
  await writeAdminPair(folder, await pairOf(), options);
  await writeFile(join(folder, 'admin.crt'), (await pairOf()).certificate);
  await expect(readAdminPair(folder, options)).rejects.toMatchObject(unusable(/do not belong together/));
  await unlink(join(folder, 'admin.key'));
  await expect(readAdminPair(folder, options)).rejects.toMatchObject(unusable(/admin\.key is not there/));
});

test('a folder is made anew, and not in place of another', async () => {
  const folder = join(await tempFolder(), 'a/b');
  await makeAdminFolder(folder);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  await expect(makeAdminFolder(folder)).rejects.toMatchObject({ code: 'certificate.not_written' });
  await removeAdminPair(folder);
  await removeAdminPair(folder);
  await expect(stat(folder)).rejects.toMatchObject({ code: 'ENOENT' });
});

test('where nothing can be written that is said', async () => {
  const file = join(await tempFolder(), 'file');
  await writeFile(file, 'precious');
  await expect(makeAdminFolder(join(file, 'a'))).rejects.toMatchObject({ code: 'certificate.not_written' });
  await expect(writeAdminPair(join(file, 'a'), await pairOf(), options)).rejects.toMatchObject({
    code: 'certificate.not_written',
  });
  expect(await readFile(file, 'utf8')).toBe('precious');
  const folder = join(await tempFolder(), 'b');
  await mkdir(join(folder, 'admin.key'), { recursive: true });
  await expect(writeAdminPair(folder, await pairOf(), options)).rejects.toMatchObject({ code: 'certificate.not_written' });
});

import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TAR_END, tarHeader, tarPadding } from '../../../src/adapters/backup/tar.js';
import { MANIFEST_NAME } from '../../../src/domain/backup/model.js';
import { encodeManifest } from '../../../src/domain/backup/schema.js';
import { FakeBackups } from '../../fakes/fake-backups.js';
import { fleetCliRig } from '../../support/fleet-cli-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

const content = Buffer.from('some rows');
const sha256 = createHash('sha256').update(content).digest('hex');
const files = (['log.db', 'control.db'] as const).map((name) => ({ name, bytes: content.length, sha256 }));
const manifest = Buffer.from(encodeManifest({ program: '1', madeAt: 0, logId: 'l', revision: 7n, files }));
const member = (name: string, bytes: Uint8Array): readonly Uint8Array[] => [
  tarHeader(name, bytes.length, 0),
  bytes,
  tarPadding(bytes.length),
];
const pieces: readonly Uint8Array[] = [
  ...member(MANIFEST_NAME, manifest),
  ...files.flatMap(({ name }) => member(name, content)),
  TAR_END,
];

async function rig() {
  const backups = new FakeBackups();
  backups.pieces = pieces;
  const folder = await tempFolder();
  return { ...(await fleetCliRig({ backups })), backups, folder, file: join(folder, 'a.tar') };
}

test('an archive of one that serves: whole, for its owner alone, and who took it is on record', async () => {
  const { cli, file, audit } = await rig();
  expect(await cli(['backup', file])).toEqual({
    ...{ code: 0, err: '' },
    out: `${file}: log up to revision 7, 18 B, without the sealing key: keep it apart\n`,
  });
  expect(await readFile(file)).toEqual(Buffer.concat(pieces));
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(audit.records).toMatchObject([{ type: 'admin.backup', tag: 'without key' }, { line: 'outcome' }]);
});

test('what is there already is not replaced', async () => {
  const { cli, file } = await rig();
  await cli(['backup', file]);
  expect(await cli(['backup', file])).toMatchObject({ code: 2, err: expect.stringContaining('is there already') });
});

test.each([
  ['fails on the way', true, pieces.length, 'backup.not_made'],
  ['ends too early', false, 4, 'backup.invalid'],
])('one that %s leaves nothing', async (_, fails, count, code) => {
  const { cli, backups, file, folder } = await rig();
  backups.fails = fails;
  backups.pieces = pieces.slice(0, count);
  expect(await cli(['backup', file])).toMatchObject({ code: 1, out: '', err: expect.stringContaining(code) });
  expect(await readdir(folder)).toEqual([]);
});

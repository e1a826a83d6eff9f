import { describe, expect, test } from 'vitest';
import type { BackupManifest } from '../../../src/domain/backup/model.js';
import { decodeManifest, encodeManifest } from '../../../src/domain/backup/schema.js';

const sha256 = 'ab'.repeat(32);
const manifest: BackupManifest = {
  ...{ program: '1.2.3', madeAt: 7, logId: 'log-1', revision: 9_007_199_254_740_993n },
  files: [
    { name: 'log.db', bytes: 1, sha256 },
    { name: 'control.db', bytes: 2, sha256 },
  ],
};
const [logDb, controlDb] = manifest.files;
const changed = (change: object) => JSON.stringify({ ...JSON.parse(encodeManifest(manifest)), ...change });

describe('the manifest of an archive', () => {
  test('is read as it was written, revisions beyond 2^53 too; what a newer version added is left', () => {
    expect(decodeManifest(encodeManifest(manifest))).toEqual(manifest);
    expect(decodeManifest(changed({ more: 1 }))).toEqual({ ...manifest, more: undefined });
  });

  test.each([
    ['no JSON', '{'],
    ['nothing', 'null'],
    ['a newer format', changed({ format: 2 })],
    ['a file that it must have is missing', changed({ files: [logDb] })],
    ['a file twice', changed({ files: [logDb, controlDb, logDb] })],
    ['a file that leads elsewhere', changed({ files: [logDb, controlDb, { ...logDb, name: '../etc/passwd' }] })],
    ['a size that is none', changed({ files: [logDb, { ...controlDb, bytes: -1 }] })],
    ['a digest that is none', changed({ files: [logDb, { ...controlDb, sha256: 'x' }] })],
    ['a revision that is none', changed({ revision: '-1' })],
  ])('%s: none', (_, text) => {
    expect(decodeManifest(text)).toBeUndefined();
  });
});

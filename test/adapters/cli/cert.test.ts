import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { AdminCertificateService } from '../../../src/app/certificate/admin-certificate-service.js';
import { aid } from '../../../src/domain/link/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { fleetCliRig } from '../../support/fleet-cli-rig.js';
import { tempFolder } from '../../support/temp-folder.js';
import { newAuthority } from '../certificate/support.js';

const DAY = 24 * 60 * 60_000;

async function certRig() {
  const authority = await newAuthority('admins');
  const revoked = new Map<string, string>();
  const certificates = new AdminCertificateService({
    store: new FakeControlStore(),
    authority,
    revocations: {
      find: (of, id) => {
        const reason = revoked.get(id);
        return reason === undefined ? undefined : { of, id, reason, from: 0, kind: 'revoked', until: 0 };
      },
    },
    clock: new FakeClock(Date.now()),
    randomBytes,
    account: aid('acme'),
  });
  const rig = await fleetCliRig({ certificates });
  const out = join(await tempFolder(), 'alice');
  return { ...rig, authority, revoked, out };
}

describe('cert create', () => {
  test('makes a folder with a key of its own, its certificate and the root', async () => {
    const { authority, cli, out, audit } = await certRig();
    const ran = await cli(['cert', 'create', 'alice', '--role', 'operator', '--ttl', '90d', '--out', out]);
    expect(ran).toMatchObject({
      code: 0,
      out: `operator alice: ${out}\n`,
      err: expect.stringMatching(/^serial [0-9a-f]{32}; whoever/),
    });
    expect((await readdir(out)).toSorted()).toEqual(['admin-ca.crt', 'admin.crt', 'admin.key']);
    expect([(await stat(out)).mode & 0o777, (await stat(join(out, 'admin.key'))).mode & 0o777]).toEqual([0o700, 0o600]);
    const certificate = new X509Certificate(await readFile(join(out, 'admin.crt')));
    expect(certificate.checkPrivateKey(createPrivateKey(await readFile(join(out, 'admin.key'))))).toBe(true);
    expect(certificate.subjectAltName).toBe('URI:holdfast:admin:acme:alice:operator');
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(Date.parse(certificate.validTo)).toBeGreaterThan(Date.now() + 89 * DAY);
    expect(await readFile(join(out, 'admin-ca.crt'), 'utf8')).toBe(authority.root);
    expect(audit.records.map(({ type, tag, line }) => `${type} ${tag} ${line}`)).toEqual([
      'admin.create_certificate operator alice decision',
      'admin.create_certificate operator alice outcome',
    ]);
  });

  test.each([
    ['a role that there is not', ['--role', 'root'], 2, 'expected one of viewer, operator, admin after --role'],
    ['a lifetime that is none', ['--role', 'viewer', '--ttl', '1y'], 2, 'expected a lifetime such as 90d'],
    ['a longer lifetime', ['--role', 'viewer', '--ttl', '366d'], 1, 'certificate.admin_invalid'],
    ['no role', [], 2, "required option '--role <role>'"],
  ])('%s leaves no folder', async (_, args, code, err) => {
    const { cli, out } = await certRig();
    expect(await cli(['cert', 'create', 'alice', ...args, '--out', out])).toMatchObject({
      code,
      err: expect.stringContaining(err),
    });
    await expect(stat(out)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('takes no folder that is there', async () => {
    const { cli, out } = await certRig();
    await mkdir(out);
    await writeFile(join(out, 'admin.key'), 'precious');
    const ran = await cli(['cert', 'create', 'alice', '--role', 'viewer', '--out', out]);
    expect(ran).toMatchObject({ code: 2, err: expect.stringContaining('is there already') });
    expect(await readFile(join(out, 'admin.key'), 'utf8')).toBe('precious');
  });
});

describe('cert list', () => {
  test('who has one, and what became of it', async () => {
    const { cli, out, revoked } = await certRig();
    expect(await cli(['cert', 'list'])).toMatchObject({ code: 0, out: '', err: expect.stringContaining('cert create') });
    await cli(['cert', 'create', 'bob', '--role', 'viewer', '--ttl', '12h', '--out', `${out}-bob`]);
    const made = await cli(['cert', 'create', 'alice', '--role', 'admin', '--out', out, '-o', 'json']);
    const { serial, folder, role } = JSON.parse(made.out);
    expect([folder, role]).toEqual([out, 'admin']);
    revoked.set(serial, 'she has left');
    const { out: text } = await cli(['cert', 'list']);
    expect(text.split('\n').map((line) => line.replaceAll(/[0-9a-f]{32}|local:\d+/g, '*').replaceAll(/ +/g, ' '))).toEqual([
      'NAME ROLE SERIAL AGE STATE MADE BY',
      'alice admin * 0s revoked: she has left *',
      'bob viewer * 0s expires in 12h *',
      '',
    ]);
    const { certificates } = JSON.parse((await cli(['cert', 'list', '-o', 'json'])).out);
    expect(certificates[0]).toMatchObject({ name: 'alice', account: 'acme', serial, revoked: 'she has left' });
  });
});

describe('cert revoke', () => {
  test('F4: by the serial, after it was asked for', async () => {
    const { cli, registrations } = await certRig();
    registrations.admins.add('abc');
    expect((await cli(['cert', 'revoke', 'abc'])).code).toBe(2);
    expect(await cli(['cert', 'revoke', 'abc'], { interactive: true, stdin: 'n\n' })).toMatchObject({ code: 1, out: '' });
    expect([...registrations.revoked]).toEqual([]);
    expect(await cli(['cert', 'revoke', 'AB:C', '-y', '--reason', 'lost'])).toMatchObject({
      code: 0,
      out: 'certificate/AB:C revoked\n',
    });
    expect([...registrations.revoked]).toEqual(['abc']);
    expect(await cli(['cert', 'revoke', 'ff', '-y'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('fleet.unknown_certificate'),
    });
  });
});

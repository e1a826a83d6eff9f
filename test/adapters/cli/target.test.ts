import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Target, type TargetOptions, targetOf } from '../../../src/adapters/cli/target.js';
import { run } from '../../support/cli-rig.js';
import { remoteAdminRig } from '../../support/remote-admin-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

const shown = (target: Target) => {
  switch (target.way) {
    case 'socket':
      return target.path;
    case 'remote':
      return `${target.server.host} ${target.server.port} ${target.certificate}`;
    case 'none':
      return target.problem;
  }
};

describe('whom a verb asks', () => {
  test.each<readonly [string, TargetOptions, NodeJS.ProcessEnv, string]>([
    ['nobody named', {}, {}, '/var/lib/holdfast/admin/admin.sock'],
    ['a data directory', { dataDir: '/a' }, { HOLDFAST_DATA_DIR: '/b' }, '/a/admin/admin.sock'],
    ['its variable', {}, { HOLDFAST_DATA_DIR: '/b' }, '/b/admin/admin.sock'],
    ['an empty variable', {}, { HOLDFAST_DATA_DIR: '', HOLDFAST_ADMIN: '' }, '/var/lib/holdfast/admin/admin.sock'],
    ['a server', { admin: 'control', adminCert: '/c' }, {}, 'control 9194 /c'],
    ['its variables', {}, { HOLDFAST_ADMIN: 'control:1', HOLDFAST_ADMIN_CERT: '/c' }, 'control 1 /c'],
    [
      'flags over variables',
      { admin: '[fd00::1]:2', adminCert: '/d' },
      { HOLDFAST_ADMIN: 'control', HOLDFAST_ADMIN_CERT: '/c' },
      'fd00::1 2 /d',
    ],
    [
      'a server over a data directory of the variable',
      {},
      { HOLDFAST_ADMIN: 'control', HOLDFAST_ADMIN_CERT: '/c', HOLDFAST_DATA_DIR: '/b' },
      'control 9194 /c',
    ],
    [
      'a server and a folder by flags',
      { admin: 'control', adminCert: '/c', dataDir: '/a' },
      {},
      '--data-dir and --admin name two daemons: leave one of them out',
    ],
    [
      'a folder by a flag against the variable of a server',
      { dataDir: '/a' },
      { HOLDFAST_ADMIN: 'control', HOLDFAST_ADMIN_CERT: '/c' },
      '--data-dir and HOLDFAST_ADMIN name two daemons: leave one of them out',
    ],
    ['no host', { admin: 'a b', adminCert: '/c' }, {}, 'expected host or host:port for the control plane, found a b'],
    ['no port', { admin: 'control:0', adminCert: '/c' }, {}, 'expected host or host:port for the control plane, found control:0'],
    [
      'no certificate',
      { admin: 'control' },
      { HOLDFAST_ADMIN_CERT: '' },
      'to ask control, name the folder of your certificate with --admin-cert or HOLDFAST_ADMIN_CERT',
    ],
  ])('%s', (_, options, env, expected) => {
    expect(shown(targetOf(options, env))).toBe(expected);
  });

  test('./.holdfast where there is one', async () => {
    const before = process.cwd();
    const folder = await tempFolder();
    await mkdir(join(folder, '.holdfast'));
    onTestFinished(() => process.chdir(before));
    process.chdir(folder);
    expect(shown(targetOf({}, {}))).toBe(join(process.cwd(), '.holdfast/admin/admin.sock'));
  });
});

describe('verbs over the network', () => {
  test('read and change as at the socket', async () => {
    const rig = await remoteAdminRig();
    const admin = await rig.pair('admin');
    expect(await rig.remoteCli(admin, ['cordon', 'n1'])).toMatchObject({ code: 0, out: 'node/n1 cordoned\n' });
    expect((await rig.remoteCli(admin, ['nodes'])).out).toContain('unknown,cordoned');
    const env = { HOLDFAST_ADMIN: `localhost:${rig.server.port}`, HOLDFAST_ADMIN_CERT: await rig.folderOf(admin) };
    expect((await run(['nodes', '-o', 'json'], { env })).out).toContain('"cordoned": true');
  });

  test('a role that does not suffice is exit code 1, with what to do', async () => {
    const rig = await remoteAdminRig();
    expect(await rig.remoteCli(await rig.pair('viewer'), ['token', 'create'])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^error: admin\.not_allowed: admin:viewer has the role viewer.*what to do: .*cert create/s),
    });
  });

  test('a server that is not there is exit code 3', async () => {
    const rig = await remoteAdminRig();
    await rig.server.stop();
    const folder = await rig.folderOf(await rig.pair('viewer'));
    expect(await run(['status', '--admin', '127.0.0.1:1', '--admin-cert', folder])).toMatchObject({ code: 3 });
    expect(await run(['status', '--admin', 'no-such-host.invalid', '--admin-cert', folder])).toMatchObject({
      code: 3,
      err: expect.stringContaining('the name of no-such-host.invalid:9194 is not known'),
    });
  });

  test('a folder without a certificate is said to be one', async () => {
    const folder = await tempFolder();
    expect(await run(['status', '--admin', 'localhost', '--admin-cert', folder])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/certificate\.unusable: .* has no admin\.crt, admin\.key and admin-ca\.crt/),
    });
    expect((await run(['status', '--admin', ''])).code).toBe(2);
  });
});

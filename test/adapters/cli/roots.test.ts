import { describe, expect, test } from 'vitest';
import { fleetCliRig } from '../../support/fleet-cli-rig.js';

const user = (nid: string) => ({ nid, serial: 'a1', notAfter: Date.now() + 86_400_000 });

describe('F1: ca', () => {
  test('rotates: what happens is said, the former root stays until it is retired, and both are listed', async () => {
    const { cli, roots, audit } = await fleetCliRig();
    const rotated = await cli(['ca', 'rotate', 'nodes', '-y']);
    expect(rotated).toMatchObject({ code: 0, out: `nodes 2 certifies from now on: SHA-256 ${'2'.repeat(64)}\n` });
    expect(rotated.err).toContain('Then run `holdfast ca retire nodes`.');
    roots.users = [user('n-1'), user('n-2')];
    const { out, err } = await cli(['ca', 'list']);
    expect(out.split('\n').map((line) => line.replace(/ {2,}/g, ' | ').replace(/[\d]{64}/, 'SHA'))).toEqual([
      'ROOT | STATE | EXPIRES IN | IN USE BY | SHA-256',
      'registration | certifies | 3650d | - | SHA',
      'nodes | certifies | 3650d | - | SHA',
      expect.stringMatching(/^nodes \| replaced \d+s ago \| 3650d \| 2 nodes \| SHA$/),
      '',
    ]);
    expect(err).toBe('the former root of nodes is in use by n-1, n-2\n');
    const [, nodes] = JSON.parse((await cli(['ca', 'list', '-o', 'json'])).out).roots;
    expect(nodes).toMatchObject({ name: 'nodes', former: { serial: '1', inUse: [{ node: 'n-1' }, { node: 'n-2' }] } });
    expect(audit.dump()).toContain('admin.rotate_root');
  });

  test('retire is refused while it is in use; with --force it is said who has to register again', async () => {
    const { cli, roots, audit } = await fleetCliRig();
    await cli(['ca', 'rotate', 'nodes', '-y']);
    roots.users = [user('n-1')];
    expect(await cli(['ca', 'retire', 'nodes', '-y'])).toMatchObject({ code: 1, err: expect.stringContaining('root_in_use') });
    const forced = await cli(['ca', 'retire', 'nodes', '-y', '--force']);
    expect(forced).toEqual({ code: 0, out: 'nodes 1 is retired\nn-1 has to register again\n', err: '' });
    expect(audit.dump()).toContain('admin.retire_root');
  });

  test.each([
    ['nodes', [], 'These nodes have valid certificates of it: n-1. So it is refused.'],
    ['nodes', ['--force'], 'These nodes have valid certificates of it: n-1. They are revoked, and have to register again.'],
    ['registration', [], 'Machines that have only the former registration-ca.crt cannot register any more.'],
  ])('asks before it retires that of %s %j', async (name, more, consequence) => {
    const { cli, roots } = await fleetCliRig();
    await cli(['ca', 'rotate', name, '-y']);
    roots.users = [user('n-1')];
    const asked = await cli(['ca', 'retire', name, ...more], { stdin: 'no\n', interactive: true });
    expect(asked.code).toBe(1);
    expect(asked.err).toContain(consequence);
    expect(asked.err).toContain('nothing was changed');
    expect((await roots.list()).find((root) => root.name === name)?.former).toBeDefined();
  });

  test('a root that there is not, and one that cannot be rotated yet', async () => {
    const { cli } = await fleetCliRig();
    expect(await cli(['ca', 'rotate', 'people', '-y'])).toMatchObject({ code: 1, err: expect.stringContaining('unknown_root') });
    await cli(['ca', 'rotate', 'nodes', '-y']);
    expect(await cli(['ca', 'rotate', 'nodes', '-y'])).toMatchObject({ code: 1, err: expect.stringContaining('root_rotating') });
  });
});

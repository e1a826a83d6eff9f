import { describe, expect, test } from 'vitest';
import type { NodeName } from '../../../src/domain/identity/model.js';
import type { Nid } from '../../../src/domain/link/model.js';
import { formatNodeInfo, type NodeInfo, nodeInfoKey } from '../../../src/domain/node/model.js';
import type { FakeControlStore } from '../../fakes/fake-control-store.js';
import { fleetCliRig } from '../../support/fleet-cli-rig.js';
import { agentFacts, n1, n2, options, settle } from '../../support/fleet-rig.js';

async function bindName(store: FakeControlStore, nid: Nid, name: string): Promise<void> {
  await store.commit([], [{ key: `log/name-of/${nid}`, value: name }], options);
}

function infoOf(hostname: string): NodeInfo {
  return {
    ...{ hostname, architecture: 'x64', addresses: [], cpu: { count: 2 }, versions: {}, version: '1' },
    ...{ labels: {}, subsystems: {} },
  };
}

describe('nodes', () => {
  test('who there is and how it is', async () => {
    const { cli, connect, registrations, clock, store, cluster } = await fleetCliRig();
    registrations.register(n2);
    await bindName(store, n1, 'web-1');
    await clock.advance(30_001);
    clock.setWall(Date.now());
    const { beat } = await connect();
    await beat('b', { status: 'ready', version: '1.2.3' });
    const { out, err } = await cli(['nodes']);
    expect(out.replace(/\d+s ago/, 'AGO   ')).toBe(
      [
        'NODE  HOST   STATE    STATUS  SEEN    VERSION  OS         ADDRESS         UNANSWERED',
        'n1    web-1  online   ready   AGO     1.2.3    debian-12  192.0.2.1:4000  0',
        'n2    -      offline  -       never   -        debian-12  -               0',
        '',
      ].join('\n'),
    );
    expect(err).toBe('');
    const { nodes } = JSON.parse((await cli(['nodes', '-o', 'json'])).out);
    expect(nodes).toMatchObject([{ node: 'n1', state: 'online', registeredAt: '2026-01-01T00:00:00.000Z' }, { node: 'n2' }]);
    cluster.write({ key: nodeInfoKey('web-1' as NodeName), value: formatNodeInfo(infoOf('web-1.example')) });
    expect((await cli(['nodes'])).out).toContain('\nn1    web-1.example  online ');
    expect((await cli(['describe', 'node/n1'])).out).toContain('hostname: web-1.example');
  });

  test('B4: what is wrong with one is said', async () => {
    const { cli, connect } = await fleetCliRig();
    const { beat } = await connect();
    const clone = connect({ agent: agentFacts({ instance: 'i9', boot: 'b9', hardware: 'h9' }) }).catch(() => {});
    await settle();
    await beat();
    await clone;
    expect((await cli(['nodes'])).err).toMatch(/^warning: n1: DUPLICATE_NODE: /);
  });

  test('none yet', async () => {
    const { cli, registrations } = await fleetCliRig();
    await registrations.remove(n1, { signal: new AbortController().signal });
    expect(await cli(['nodes'])).toMatchObject({ code: 0, out: '', err: expect.stringContaining('holdfast token create') });
  });

  test('cordon and uncordon', async () => {
    const { cli } = await fleetCliRig();
    expect(await cli(['cordon', 'n1'])).toEqual({ code: 0, out: 'node/n1 cordoned\n', err: '' });
    expect((await cli(['nodes'])).out).toContain('unknown,cordoned');
    expect((await cli(['uncordon', 'n1', '-o', 'json'])).out).toContain('"cordoned": false');
    expect(await cli(['cordon', 'n9'])).toMatchObject({ code: 1, err: expect.stringContaining('there is no node n9') });
  });
});

describe('revoke', () => {
  test('F4: one certificate by its serial, however that is written; who asked is audited', async () => {
    const { cli, registrations, audit } = await fleetCliRig();
    const { nodes } = JSON.parse((await cli(['nodes', '-o', 'json'])).out);
    expect(nodes[0].serial).toBe('5e0');
    expect(await cli(['revoke', '5E:0', '-y', '--reason', 'stolen'])).toEqual({
      ...{ code: 0, err: '' },
      out: 'certificate/5E:0 revoked\n',
    });
    expect([...registrations.revoked]).toEqual(['5e0']);
    expect(audit.records).toMatchObject([
      { type: 'admin.revoke_certificate', tag: '5e0', line: 'decision' },
      { line: 'outcome', result: 'done' },
    ]);
  });

  test('one that nobody has, and what is no serial', async () => {
    const { cli } = await fleetCliRig();
    expect(await cli(['revoke', 'ff', '-y'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('fleet.unknown_certificate'),
    });
    expect(await cli(['revoke', 'n1', '-y'])).toMatchObject({ code: 1, err: expect.stringContaining('hex digits') });
  });

  test('asks first', async () => {
    const { cli, registrations } = await fleetCliRig();
    expect((await cli(['revoke', '5e0'])).code).toBe(2);
    expect(await cli(['revoke', '5e0'], { interactive: true, stdin: 'n\n' })).toMatchObject({ code: 1, out: '' });
    expect((await cli(['revoke', '5e0', '-o', 'json'], { interactive: true, stdin: 'y\n' })).code).toBe(0);
    expect(registrations.revoked.size).toBe(1);
  });
});

describe('delete node', () => {
  test.each([[['delete', 'node', 'n1', '--yes']], [['delete', 'nodes', 'n1', '-y']], [['delete', 'node/n1', '-y']]])(
    '%j removes it',
    async (args) => {
      const { cli } = await fleetCliRig();
      expect(await cli(args)).toEqual({ code: 0, out: 'node/n1 removed, its certificates are revoked\n', err: '' });
      expect((await cli(['nodes'])).out).toBe('');
    },
  );

  test('asks on a terminal, and does nothing without a yes', async () => {
    const { cli, registrations } = await fleetCliRig();
    for (const stdin of ['', 'n\n', 'yesterday\n']) {
      const ran = await cli(['delete', 'node', 'n1'], { interactive: true, stdin });
      expect(ran).toMatchObject({ code: 1, out: '', err: expect.stringMatching(/^remove node n1\?.*nothing was changed\n$/s) });
    }
    expect(await registrations.list({ signal: new AbortController().signal })).toHaveLength(1);
    expect(await cli(['delete', 'node', 'n1'], { interactive: true, stdin: 'y\n' })).toMatchObject({ code: 0 });
  });

  test.each([
    [['delete', 'node', 'n1'], '--yes'],
    [['delete', 'node'], 'which nodes'],
    [['delete', 'node/', '--yes'], 'which nodes'],
    [['delete', 'node/n1', 'service/a', '--yes'], 'which nodes'],
    [['delete', 'node', 'n1', '--yes', '--dry-run'], '--dry-run'],
    [['delete', 'node', 'n1', '--yes', '-f', 'x.yaml'], '-f'],
  ])('%j is no command, code 2', async (args, message) => {
    const { cli } = await fleetCliRig();
    expect(await cli(args)).toMatchObject({ code: 2, out: '', err: expect.stringContaining(message) });
    expect((await cli(['nodes'])).out).toContain('n1');
  });

  test('resources are deleted as before', async () => {
    const { cli } = await fleetCliRig();
    expect(await cli(['delete', 'service', 'x'])).toMatchObject({ code: 1, err: expect.stringContaining('resource.not_found') });
  });
});

describe('token', () => {
  test('create prints the token alone, and the rest beside it', async () => {
    const { cli } = await fleetCliRig();
    expect(await cli(['token', 'create'])).toEqual({
      ...{ code: 0, out: 't1.secret\n' },
      err: 'for one node of account acme, within 1h; it is not shown again\n',
    });
    const { out } = await cli(['token', 'create', '--ttl', '10m', '--replace', 'n1', '--account', 'other', '-o', 'json']);
    expect(JSON.parse(out)).toEqual({
      ...{ token: 't2.secret', id: 't2', account: 'other', replace: 'n1', usedBy: '' },
      ...{ createdAt: '2026-01-31T12:00:00.000Z', expiresAt: '2026-01-31T12:10:00.000Z' },
    });
    expect(await cli(['token', 'create', '--ttl', 'long'])).toMatchObject({ code: 2, err: expect.stringContaining('--ttl') });
  });

  test('list and revoke', async () => {
    const { cli, clock } = await fleetCliRig();
    expect(await cli(['token', 'list'])).toMatchObject({ code: 0, out: '', err: 'no token\n' });
    await cli(['token', 'create']);
    clock.setWall(Date.now());
    await cli(['token', 'create', '--ttl', '24h', '--replace', 'n1']);
    const { out } = await cli(['token', 'list']);
    expect(out).toMatch(
      /^TOKEN {2}ACCOUNT {2}FOR +AGE +STATE\nt1 {5}acme {5}a new node +\d+\w +(?:expired|expires in .*)\nt2 {5}acme {5}n1 +\d+s +expires in 24h\n$/,
    );
    expect(await cli(['token', 'revoke', 't1'])).toEqual({ code: 0, out: 'token/t1 revoked\n', err: '' });
    expect(await cli(['token', 'revoke', 't1'])).toMatchObject({ code: 1, err: expect.stringContaining('there is no token t1') });
    expect(JSON.parse((await cli(['token', 'list', '-o', 'json'])).out).tokens).toMatchObject([{ id: 't2' }]);
  });
});

import { describe, expect, test } from 'vitest';
import { memberId } from '../../../src/domain/etcd/model.js';
import { cliRig } from '../../support/cli-rig.js';
import { nodeCliRig } from '../../support/node-cli-rig.js';

async function rig(...addresses: readonly string[]) {
  const made = await nodeCliRig();
  const ids = addresses.map((address) => made.etcd.join(address));
  return { ...made, ids };
}

describe('etcd list', () => {
  test('who is there, and how each is', async () => {
    const { cli, etcd, ids } = await rig('10.0.0.1', '10.0.0.2');
    expect(await cli(['etcd', 'list'])).toEqual({
      code: 0,
      out: [
        'ID  NAME  ROLE    PEER                   CLIENT                 STATE',
        '1   m1    leader  https://10.0.0.1:2380  https://10.0.0.1:2379  healthy',
        '2   m2    voter   https://10.0.0.2:2380  https://10.0.0.2:2379  healthy',
        '',
      ].join('\n'),
      err: '',
    });
    etcd.kill(ids[1] ?? memberId(0n));
    const { code, out } = await cli(['etcd', 'list', '-o', 'json']);
    expect([code, JSON.parse(out).members[1]]).toEqual([
      4,
      {
        ...{ id: '2', name: 'm2', isLearner: false, isLeader: false, problem: 'connection refused' },
        ...{ peerUrls: ['https://10.0.0.2:2380'], clientUrls: ['https://10.0.0.2:2379'] },
      },
    ]);
  });

  test('an id that is no number of JSON is whole', async () => {
    const { cli, etcd } = await rig();
    etcd.join('10.0.0.1', { id: memberId(0xfedc_ba98_7654_3210n) });
    expect((await cli(['etcd', 'list'])).out).toContain('\nfedcba9876543210  ');
    expect(JSON.parse((await cli(['etcd', 'list', '-o', 'json'])).out).members[0].id).toBe('fedcba9876543210');
  });
});

describe('etcd remove', () => {
  test('asks first, and says what is left', async () => {
    const { cli, etcd } = await rig('10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4');
    const no = await cli(['etcd', 'remove', '4'], { interactive: true, stdin: 'n\n' });
    expect(no).toEqual({
      ...{ code: 1, out: '' },
      err: 'remove the etcd member m4 (4)? 3 voting members stay, of which 1 may fail. [y/N] nothing was removed\n',
    });
    expect(etcd.changes).toEqual([]);
    const yes = await cli(['etcd', 'remove', '4'], { interactive: true, stdin: 'y\n' });
    expect([yes.code, yes.out, etcd.changes]).toEqual([0, 'etcd/4 removed\n', ['remove 4']]);
  });

  test('fault row 61: of two, that none may fail afterwards', async () => {
    const { cli } = await rig('10.0.0.1', '10.0.0.2');
    const { err } = await cli(['etcd', 'remove', '2'], { interactive: true, stdin: 'n\n' });
    expect(err).toContain('1 voting member stays, and none may fail: the cluster would decide nothing.');
  });

  test('needs --yes where nobody can be asked, and then it is in the audit log', async () => {
    const { cli, etcd, audit } = await rig('10.0.0.1', '10.0.0.2', '10.0.0.3');
    expect(await cli(['etcd', 'remove', '1'])).toMatchObject({ code: 2, err: expect.stringContaining('needs --yes') });
    expect(JSON.parse((await cli(['etcd', 'remove', '1', '--yes', '-o', 'json'])).out)).toEqual({ removed: '1' });
    expect(etcd.changes).toEqual(['lead 2', 'remove 1']);
    const record = { type: 'admin.etcd_remove', tag: '1', who: `local:${process.geteuid?.()}` };
    expect(audit.records).toMatchObject([
      { ...record, line: 'decision', result: 'allowed' },
      { ...record, line: 'outcome', result: 'done' },
    ]);
  });

  test('what would lose the quorum, an unknown id and no id are refused', async () => {
    const { cli, etcd, ids } = await rig('10.0.0.1', '10.0.0.2', '10.0.0.3');
    etcd.kill(ids[2] ?? memberId(0n));
    expect(await cli(['etcd', 'remove', '2', '--yes'])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/etcd.refused: without m2 .*nothing was removed\n {2}what to do: look at `holdfast etcd list`/),
    });
    for (const args of [['9', '--yes'], ['9']])
      expect(await cli(['etcd', 'remove', ...args])).toMatchObject({
        code: 1,
        err: expect.stringContaining('etcd.unknown_member: the cluster has no member 9'),
      });
    expect((await cli(['etcd', 'remove', 'm2', '--yes'])).code).toBe(2);
    expect(etcd.changes).toEqual([]);
  });
});

describe('etcd add and promote', () => {
  test('a learner, what it is started with, and its vote', async () => {
    const { cli, etcd } = await rig('10.0.0.1');
    expect(await cli(['etcd', 'add', 'https://10.0.0.2:2380'])).toEqual({
      code: 0,
      out: 'etcd/2 added\n',
      err: `start it with --name NAME --initial-cluster-state existing --initial-cluster m1=https://10.0.0.1:2380,NAME=https://10.0.0.2:2380
and give it its vote when it has caught up: holdfast etcd promote 2
`,
    });
    expect(JSON.parse((await cli(['etcd', 'add', 'https://10.0.0.2:2380', '-o', 'json'])).out)).toEqual({
      id: '2',
      initialCluster: 'm1=https://10.0.0.1:2380,NAME=https://10.0.0.2:2380',
    });
    expect((await cli(['etcd', 'promote', '2'])).err).toContain('etcd.refused: etcd: it is not in sync');
    etcd.members = etcd.members.map((member) => ({ ...member, problem: undefined }));
    expect(await cli(['etcd', 'promote', '2'])).toEqual({ code: 0, out: 'etcd/2 promoted\n', err: '' });
    expect((await cli(['etcd', 'promote', '7'])).err).toContain('etcd.unknown_member');
  });

  test('a URL that is none', async () => {
    const { cli } = await rig('10.0.0.1');
    expect((await cli(['etcd', 'add', 'https://host:2380'])).err).toContain(
      'https://host:2380 is no peer URL, as https://10.0.0.4:2380',
    );
  });
});

test('a daemon that is no agent of a fleet has none', async () => {
  const { cli } = await cliRig();
  expect(await cli(['etcd', 'list'])).toMatchObject({ code: 1, err: expect.stringContaining('admin.not_offered') });
});

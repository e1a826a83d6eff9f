import { test as anywhere, expect } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { GrpcEtcdMembers } from '../../../src/adapters/etcd/grpc-etcd-members.js';
import { EtcdMembershipService } from '../../../src/app/etcd/etcd-membership-service.js';
import { EtcdRemovalEffect } from '../../../src/app/etcd/etcd-removal-effect.js';
import type { EffectContext } from '../../../src/app/instruction/effects.js';
import { formatMemberId } from '../../../src/domain/etcd/model.js';
import { type IpAddress, ipAddress } from '../../../src/domain/kernel/network.js';
import type { TaskId } from '../../../src/ports/instruction/task-runner.js';
import { etcdMembersContract } from '../../contract/etcd-members.contract.js';
import { FakeEtcdMembers } from '../../fakes/fake-etcd-members.js';
import { EtcdCluster } from '../../support/etcd-cluster.js';
import { hasEtcd } from '../../support/etcd-rig.js';

const test = anywhere.skipIf(!hasEtcd);
const options = { signal: new AbortController().signal };
const THREE = ['127.0.0.2', '127.0.0.3', '127.0.0.10'];
/** etcd takes 5 s of connections for proof of a quorum; these tests need not wait for it. */
const AT_ONCE = ['--strict-reconfig-check=false'];

etcdMembersContract('etcd', test, async () => {
  const cluster = await EtcdCluster.start(THREE, AT_ONCE);
  return {
    members: cluster.members('127.0.0.2'),
    newUrl: cluster.peerUrl('127.0.0.1'),
    async loseQuorum() {
      for (const address of THREE.slice(1)) await cluster.kill(address);
    },
  };
});

etcdMembersContract('fake', anywhere, async () => {
  const members = new FakeEtcdMembers();
  const [, second, third] = THREE.map((address) => members.join(address));
  return {
    members,
    newUrl: 'https://127.0.0.1:2380',
    async loseQuorum() {
      for (const id of [second, third]) if (id !== undefined) members.kill(id);
    },
  };
});

async function cluster(flags?: readonly string[]) {
  const etcd = await EtcdCluster.start(THREE, flags);
  const members = etcd.members('127.0.0.2');
  const service = new EtcdMembershipService({ members, clock: new SystemClock() });
  const effect = new EtcdRemovalEffect(service);
  const steps: string[] = [];
  const remove = (text: string, step?: string) => {
    const reached = async (now: string) => void steps.push(now);
    const context: EffectContext = { ...options, task: 'none' as TaskId, receivedAt: 0, step, reached };
    return effect.run({ do: 'remove_etcd_member', address: ipAddress(text) ?? ('none' as IpAddress) }, context);
  };
  const list = async () => (await members.list(true, options)).map(({ name }) => name).toSorted();
  return { etcd, members, service, remove, list, steps };
}

test('127.0.0.1 never removes 127.0.0.10; the leader moves first; of two the last vote stays', { timeout: 120_000 }, async () => {
  const { members, remove, list, steps } = await cluster();
  await remove('127.0.0.1');
  expect([await list(), steps]).toEqual([['m10', 'm2', 'm3'], []]);
  const leader = (await members.list(true, options)).find(({ isLeader }) => isLeader);
  if (leader === undefined) throw new Error('nobody leads');
  await remove(leader.peerUrls[0]?.match(/[\d.]{7,}/)?.[0] ?? '');
  expect(steps).toEqual([`member ${formatMemberId(leader.id)}`]);
  const left = await members.list(true, options);
  expect(left.map(({ id }) => id)).not.toContain(leader.id);
  expect(left.filter(({ isLeader }) => isLeader)).toHaveLength(1);
  expect(left).toHaveLength(2);
});

test('of 3 members with one dead, a healthy one cannot go, the dead one can; then a new one joins and votes', {
  timeout: 120_000,
}, async () => {
  const { etcd, members, service, remove, list } = await cluster(AT_ONCE);
  await etcd.kill('127.0.0.10');
  await expect(remove('127.0.0.3')).rejects.toThrow(
    /^etcd.refused: without m3 .*remove or mend m10 .*first; nothing was removed$/,
  );
  await expect(service.add(etcd.peerUrl('127.0.0.1'), options)).rejects.toThrow(/m10 .* is not healthy: remove it first/);
  expect(await list()).toEqual(['m10', 'm2', 'm3']);
  await remove('127.0.0.10');
  expect(await list()).toEqual(['m2', 'm3']);
  const { id, initialCluster } = await service.add(etcd.peerUrl('127.0.0.1'), options);
  etcd.join('127.0.0.1', initialCluster);
  await etcd.settled(3, '127.0.0.2');
  await expect.poll(() => service.promote(id, options).then(() => 'promoted', String), { timeout: 30_000 }).toBe('promoted');
  expect((await members.list(true, options)).map(({ isLearner }) => isLearner)).toEqual([false, false, false]);
});

test('test 11: a member re-added on the same address between the death and the second attempt stays', {
  timeout: 120_000,
}, async () => {
  const { etcd, service, members, remove } = await cluster(AT_ONCE);
  const old = (await members.list(true, options)).find(({ name }) => name === 'm10');
  if (old === undefined) throw new Error('no m10');
  await service.remove(old.id, options);
  await etcd.kill('127.0.0.10');
  const { id, initialCluster } = await service.add(etcd.peerUrl('127.0.0.10'), options);
  etcd.join('127.0.0.10', initialCluster, 'again');
  await etcd.settled(3, '127.0.0.2');
  await remove('127.0.0.10', `member ${formatMemberId(old.id)}`);
  expect((await members.list(true, options)).map((member) => member.id)).toContain(id);
});

test('a frozen member is not healthy after 2 s, and can be removed', { timeout: 120_000 }, async () => {
  const { etcd, members, remove, list } = await cluster(AT_ONCE);
  etcd.freeze('127.0.0.10');
  await expect
    .poll(
      async () => (await members.list(true, options)).filter(({ problem }) => problem !== undefined).map(({ name }) => name),
      {
        timeout: 30_000,
      },
    )
    .toEqual(['m10']);
  await remove('127.0.0.10');
  expect(await list()).toEqual(['m2', 'm3']);
});

test('a member removes itself, and the others say so', { timeout: 120_000 }, async () => {
  const { etcd, remove } = await cluster(AT_ONCE);
  await remove('127.0.0.2');
  expect((await etcd.members('127.0.0.3').list(true, options)).map(({ name }) => name).toSorted()).toEqual(['m10', 'm3']);
});

anywhere('a machine without an etcd is told so', async () => {
  const files = { ca: '/nowhere/ca.crt', certificate: '/nowhere/peer.crt', key: '/nowhere/peer.key' };
  await expect(new GrpcEtcdMembers({ url: 'https://127.0.0.1:1', files }).list(false, options)).rejects.toThrow(
    'etcd.unavailable: this machine has no etcd that can be asked: /nowhere/ca.crt cannot be read: ENOENT',
  );
});

import { describe, expect, test } from 'vitest';
import { EtcdMembershipService } from '../../../src/app/etcd/etcd-membership-service.js';
import { formatMemberId, memberId } from '../../../src/domain/etcd/model.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeEtcdMembers } from '../../fakes/fake-etcd-members.js';
import { acknowledging, contentOf, InstructionWorld } from '../../support/instruction-rig.js';

const options = { signal: new AbortController().signal };

function cluster(...addresses: readonly string[]) {
  const members = new FakeEtcdMembers();
  const ids = addresses.map((address) => members.join(address));
  const clock = new FakeClock();
  return { members, ids, clock, service: new EtcdMembershipService({ members, clock }) };
}

describe('removal', () => {
  test('a leader hands over first', async () => {
    const { members, ids, service } = cluster('10.0.0.1', '10.0.0.2', '10.0.0.3');
    const [leader = memberId(0n)] = ids;
    await service.remove(leader, options);
    expect(members.changes).toEqual(['lead 2', 'remove 1']);
  });

  test('when nobody takes over the lead within 10 s each, nothing is removed', async () => {
    const { members, ids, clock, service } = cluster('10.0.0.1', '10.0.0.2', '10.0.0.3');
    const [leader = memberId(0n)] = ids;
    members.failNext('moveLeader', 'hang');
    const removed = service.remove(leader, options).then(
      () => 'removed',
      (error: unknown) => String(error),
    );
    await clock.advance(9_999);
    members.failNext('moveLeader', new AgentError('etcd.unavailable', { problem: 'etcd: no' }));
    await clock.advance(1);
    expect(await removed).toBe(
      'AgentError: etcd.refused: nobody takes over the lead (2: etcd.unavailable: it took longer than 10 s; 3: etcd.unavailable: etcd: no); nothing was removed',
    );
    expect(members.members).toHaveLength(3);
  });

  test('what would lose the quorum, and the last one, are refused', async () => {
    const three = cluster('10.0.0.1', '10.0.0.2', '10.0.0.3');
    const [, healthy = memberId(0n), dead = memberId(0n)] = three.ids;
    three.members.kill(dead);
    await expect(three.service.remove(healthy, options)).rejects.toThrow(/^etcd.refused: without m2 .*; nothing was removed$/);
    await three.service.remove(dead, options);
    expect(three.members.changes).toEqual(['remove 3']);
    const one = cluster('10.0.0.1');
    await expect(one.service.remove(memberId(1n), options)).rejects.toThrow('is the last voting member; nothing was removed');
  });

  test('an answer that was lost is asked for again, for 30 s', async () => {
    const { members, ids, clock, service } = cluster('10.0.0.1', '10.0.0.2', '10.0.0.3');
    const [, second = memberId(0n), third = memberId(0n)] = ids;
    members.failNext('remove', new AgentError('etcd.refused', { problem: 'etcd: etcdserver: unhealthy cluster' }));
    const removed = service.remove(third, options);
    await clock.advance(1_000);
    await removed;
    members.join('10.0.0.4');
    members.remove = async () => {
      throw new AgentError('etcd.unavailable', { problem: 'etcd: lost' });
    };
    const failed = service.remove(second, options).catch((error: unknown) => String(error));
    await clock.advance(31_000);
    expect(await failed).toBe('AgentError: etcd.unavailable: 2 is not gone after 30 s: etcd.unavailable: etcd: lost');
  });

  test('two at once are one after the other: the second is judged by what the first has left', async () => {
    const { members, ids, service } = cluster('10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4');
    members.kill(ids[3] ?? memberId(0n));
    const [, second = memberId(0n), third = memberId(0n)] = ids;
    const results = await Promise.allSettled([service.remove(second, options), service.remove(third, options)]);
    // Each alone would do.
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(members.changes).toEqual(['remove 2']);
  });

  test('an id that nobody has', async () => {
    const { service } = cluster('10.0.0.1');
    await expect(service.remove(memberId(9n), options)).rejects.toThrow('etcd.unknown_member: the cluster has no member 9');
    await expect(service.promote(memberId(9n), options)).rejects.toThrow('etcd.unknown_member');
  });
});

describe('addition', () => {
  test('a learner, told what it is started with; again it is the same; then it gets its vote', async () => {
    const { members, service } = cluster('10.0.0.1', '10.0.0.2');
    const added = await service.add('https://10.0.0.3:2380', options);
    expect(added).toEqual({ id: 3n, initialCluster: 'm1=https://10.0.0.1:2380,m2=https://10.0.0.2:2380' });
    expect(await service.add('https://10.0.0.3:2380', options)).toEqual(added);
    await expect(service.promote(added.id, options)).rejects.toThrow('etcd.refused');
    members.members = members.members.map((member) => ({ ...member, name: member.name || 'm3', problem: undefined }));
    await service.promote(added.id, options);
    expect(members.changes).toEqual(['add 3', 'promote 3']);
  });

  test('fault row 62: a dead one is removed first', async () => {
    const { members, ids, service } = cluster('10.0.0.1', '10.0.0.2', '10.0.0.3');
    const dead = ids[2] ?? memberId(0n);
    members.kill(dead);
    await expect(service.add('https://10.0.0.3:2380', options)).rejects.toThrow('remove it first');
    await service.remove(dead, options);
    await service.add('https://10.0.0.3:2380', options);
    expect(members.changes).toEqual(['remove 3', 'add 4']);
  });
});

describe('REMOVE_ETCD_MEMBER', () => {
  async function answered(world: InstructionWorld, payload: unknown, tag = 't1'): Promise<string> {
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    process.deliver('REMOVE_ETCD_MEMBER', tag, payload);
    await process.settle(31_000);
    process.drop();
    return session
      .of(tag)
      .map((message) => `${message.type} ${contentOf(message)}`)
      .join('\n');
  }

  test('10.0.0.1 never removes 10.0.0.10, and absent is success', async () => {
    const world = new InstructionWorld();
    for (const address of ['10.0.0.10', '10.0.0.11', '110.0.0.1']) world.etcd.join(address);
    expect(await answered(world, { node_ip: '10.0.0.1' })).toBe('NO_CONTENT {}');
    expect(world.etcd.changes).toEqual([]);
    expect(await answered(world, { node_ip: '10.0.0.11' }, 't2')).toBe('NO_CONTENT {}');
    expect(world.etcd.changes).toEqual(['remove 2']);
  });

  test('IPv6 in any of its forms', async () => {
    const world = new InstructionWorld();
    for (const address of ['fd00::1', 'fd00::2', 'fd00::3']) world.etcd.join(address);
    expect(await answered(world, { node_ip: 'FD00:0:0::0:3' })).toBe('NO_CONTENT {}');
    expect(world.etcd.changes).toEqual(['remove 3']);
  });

  test.each<[unknown, string]>([
    [{}, 'node_ip: text'],
    [{ node_ip: 'host' }, 'node_ip: an IPv4 or IPv6 address'],
    [{ node_ip: '10.0.0' }, 'node_ip: an IPv4 or IPv6 address'],
  ])('%j is refused', async (payload, problem) => {
    expect(await answered(new InstructionWorld(), payload)).toBe(`ERROR INVALID: REMOVE_ETCD_MEMBER: ${problem}`);
  });

  test('what would lose the quorum is an ERROR that says why', async () => {
    const world = new InstructionWorld();
    const ids = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => world.etcd.join(address));
    world.etcd.kill(ids[2] ?? memberId(0n));
    expect(await answered(world, { node_ip: '10.0.0.2' })).toMatch(/^ERROR etcd.refused: without m2 .*nothing was removed$/);
    expect(world.etcd.changes).toEqual([]);
  });

  test('test 11, A8: a member re-added on the same address between the death and the second attempt stays', async () => {
    const world = new InstructionWorld();
    for (const address of ['10.0.0.1', '10.0.0.2', '10.0.0.3']) world.etcd.join(address);
    const first = await world.start();
    first.connect(acknowledging(first));
    const remove = world.etcd.remove.bind(world.etcd);
    // The removal takes effect, and the process dies before it hears of it.
    world.etcd.remove = async (id, given) => {
      await remove(id, given);
      return new Promise(() => {});
    };
    first.deliver('REMOVE_ETCD_MEMBER', 't1', { node_ip: '10.0.0.3' });
    await first.settle();
    first.journal.cut(() => 'before');
    first.drop();
    world.etcd.remove = remove;
    const again = world.etcd.join('10.0.0.3');
    const second = await world.start();
    const session = second.connect(acknowledging(second));
    await second.settle(31_000);
    expect(session.dump()).toBe('t1 NO_CONTENT {}');
    expect(world.etcd.members.map(({ id }) => formatMemberId(id))).toEqual(['1', '2', formatMemberId(again)]);
  });

  test('A8: died before the removal, the second attempt removes the same member', async () => {
    const world = new InstructionWorld();
    for (const address of ['10.0.0.1', '10.0.0.2', '10.0.0.3']) world.etcd.join(address);
    const first = await world.start();
    first.connect(acknowledging(first));
    world.etcd.failNext('moveLeader', 'hang');
    first.deliver('REMOVE_ETCD_MEMBER', 't1', { node_ip: '10.0.0.1' });
    await first.settle();
    first.journal.cut(() => 'before');
    first.drop();
    const second = await world.start();
    const session = second.connect(acknowledging(second));
    await second.settle(1_000);
    expect(session.dump()).toBe('t1 NO_CONTENT {}');
    expect(world.etcd.changes).toEqual(['lead 2', 'remove 1']);
  });
});

import { type test as anyTest, describe, expect } from 'vitest';
import type { MemberId } from '../../src/domain/etcd/model.js';
import type { EtcdMembers } from '../../src/ports/etcd/etcd-members.js';

const options = { signal: new AbortController().signal };

export interface EtcdMembersRig {
  /** Of a cluster of three that is well. */
  readonly members: EtcdMembers;
  /** Of a member that will never start. */
  readonly newUrl: string;
  /** Two of the three end for good, but not the one that is asked. */
  readonly loseQuorum: () => Promise<void>;
}

/** Every EtcdMembers must pass. */
export function etcdMembersContract(
  name: string,
  test: ReturnType<typeof anyTest.skipIf>,
  make: () => Promise<EtcdMembersRig>,
): void {
  describe(`EtcdMembers: ${name}`, () => {
    test('three voting members are well, one of them leads, and another one when it is told to', {
      timeout: 60_000,
    }, async () => {
      const { members } = await make();
      const before = await members.list(true, options);
      expect(before.map(({ problem, isLearner }) => [problem, isLearner])).toEqual(Array(3).fill([undefined, false]));
      expect(before.filter(({ isLeader }) => isLeader)).toHaveLength(1);
      const next = before.find(({ isLeader }) => !isLeader)?.id as MemberId;
      await members.moveLeader(next, options);
      await members.moveLeader(next, options);
      expect((await members.list(true, options)).filter(({ isLeader }) => isLeader).map(({ id }) => id)).toEqual([next]);
    });

    test('one that is added learns, has not started, cannot be promoted, and goes, also twice', { timeout: 60_000 }, async () => {
      const { members, newUrl } = await make();
      const id = await members.add(newUrl, options);
      const added = (await members.list(true, options)).find((member) => member.id === id);
      expect(added).toMatchObject({ name: '', peerUrls: [newUrl], clientUrls: [], isLearner: true, problem: expect.any(String) });
      await expect(members.promote(id, options)).rejects.toEqual(expect.objectContaining({ code: 'etcd.refused' }));
      await members.remove(id, options);
      await members.remove(id, options);
      expect(await members.list(true, options)).toHaveLength(3);
    });

    test('without a quorum nothing is agreed, and one still says whom it knows', { timeout: 60_000 }, async () => {
      const { members, loseQuorum } = await make();
      await loseQuorum();
      await expect(members.list(true, options)).rejects.toEqual(expect.objectContaining({ code: 'etcd.unavailable' }));
      const known = await members.list(false, options);
      expect(known).toHaveLength(3);
      expect(known.filter(({ problem }) => problem !== undefined).length).toBeGreaterThanOrEqual(2);
    });

    test('aborted calls reject', { timeout: 60_000 }, async () => {
      const { members } = await make();
      const aborted = { signal: AbortSignal.abort('enough') };
      await expect(members.list(true, aborted)).rejects.toBe('enough');
      await expect(members.remove(1n as MemberId, aborted)).rejects.toBe('enough');
    });
  });
}

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addressOf,
  type EtcdMember,
  formatMemberId,
  isAt,
  memberId,
  parseMemberId,
  peerUrl,
} from '../../../src/domain/etcd/model.js';
import { memberAt, planAddition, planRemoval, quorumOf, toleranceWithout } from '../../../src/domain/etcd/plan.js';
import { type IpAddress, ipAddress } from '../../../src/domain/kernel/network.js';

const ip = (text: string) => ipAddress(text) ?? ('none' as IpAddress);
const id = (value: number) => memberId(BigInt(value));

/** `L` leads, `v` votes, `d` votes and is dead, `n` has never started, `l` learns, `x` learns and is dead. Ids from 1 on. */
function cluster(text: string): readonly EtcdMember[] {
  return [...text].map((kind, at) => ({
    id: id(at + 1),
    name: kind === 'n' ? '' : `m${at + 1}`,
    peerUrls: [`https://10.0.0.${at + 1}:2380`],
    clientUrls: kind === 'n' ? [] : [`https://10.0.0.${at + 1}:2379`],
    isLearner: kind === 'l' || kind === 'x',
    isLeader: kind === 'L',
    problem: 'dnx'.includes(kind) ? 'no answer' : undefined,
  }));
}

describe('whose address it is', () => {
  test.each<[string, string, boolean]>([
    ['https://10.0.0.1:2380', '10.0.0.1', true],
    ['https://10.0.0.10:2380', '10.0.0.1', false],
    ['https://110.0.0.1:2380', '10.0.0.1', false],
    ['https://10.0.0.1', '10.0.0.1', true],
    ['http://10.0.0.1:2380/', '10.0.0.1', true],
    ['https://[fd00::1]:2380', 'fd00::1', true],
    ['https://[FD00:0:0:0:0:0:0:1]:2380', 'fd00::1', true],
    ['https://[fd00::10]:2380', 'fd00::1', false],
    ['https://[fd00::1]:2380', 'fd00::1:0', false],
    ['https://[::ffff:10.0.0.1]:2380', '10.0.0.1', true],
    ['https://[::ffff:a00:1]:2380', '10.0.0.1', true],
    ['https://10.0.0.1:2380', '::ffff:10.0.0.1', true],
    ['https://10.0.0.1.example:2380', '10.0.0.1', false],
    ['https://node-10.0.0.1:2380', '10.0.0.1', false],
    ['https://user@10.0.0.1:2380', '10.0.0.1', false],
    ['unix:///run/10.0.0.1', '10.0.0.1', false],
    ['', '10.0.0.1', false],
  ])('%s is at %s: %s', (url, address, expected) => {
    const [member] = cluster('v');
    expect(member && isAt({ ...member, peerUrls: [url] }, ip(address))).toBe(expected);
  });

  test('law: of all addresses only the very same one', () => {
    const address = fc.ipV4();
    fc.assert(
      fc.property(address, address, (a, b) => {
        const [member] = cluster('v');
        expect(member && isAt({ ...member, peerUrls: [`https://${a}:2380`] }, ip(b))).toBe(a === b);
      }),
    );
  });

  test('nobody, one, and two that somebody has to choose from', () => {
    const members = cluster('Lvv');
    expect(memberAt(members, ip('10.0.0.9'))).toEqual({ id: undefined });
    expect(memberAt(members, ip('10.0.0.2'))).toEqual({ id: id(2) });
    const both = members.map((member) => ({ ...member, peerUrls: ['https://10.0.0.2:2380'] })).slice(1);
    expect(memberAt(both, ip('10.0.0.2'))).toEqual({
      problem: 'm2 (2, https://10.0.0.2:2380) and m3 (3, https://10.0.0.2:2380) have the address 10.0.0.2: remove one by its id',
    });
  });
});

describe('removing a member', () => {
  test.each<[string, number, string]>([
    ['Lvv', 2, 'remove'],
    ['Lvv', 1, 'hand over to 2 3'],
    ['Lvv', 9, 'gone'],
    ['L', 1, 'm1 (1, https://10.0.0.1:2380) is the last voting member'],
    // Two, both well: what is left decides alone.
    ['Lv', 2, 'remove'],
    ['Lv', 1, 'hand over to 2'],
    // Fault row 61: two, of which one is dead, decide nothing any more.
    ['Ld', 2, 'the cluster has no quorum: 1 of 2 voting members are healthy, 2 are needed'],
    ['Ld', 1, 'the cluster has no quorum: 1 of 2 voting members are healthy, 2 are needed'],
    // Of three with one dead, the dead can go, a healthy one cannot.
    ['Lvd', 3, 'remove'],
    [
      'Lvd',
      2,
      'without m2 (2, https://10.0.0.2:2380) 1 of 2 voting members would be healthy, and 2 are needed: remove or mend m3 (3, https://10.0.0.3:2380) first',
    ],
    ['Lvd', 1, 'without m1'],
    ['Lvn', 3, 'remove'],
    ['Lvn', 2, 'remove or mend the unstarted member (3, https://10.0.0.3:2380) first'],
    ['Lvvvd', 4, 'remove'],
    ['Lvvdd', 3, 'without m3'],
    ['Lvvdd', 5, 'remove'],
    // A learner has no vote, and leads nobody.
    ['Lvl', 3, 'remove'],
    ['Lx', 2, 'remove'],
    ['Ll', 1, 'm1 (1, https://10.0.0.1:2380) is the last voting member'],
    ['Lvld', 1, 'without m1'],
    ['Lvvl', 1, 'hand over to 2 3'],
    ['Lvvvd', 1, 'hand over to 2 3 4'],
  ])('%s, the %ith: %s', (members, target, expected) => {
    const plan = planRemoval(cluster(members), id(target));
    const text = { gone: () => 'gone', remove: () => 'remove', refused: '', hand_over: '' };
    const said =
      plan.kind === 'refused'
        ? plan.problem
        : plan.kind === 'hand_over'
          ? `hand over to ${plan.to.join(' ')}`
          : text[plan.kind]();
    expect(said).toContain(expected);
  });

  const states = fc.array(fc.constantFrom('v', 'd', 'l', 'x', 'n'), { minLength: 1, maxLength: 7 });

  test('law: what is left decides, or nothing is removed; and what leads is not removed', () => {
    fc.assert(
      fc.property(states, fc.nat(7), fc.nat(7), (kinds, leader, target) => {
        const members = cluster(kinds.map((kind, at) => (at === leader && kind === 'v' ? 'L' : kind)).join(''));
        const plan = planRemoval(members, id(target + 1));
        if (plan.kind !== 'remove' && plan.kind !== 'hand_over') return;
        const left = members.filter((member) => !member.isLearner && member.id !== id(target + 1));
        const healthy = left.filter(({ problem }) => problem === undefined);
        expect(healthy.length).toBeGreaterThanOrEqual(quorumOf(left.length));
        expect(members.find((member) => member.id === id(target + 1))?.isLeader).toBe(plan.kind === 'hand_over');
        if (plan.kind === 'hand_over') expect(plan.to.every((next) => healthy.some((member) => member.id === next))).toBe(true);
      }),
    );
  });
});

describe('adding a member', () => {
  test.each<[string, string, string]>([
    ['L', 'https://10.0.0.9:2380', 'add'],
    ['Lvv', 'https://10.0.0.9:2380', 'add'],
    ['Lvv', 'https://10.0.0.2:2381', 'add'],
    ['Lvv', 'https://10.0.0.2:2380', 'm2 (2, https://10.0.0.2:2380) has this peer URL: remove it first, if it is dead'],
    ['Lvv', 'https://[::ffff:10.0.0.2]:2380', 'm2 (2, https://10.0.0.2:2380) has this peer URL'],
    // Fault row 62: the dead one is removed first.
    ['Lvd', 'https://10.0.0.9:2380', 'm3 (3, https://10.0.0.3:2380) is not healthy: remove it first, then add the new one'],
    ['Lvl', 'https://10.0.0.9:2380', 'm3 (3, https://10.0.0.3:2380) is a learner already: promote or remove it first'],
  ])('%s and %s: %s', (members, url, expected) => {
    const plan = planAddition(cluster(members), url);
    expect(plan.kind === 'refused' ? plan.problem : plan.kind).toContain(expected);
  });

  test('again, before it has started, is the same member', () => {
    const [first, added] = cluster('Ln');
    if (first === undefined || added === undefined) throw new Error('no members');
    const members = [first, { ...added, isLearner: true }];
    expect(planAddition(members, 'https://10.0.0.2:2380')).toEqual({ kind: 'added', id: id(2) });
  });
});

test('how many may fail afterwards', () => {
  const without = (members: string, target: number) => Object.values(toleranceWithout(cluster(members), id(target)));
  expect([without('Lvv', 3), without('Lvvvv', 5), without('Lvvvl', 5), without('Lv', 2), without('L', 1)]).toEqual([
    [2, 0],
    [4, 1],
    [4, 1],
    [1, 0],
    [0, 0],
  ]);
});

test('ids are written as etcdctl does', () => {
  const large = memberId(0xfedc_ba98_7654_3210n);
  expect(formatMemberId(large)).toBe('fedcba9876543210');
  expect(parseMemberId('FEDCBA9876543210')).toBe(large);
  for (const text of ['', 'g', '0x1', '12345678901234567', '-1']) expect(parseMemberId(text)).toBeUndefined();
});

test.each<[string, boolean]>([
  ['https://10.0.0.4:2380', true],
  ['http://[fd00::4]:2380', true],
  ['https://10.0.0.4', false],
  ['https://host:2380', false],
  ['https://10.0.0.4:2380/x', false],
  ['ftp://10.0.0.4:2380', false],
  ['https://10.0.0.4:2380,https://10.0.0.5:2380', false],
])('%s is a peer URL: %s', (text, expected) => {
  expect(peerUrl(text) !== undefined).toBe(expected);
});

test('an address in a URL has one form', () => {
  expect([addressOf('https://[FD00::0001]:1'), addressOf('https://[::ffff:1.2.3.4]'), addressOf('https://a:1')]).toEqual([
    'fd00::1',
    '1.2.3.4',
    undefined,
  ]);
});

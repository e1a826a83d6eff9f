import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { COOLDOWN_MARGIN_MS, COOLDOWN_MS, VipIndex, vipRange } from '../../../src/domain/dataplane/vip.js';
import { type IpAddress, ipv4ToNumber, numberToIpv4 } from '../../../src/domain/kernel/network.js';
import { revision } from '../../../src/domain/log/model.js';
import { type QualifiedName, qualifiedName } from '../../../src/domain/resource/model.js';
import { operations, perform, SERVICE_NAMES } from '../../support/random-operations.js';
import { SmallCluster, service } from '../../support/small-cluster.js';

describe('vipRange', () => {
  test.each([
    { cidr: '10.192.0.0/16', first: '10.192.0.2', last: '10.192.255.254' },
    { cidr: '10.0.0.0/8', first: '10.0.0.2', last: '10.255.255.254' },
    { cidr: '127.192.0.16/28', first: '127.192.0.18', last: '127.192.0.30' },
  ])('$cidr is $first to $last', ({ cidr, first, last }) => {
    const range = vipRange(cidr);
    expect({ ...range, first: numberToIpv4(range.first), last: numberToIpv4(range.last) }).toEqual({ cidr, first, last });
  });

  test.each([
    '',
    '10.192.0.0',
    '10.192.0.0/',
    '10.192.0.0/7',
    '10.192.0.0/29',
    '10.192.0.0/016',
    '10.0.0.0/08',
    '10.192.0.1/16',
    'fd00::/112',
  ])('"%s" is none', (cidr) => {
    expect(() => vipRange(cidr)).toThrow(new RangeError(`not an IPv4 range: ${cidr}`));
  });
});

describe('VipIndex', () => {
  const a = qualifiedName('default', 'a');
  const b = qualifiedName('default', 'b');
  const at = (last: number) => numberToIpv4(vipRange('10.192.0.0/28').first - 2 + last);
  const filled = (...records: readonly (readonly [last: number, service: QualifiedName, releasedAt?: number])[]) => {
    const index = new VipIndex();
    // A log's revisions ascend with its time.
    for (const [last, service, releasedAt] of records) {
      index.set(at(last), {
        service,
        ...(releasedAt === undefined ? {} : { releasedAt }),
        revision: revision(BigInt(releasedAt ?? 1)),
      });
    }
    return index;
  };

  test.each<{ name: string; records: readonly (readonly [number, QualifiedName, number?])[]; of: IpAddress | undefined }>([
    { name: 'none', records: [[2, b]], of: undefined },
    {
      name: 'the one that it holds',
      records: [
        [2, a, 10],
        [3, a],
        [4, a, 20],
      ],
      of: at(3),
    },
    {
      name: 'else the one that it released last',
      records: [
        [2, a, 10],
        [3, a, 20],
        [4, a, 15],
      ],
      of: at(3),
    },
    {
      name: 'an older one when another service has the last',
      records: [
        [2, a, 10],
        [3, a, 20],
        [3, b],
      ],
      of: at(2),
    },
    {
      name: 'none when another service has it',
      records: [
        [2, a, 10],
        [2, b],
      ],
      of: undefined,
    },
  ])('the address of a service: $name', ({ records, of }) => {
    expect(filled(...records).ofService(a)).toBe(of);
  });

  test('addresses by release, whatever the order of the records', () => {
    const index = filled([5, a, 30], [2, a, 10], [9, b, 20], [3, b, 20], [4, a], [6, a, 40]);
    index.set(at(6), { service: b, revision: revision(2n) });
    expect([...index.released()]).toEqual([
      [at(2), 10],
      [at(3), 20],
      [at(9), 20],
      [at(5), 30],
    ]);
  });

  test('law: lowestUnused is what a full scan finds, whichever range is asked for', () => {
    const ranges = ['10.192.0.0/28', '10.192.0.16/28', '10.192.0.0/27'].map(vipRange);
    const step = fc.oneof(
      fc.record({ use: fc.integer({ min: 0, max: 31 }) }),
      fc.record({ ask: fc.constantFrom(...ranges) }),
      fc.constant({ clear: true }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const index = new VipIndex();
        for (const step of steps) {
          if ('use' in step) index.set(at(step.use), { service: a, revision: revision(1n) });
          else if ('clear' in step) index.clear();
          else {
            let scan = step.ask.first;
            while (scan <= step.ask.last && index.get(numberToIpv4(scan)) !== undefined) scan++;
            expect(index.lowestUnused(step.ask)).toBe(scan);
          }
        }
      }),
    );
  });
});

describe('laws of addresses', () => {
  const names = SERVICE_NAMES.map((name) => qualifiedName('default', name));

  test('each living service has its own, edits never change it, and nobody has one that another released less than 60 s ago', () => {
    fc.assert(
      fc.property(operations, (list) => {
        const cluster = new SmallCluster('10.192.0.0/28');
        const { state } = cluster;
        let had = new Map<QualifiedName, IpAddress>();
        const released = new Map<IpAddress, { readonly by: QualifiedName; readonly at: number }>();
        for (const operation of list) {
          const result = perform(cluster, operation);
          if (result !== undefined && 'problems' in result) continue;
          const has = new Map<QualifiedName, IpAddress>();
          for (const name of names) {
            if (state.service(name) === undefined) continue;
            const address = state.vips.ofService(name);
            expect(address && state.vips.get(address)).toMatchObject({ service: name });
            expect(address && state.vips.get(address)).not.toHaveProperty('releasedAt');
            if (address !== undefined) has.set(name, address);
          }
          expect(new Set(has.values()).size).toBe(has.size);
          for (const [name, address] of had) {
            if (has.has(name)) expect(has.get(name)).toBe(address);
            else released.set(address, { by: name, at: cluster.now });
          }
          for (const [name, address] of has) {
            const release = released.get(address);
            if (release === undefined || had.get(name) === address) continue;
            if (release.by !== name) expect(cluster.now - release.at).toBeGreaterThanOrEqual(60_000);
          }
          had = has;
        }
      }),
      { numRuns: 100 },
    );
  });

  test('a service that comes back while its address rests has it again', () => {
    fc.assert(
      fc.property(operations, fc.constantFrom(...SERVICE_NAMES), fc.nat(64_999), (list, name, waitMs) => {
        const cluster = new SmallCluster('10.192.0.0/28');
        for (const operation of list) perform(cluster, operation);
        const qualified = qualifiedName('default', name);
        const before = cluster.state.service(qualified)?.resource;
        if (before === undefined) return;
        const address = cluster.state.vips.ofService(qualified);
        perform(cluster, { do: 'delete', service: name });
        cluster.now += waitMs;
        perform(cluster, { do: 'apply', resources: [service('another')], by: 'one', prune: false });
        perform(cluster, { do: 'apply', resources: [service(name, { ports: before.spec.ports })], by: 'one', prune: false });
        if (cluster.state.service(qualified) !== undefined) expect(cluster.state.vips.ofService(qualified)).toBe(address);
      }),
      { numRuns: 100 },
    );
  });

  test('of two addresses released in the same millisecond it has the one that it had last', () => {
    const cluster = new SmallCluster('10.192.0.0/28');
    for (const last of [14, 2]) {
      cluster.apply([service('s1', { vip: numberToIpv4(0x0ac0_0000 + last) })]);
      perform(cluster, { do: 'delete', service: 's1' });
    }
    cluster.apply([service('s1')]);
    expect(cluster.state.vips.ofService(qualifiedName('default', 's1'))).toBe('10.192.0.2');
  });

  test('exhaustion is said only when there is none, with the second in which the next is free', () => {
    let seen = 0;
    fc.assert(
      fc.property(operations, (list) => {
        const cluster = new SmallCluster('10.192.0.0/28');
        cluster.apply(SERVICE_NAMES.slice(0, 12).map((name) => service(name)));
        for (const operation of list) {
          perform(cluster, operation);
          const plan = cluster.plan([service('new')]);
          const { range, state, now } = cluster;
          const all = Array.from({ length: range.last - range.first + 1 }, (_, index) => numberToIpv4(range.first + index));
          const waits = all.flatMap((address) => {
            const record = state.vips.get(address);
            if (record === undefined) return [0];
            return record.releasedAt === undefined ? [] : [record.releasedAt + COOLDOWN_MS + COOLDOWN_MARGIN_MS - now];
          });
          const wait = Math.min(...waits);
          if (!('problems' in plan)) {
            expect(wait).toBeLessThanOrEqual(0);
            continue;
          }
          seen++;
          const when = waits.length === 0 ? 'all of them are in use' : `the next is free in ${Math.ceil(wait / 1000)} s`;
          expect(plan.problems.map(({ message }) => message)).toEqual([`no address left in 10.192.0.0/28: ${when}`]);
        }
      }),
      { numRuns: 100 },
    );
    expect(seen).toBeGreaterThan(0);
  });

  test('a range that ran through goes round by release, and one request of many takes each address once', () => {
    const cluster = new SmallCluster('10.192.0.0/24');
    const many = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => service(`${prefix}${index}`));
    cluster.apply(many('a', 253));
    cluster.apply([], { prune: true });
    cluster.now += 65_000;
    cluster.apply(many('b', 253));
    const addresses = [...cluster.state.vips.entries()].map(([address]) => address);
    expect(addresses.length).toBe(253);
    expect(cluster.state.vips.ofService(qualifiedName('default', 'b0'))).toBe('10.192.0.2');
    expect([...cluster.state.vips.released()]).toEqual([]);
    expect(addresses.every((address) => (ipv4ToNumber(address) ?? 0) <= cluster.range.last)).toBe(true);
  });
});

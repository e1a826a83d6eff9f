import { describe, expect, test } from 'vitest';
import { FlowKeeper } from '../../../src/app/dataplane/flow-keeper.js';
import type { Flow } from '../../../src/domain/dataplane/flows.js';
import { targetKey } from '../../../src/domain/dataplane/kernel-flows.js';
import type { L4Endpoint, L4Listener } from '../../../src/domain/dataplane/model.js';
import { ipAddress } from '../../../src/domain/kernel/network.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeConntrack } from '../../fakes/fake-conntrack.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { endpoint, listener } from '../../support/listeners.js';

const CARRIED = 0x2000_0000;
const CUT = 0x4000_0000;
const UNTRACKED = 7;
const address = (text: string) => ipAddress(text) as NonNullable<ReturnType<typeof ipAddress>>;
const VIP = address('10.192.0.2');
const one = endpoint(80, 1, address('10.9.0.1'));
const two = endpoint(80, 1, address('10.9.0.2'));

const service = (protocol: 'tcp' | 'udp', ...endpoints: readonly L4Endpoint[]): L4Listener => ({
  ...listener('default/a/http', endpoints),
  ...{ address: VIP, port: 80 as L4Listener['port'], protocol, drainMs: 5_000 },
});

function flow(protocol: 6 | 17, client: number, to: Pick<L4Endpoint, 'address' | 'port'> | undefined): Omit<Flow, 'id'> {
  const source = { address: address('10.9.1.1'), port: client };
  const destination = { address: VIP, port: 80 };
  const ends = { source, destination, backend: to ?? destination, backendPeer: source };
  return {
    protocol,
    tcpState: protocol === 6 ? 3 : 0,
    zone: 0,
    mark: to === undefined ? 0 : CARRIED,
    status: 0,
    timeoutSeconds: 9,
    ...ends,
  };
}

function rig() {
  const clock = new FakeClock();
  const conntrack = new FakeConntrack();
  const table = new Map<string, L4Listener>();
  const drained: string[] = [];
  const keeper = new FlowKeeper({
    ...{ conntrack, clock, carriedMark: CARRIED, cutMark: CUT, untrackedMark: UNTRACKED },
    ...{ random: () => 0, logger: new FakeLogger() },
    carried: (target) => table.get(target),
    drained: (id, target, cut) => drained.push(`${id} ${target} ${cut}`),
  });
  const change = async (before: L4Listener | undefined, after: L4Listener | undefined, moved = false) => {
    if (before !== undefined) table.delete(targetKey(before));
    if (after !== undefined) table.set(targetKey(after), after);
    keeper.changed(before, after, moved);
    await clock.advance(0);
  };
  const clients = () => [...conntrack.dump().matchAll(/10\.9\.1\.1:(\d+)/g)].map(([, port]) => Number(port));
  return { clock, conntrack, drained, keeper, change, clients };
}

describe('UDP', () => {
  test.each<[string, L4Listener | undefined, L4Listener | undefined, boolean, readonly number[]]>([
    ['one of two endpoints goes', service('udp', one, two), service('udp', two), false, [2, 9]],
    ['scaled to zero', service('udp', one, two), service('udp'), false, [9]],
    ['the first endpoint comes', service('udp'), service('udp', one), false, [1, 9]],
    ['the service goes', service('udp', one), undefined, false, [3, 9]],
    ['the proxy takes over', service('udp', one), undefined, true, [3, 9]],
    ['nothing changes for what runs', service('udp', one, two), service('udp', two, one), false, [1, 2, 9]],
  ])('%s', async (_, before, after, moved, left) => {
    const { clock, conntrack, keeper, change, clients } = rig();
    keeper.start();
    await change(undefined, before);
    await clock.advance(2_000);
    const other = { ...flow(17, 9, undefined), destination: { address: VIP, port: 81 } };
    conntrack.put(flow(17, 1, one), flow(17, 2, two), flow(17, 3, undefined), other);
    await change(before, after, moved);
    expect(clients()).toEqual(left);
    await keeper.stop();
  });

  test('a packet that was judged before the commit makes its entry after the first look', async () => {
    const { clock, conntrack, keeper, change, clients } = rig();
    keeper.start();
    await change(service('udp', one), service('udp', two));
    conntrack.put(flow(17, 1, one));
    await clock.advance(999);
    expect(clients()).toEqual([1]);
    await clock.advance(1);
    expect(clients()).toEqual([]);
    await keeper.stop();
  });

  test('a look that fails is made again', async () => {
    const { clock, conntrack, keeper, change, clients } = rig();
    conntrack.put(flow(17, 1, one));
    conntrack.failNext(new Error('ENOBUFS'), 2);
    keeper.start();
    await change(service('udp', one), service('udp', two));
    expect(keeper.status().error?.failures).toBe(1);
    await clock.advance(5_000);
    expect([clients(), keeper.status().error]).toEqual([[], undefined]);
    await keeper.stop();
  });
});

describe('TCP', () => {
  test('connections of a withdrawn endpoint have their time, are cut at both ends and forgotten; others go on', async () => {
    const { clock, conntrack, drained, keeper, change, clients } = rig();
    keeper.start();
    conntrack.put(flow(6, 1, one), flow(6, 2, two));
    await change(service('tcp', one, two), service('tcp', two));
    await clock.advance(4_999);
    expect([clients(), drained]).toEqual([[1, 2], []]);
    await clock.advance(1);
    expect(conntrack.dump()).toContain(`mark ${CARRIED + CUT}`);
    expect(conntrack.challenged()).toEqual([`10.9.1.1:1 mark ${UNTRACKED}`, `10.9.0.1:80 mark ${UNTRACKED}`]);
    await clock.advance(600);
    // Neither end has answered.
    expect(conntrack.challenged()).toHaveLength(4);
    expect([clients(), drained]).toEqual([[2], ['default/a/http 10.9.0.1:80 1']]);
    await keeper.stop();
  });

  test('an endpoint that comes back keeps them, and one that the proxy has taken over, too', async () => {
    const { clock, conntrack, drained, keeper, change, clients } = rig();
    keeper.start();
    conntrack.put(flow(6, 1, one));
    await change(service('tcp', one, two), service('tcp', two));
    await change(service('tcp', two), service('tcp', one, two));
    await clock.advance(60_000);
    await change(service('tcp', one, two), undefined, true);
    await clock.advance(60_000);
    expect([clients(), drained]).toEqual([[1], []]);
    await keeper.stop();
  });

  test('a deleted service, and one that has changed its port, drain', async () => {
    const { clock, conntrack, drained, keeper, change, clients } = rig();
    keeper.start();
    conntrack.put(flow(6, 1, one));
    await change(service('tcp', one), undefined);
    await clock.advance(5_600);
    expect([clients(), drained]).toEqual([[], ['default/a/http 10.9.0.1:80 1']]);
    await keeper.stop();
  });

  test('what was withdrawn while nobody looked drains from the start on', async () => {
    const { clock, conntrack, keeper, change, clients } = rig();
    conntrack.put(flow(6, 1, one), flow(6, 2, two), flow(17, 3, one));
    await change(undefined, service('tcp', two));
    keeper.start();
    await clock.advance(4_999);
    expect(clients()).toEqual([1, 2]);
    await clock.advance(601);
    expect(clients()).toEqual([2]);
    await keeper.stop();
  });
});

import { expect, onTestFinished, test } from 'vitest';
import { OverlayKeeper } from '../../../src/app/overlay/overlay-keeper.js';
import { OverlaySubsystem, type OverlaySubsystemParts } from '../../../src/app/overlay/overlay-subsystem.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeNodewardCalls } from '../../fakes/fake-nodeward-calls.js';
import { FakeOverlayDevice, keyOf } from '../../fakes/fake-overlay-device.js';
import { FakeSession } from '../../support/instruction-rig.js';
import { ranges } from '../../support/overlay-peers.js';

const options = { signal: new AbortController().signal };
const peer = { pubKey: keyOf('a'), endpointIp: '192.0.2.1', ip: '10.78.0.2', extraAllowedIps: [] };
const MINUTE = 60_000;

async function rig(parts: Partial<OverlaySubsystemParts> = {}) {
  const [clock, device, calls, logger] = [new FakeClock(), new FakeOverlayDevice(), new FakeNodewardCalls(), new FakeLogger()];
  calls.peers = [peer];
  calls.address = '10.78.0.1/16';
  const keeper = new OverlayKeeper({ device, clock, logger });
  const subsystem = new OverlaySubsystem({
    ...{ keeper, calls, clock, logger, nodeIsReady: () => true, endpoint: undefined, networks: [], random: () => 0 },
    ...parts,
  });
  await subsystem.start();
  onTestFinished(() => subsystem.stop());
  await clock.advance(1_000);
  const connect = async (session = new FakeSession()) => {
    subsystem.opened(session);
    await clock.advance(1_000);
    return session;
  };
  return { clock, device, calls, keeper, subsystem, connect };
}

test('syncs at each connect and once a minute, and says what the node is', async () => {
  const { clock, device, calls, subsystem, connect } = await rig({ networks: ranges('10.1.0.0/24') });
  expect(calls.told).toEqual([]);
  const session = await connect();
  const self = { pubKey: keyOf('o'), endpointIp: '10.0.0.9', ip: '', extraAllowedIps: ['10.1.0.0/24'] };
  expect(calls.told).toEqual([`manualSync ${JSON.stringify({ self, nodeIsReady: true })}`]);
  expect(device.dump()).toBe('10.78.0.1/16 mtu 1420\na 192.0.2.1:51820 10.78.0.2/32\nroutes -\n');
  expect(subsystem.received()).toBe(false);
  await clock.advance(MINUTE);
  expect(calls.told[1]).toContain('"ip":"10.78.0.1"');
  subsystem.closed(session);
  await connect();
  expect(calls.told).toHaveLength(3);
  await clock.advance(10 * MINUTE);
  expect(calls.told.length).toBeGreaterThanOrEqual(12);
});

test('without a link the last set is kept up', async () => {
  const { clock, device, calls, subsystem, connect } = await rig();
  subsystem.closed(await connect());
  device.link = undefined;
  await clock.advance(MINUTE);
  expect(device.dump()).toContain('a 192.0.2.1:51820');
  expect(calls.told).toHaveLength(1);
  await expect(subsystem.sync(options)).rejects.toMatchObject({ code: 'overlay.not_linked' });
});

test('a control plane without an overlay has nothing taken away', async () => {
  const { clock, device, calls, subsystem, connect } = await rig();
  calls.peers = [];
  calls.address = '';
  await connect();
  expect(device.dump()).toBe('no interface\n');
  await device.set(
    {
      self: undefined,
      mtu: 1_420,
      peers: [{ publicKey: keyOf('z'), endpoint: { at: 'none' }, ranges: [] }],
      untouched: [],
      routes: [],
    },
    options,
  );
  await clock.advance(MINUTE);
  expect(device.dump()).toContain('z -');
  expect(await subsystem.sync(options)).toEqual({ address: '', peers: 0, failed: [] });
});

test('an older control plane gives peers to an interface that is there, and makes none', async () => {
  const { clock, device, calls, connect } = await rig();
  calls.address = '';
  await connect(new FakeSession('older'));
  expect([device.dump(), calls.told]).toEqual(['no interface\n', []]);
  await device.set({ self: undefined, mtu: 1_420, peers: [], untouched: [], routes: [] }, options);
  await clock.advance(MINUTE);
  expect(device.dump()).toBe('- mtu 1420\na 192.0.2.1:51820 10.78.0.2/32\nroutes 10.78.0.2/32\n');
});

test('what fails is a problem until it works again, and so are refused peers', async () => {
  const { clock, device, calls, subsystem, connect } = await rig();
  device.fail('overlay.unreadable');
  await connect();
  expect(subsystem.problems()).toEqual([
    expect.objectContaining({ subject: 'overlay', remedy: expect.stringContaining('nothing was changed') }),
  ]);
  device.fail(undefined);
  calls.peers = [peer, { ...peer, pubKey: keyOf('b') }];
  await clock.advance(MINUTE);
  expect(subsystem.problems().map(({ subject }) => subject)).toEqual([
    `overlay peer ${keyOf('a')}`,
    `overlay peer ${keyOf('b')}`,
  ]);
  calls.peers = [peer];
  expect(await subsystem.sync(options)).toEqual({ address: '10.78.0.1', peers: 1, failed: [] });
  expect(subsystem.problems()).toEqual([]);
});

test.each([
  [undefined, '10.0.0.9'],
  ['', ''],
  ['198.51.100.1', '198.51.100.1'],
])('with %j as its endpoint others are told %j', async (endpoint, told) => {
  const { calls, connect } = await rig({ endpoint });
  await connect();
  expect(calls.told[0]).toContain(`"endpointIp":"${told}"`);
});

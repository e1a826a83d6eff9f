import { describe, expect, test } from 'vitest';
import { SyncedPeers } from '../../../src/app/overlay/synced-peers.js';
import { type IpAddress, type Ipv4Range, ipv4Range } from '../../../src/domain/kernel/network.js';
import { aid, nid, registrationId } from '../../../src/domain/link/model.js';
import type { PeerNode } from '../../../src/ports/driving/node-streams.js';
import { keyOf } from '../../fakes/fake-overlay-device.js';
import { fleetRig, settle } from '../../support/fleet-rig.js';

const options = { signal: new AbortController().signal };
const range: Ipv4Range = ipv4Range('10.78.0.0/29') ?? { network: '10.78.0.0' as IpAddress, prefixLength: 29 };

function node(id: string, address = '10.0.0.5:4711', account = 'acme'): PeerNode {
  const identity = { role: 'node', aid: aid(account), nid: nid(id), registration: registrationId('r1') } as const;
  return { identity, serial: '1', notAfter: 0, address };
}

function self(letter: string, change = {}) {
  return { pubKey: keyOf(letter), endpointIp: '10.0.0.5', ip: '', extraAllowedIps: [], ...change };
}

async function rig() {
  const fleet = await fleetRig({ overlayRange: range });
  const sync = (id: string, letter: string, change = {}, from?: string) =>
    fleet.overlay.sync(node(id, from), self(letter, change), options);
  return { ...fleet, sync };
}

describe('addresses', () => {
  test('each node has one of its own, and keeps it', async () => {
    const { overlay, sync } = await rig();
    await overlay.admit(nid('n1'), aid('acme'), options);
    expect((await sync('n2', 'b')).address).toBe('10.78.0.2/29');
    expect((await sync('n1', 'a')).address).toBe('10.78.0.1/29');
    await overlay.admit(nid('n1'), aid('acme'), options);
    expect((await sync('n1', 'a')).address).toBe('10.78.0.1/29');
  });

  test('nodes that are admitted at the same moment, and by two servers, have different ones', async () => {
    const { store, clock, overlay } = await rig();
    const other = await fleetRig({ store, clock, overlayRange: range });
    const all = ['n1', 'n2', 'n3', 'n4', 'n5', 'n6'];
    await Promise.all(all.map((id, place) => (place % 2 ? overlay : other.overlay).admit(nid(id), aid('acme'), options)));
    await settle();
    expect(all.map((id) => overlay.setOf(nid(id)).address).toSorted()).toEqual(
      [1, 2, 3, 4, 5, 6].map((last) => `10.78.0.${last}/29`),
    );
    await expect(overlay.admit(nid('n7'), aid('acme'), options)).rejects.toMatchObject({ code: 'overlay.no_address_left' });
    await overlay.forget(nid('n3'), options);
    await settle();
    await overlay.admit(nid('n7'), aid('acme'), options);
  });

  test('in another range a node has another one', async () => {
    const { store, clock, sync } = await rig();
    await sync('n1', 'a');
    const moved = await fleetRig({ store, clock, overlayRange: ipv4Range('10.79.0.0/24') ?? range });
    expect((await moved.overlay.sync(node('n1'), self('a'), options)).address).toBe('10.79.0.1/24');
  });

  test('without a range there is no overlay', async () => {
    const { overlay, store } = await fleetRig();
    expect(await overlay.sync(node('n1'), self('a'), options)).toEqual({ peers: [], address: '' });
    expect(await store.list('overlay/', options)).toEqual([]);
  });
});

describe('peers', () => {
  test('are the others of the account that have said their key', async () => {
    const { overlay, sync } = await rig();
    await sync('n1', 'a', { extraAllowedIps: ['10.1.0.0/24'] });
    await overlay.admit(nid('n2'), aid('acme'), options);
    await overlay.sync(node('n3', undefined, 'other'), self('c'), options);
    const { peers } = await sync('n4', 'd', { extraAllowedIps: ['10.1.0.0/24', '10.2.0.0/24'] }, '198.51.100.1:9');
    expect(peers).toEqual([{ pubKey: keyOf('a'), endpointIp: '10.0.0.5', ip: '10.78.0.1', extraAllowedIps: ['10.1.0.0/24'] }]);
    // Behind NAT, and one of its networks is another's.
    expect((await sync('n1', 'a')).peers).toEqual([
      { pubKey: keyOf('d'), endpointIp: '', ip: '10.78.0.4', extraAllowedIps: ['10.2.0.0/24'] },
    ]);
  });

  test('a removed node is a peer of nobody', async () => {
    const { overlay, sync, store } = await rig();
    await sync('n1', 'a');
    await sync('n2', 'b');
    await overlay.forget(nid('n2'), options);
    await settle();
    expect((await sync('n1', 'a')).peers).toEqual([]);
    await overlay.forget(nid('n2'), options);
    expect((await store.list('overlay/', options)).map(({ key }) => key)).toEqual([
      'overlay/address/10.78.0.1',
      'overlay/node/n1',
    ]);
  });
});

describe('pushes', () => {
  test('a node that is here is sent its peers when another joins, moves or leaves, once each, and never what it was answered', async () => {
    const { overlay, pushes, book, registrations, connect, clock, sync } = await rig();
    const synced = new SyncedPeers(overlay, pushes);
    registrations.register(nid('n1'));
    await connect();
    await synced.sync(node('n1'), self('a'), options);
    await clock.advance(2_000);
    const sent = () =>
      [...book.rows()].filter(({ row }) => row.type === 'SET_VPN_PEERS').map(({ row }) => `${row.nid} ${row.by}`);
    expect(sent()).toEqual([]);
    await sync('n2', 'b');
    await sync('n3', 'c');
    await clock.advance(2_000);
    expect(sent()).toEqual(['n1 overlay']);
    await sync('n3', 'c', { endpointIp: '198.51.100.3' });
    await clock.advance(2_000);
    await overlay.forget(nid('n2'), options);
    await clock.advance(2_000);
    expect(sent()).toHaveLength(3);
    await sync('n3', 'c', { endpointIp: '198.51.100.3' });
    await clock.advance(10_000);
    expect(sent()).toHaveLength(3);
  });
});

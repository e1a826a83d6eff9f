import { expect, test } from 'vitest';
import type { NodeSession } from '../../../src/app/link/node-session.js';
import type { SeenNode } from '../../../src/app/link/presence-board.js';
import { FleetApiServers } from '../../../src/app/loadbalancer/fleet-api-servers.js';
import { aid, type LinkMessage, nid } from '../../../src/domain/link/model.js';
import { readPayload } from '../../../src/domain/link/payload.js';
import { FakeClock } from '../../fakes/fake-clock.js';

const [acme, other] = [aid('acme'), aid('other')];
const node = (name: string, controlPlane?: SeenNode['controlPlane'], state: SeenNode['state'] = 'online') =>
  ({ nid: nid(name), controlPlane, state }) as SeenNode;

function servers(nodes: SeenNode[], overlay: Readonly<Record<string, string>> = {}) {
  const clock = new FakeClock();
  const setOf = (name: string) => ({ peers: [], address: overlay[name] ?? '' });
  return { clock, fleet: new FleetApiServers({ presence: { nodes: () => nodes }, overlay: { setOf }, clock }) };
}

test('an account has its own control planes, online or not, by their overlay where they have one', () => {
  const nodes = [
    node('a', { aid: acme, address: '10.0.0.1' }),
    node('b', { aid: acme, address: '10.0.0.2' }, 'offline'),
    node('c', { aid: acme, address: 'fd00::3' }),
    node('d'),
    node('e', { aid: other, address: '10.0.0.5' }),
    node('f', { aid: acme, address: '' }),
  ];
  const { fleet } = servers(nodes, { b: '10.78.0.2/16' });
  expect(fleet.of(acme)).toEqual([
    { vpnIp: '', kubeEndpoint: 'https://10.0.0.1:6443' },
    { vpnIp: '10.78.0.2', kubeEndpoint: 'https://10.78.0.2:6443' },
    { vpnIp: '', kubeEndpoint: 'https://[fd00::3]:6443' },
  ]);
  expect(fleet.of(other)).toEqual([{ vpnIp: '', kubeEndpoint: 'https://10.0.0.5:6443' }]);
  expect(fleet.of(aid('nobody'))).toEqual([]);
});

test('is a second old at most', async () => {
  const nodes = [node('a', { aid: acme, address: '10.0.0.1' })];
  const { clock, fleet } = servers(nodes);
  expect(fleet.of(acme)).toHaveLength(1);
  nodes.push(node('b', { aid: acme, address: '10.0.0.2' }));
  expect(fleet.of(acme)).toHaveLength(1);
  await clock.advance(1_000);
  expect(fleet.of(acme)).toHaveLength(2);
});

test('a node that asks on its stream is answered under its tag, and nothing else is its', () => {
  const { fleet } = servers([node('a', { aid: acme, address: '10.0.0.1' })]);
  const sent: LinkMessage[] = [];
  const session = {
    identity: { aid: acme },
    send: async (message: LinkMessage) => sent.push(message) > 0,
  } as unknown as NodeSession;
  expect(fleet.received(session, { type: 'AmIVIPHolder', tag: 'x', jsonB64: '' })).toBe(false);
  expect(fleet.received(session, { type: 'GetControlPlaneNodes', tag: 'q-1', jsonB64: '' })).toBe(true);
  expect(sent.map(({ type, tag, jsonB64 }) => [type, tag, readPayload(jsonB64, 1_000)])).toEqual([
    ['GetControlPlaneNodes', 'q-1', { ok: true, value: ['https://10.0.0.1:6443'] }],
  ]);
});

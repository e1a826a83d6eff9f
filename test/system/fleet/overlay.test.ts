import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keyOf } from '../../fakes/fake-overlay-device.js';
import { Fleet, type FleetAgent } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';

const run = promisify(execFile);

let fleet: Fleet;

beforeAll(async () => {
  fleet = await Fleet.start({ agents: 3, overlay: '10.78.0.0/24' });
});
afterAll(() => fleet[Symbol.asyncDispose]());

async function peersOf({ daemon }: FleetAgent): Promise<readonly string[]> {
  const { overlay } = await daemon.ask((client, given) => client.status(given));
  return [overlay?.address ?? '', ...(overlay?.peers ?? []).map(({ address, state }) => `${address} ${state}`).toSorted()];
}

function reaches({ daemon }: FleetAgent, address: string): Promise<boolean> {
  return run('ip', ['netns', 'exec', daemon.space.name, 'ping', '-n', '-c', '1', '-W', '1', address]).then(
    () => true,
    () => false,
  );
}

test('nodes that register are in the overlay by themselves, and learn of each other', async () => {
  for (const [place, agent] of fleet.agents.entries()) {
    const others = [1, 2, 3].filter((last) => last !== place + 1).map((last) => `10.78.0.${last}`);
    await until(
      () => Promise.all(others.map((address) => reaches(agent, address))),
      (all) => all.every(Boolean),
    );
    const { code, stdout } = await agent.daemon.cli(['sync', 'vpn']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `10.78.0.${place + 1} has 2 peers\n` });
    expect(await peersOf(agent)).toEqual([`10.78.0.${place + 1}/24`, ...others.map((address) => `${address} up`)]);
    expect((await agent.daemon.cli(['status'])).stdout).toMatch(
      /^overlay +10\.78\.0\.\d\/24 by wireguard-go, MTU 1420, 2 of 2 peers up$/m,
    );
    expect(await agent.daemon.problems()).toEqual([]);
  }
});

test('one more node is known to the others without a sync of theirs, and one that is removed is gone', async () => {
  const fourth = await fleet.place();
  await fourth.daemon.start();
  await until(
    () => reaches(fleet.agent(0), '10.78.0.4'),
    (is) => is,
  );
  expect(await fleet.server.cli(['delete', 'node', fourth.nid, '-y'])).toMatchObject({ code: 0 });
  const others = fleet.agents.filter((agent) => agent !== fourth);
  await until(
    () => Promise.all(others.map(peersOf)),
    (all) => !all.flat().some((peer) => peer.startsWith('10.78.0.4 ')),
  );
  expect((await peersOf(fleet.agent(1))).length).toBe(3);
});

test('SET_VPN_PEERS is answered with what the node is, and with those that were refused', async () => {
  const { nid } = fleet.agent(2);
  const stranger = { pubKey: keyOf('s'), endpointIp: '', vpnIp: '10.78.0.9', extraAllowedIps: [] };
  const twin = { ...stranger, pubKey: keyOf('t') };
  const { replyType, reply } = await fleet.result(nid, 'SET_VPN_PEERS', { peers: [stranger, twin] });
  expect({ replyType, reply }).toEqual({
    replyType: 'NODE_VPN_PEER',
    reply: {
      nodePeer: {
        pubKey: expect.stringMatching(/^.{43}=$/),
        endpointIp: fleet.agent(2).daemon.space.address,
        vpnIp: '10.78.0.3',
      },
      failed: [
        { pubKey: keyOf('s'), reason: `10.78.0.9/32 overlaps 10.78.0.9/32 of peer ${keyOf('t')}` },
        { pubKey: keyOf('t'), reason: `10.78.0.9/32 overlaps 10.78.0.9/32 of peer ${keyOf('s')}` },
      ],
    },
  });
  const { code } = await fleet.agent(2).daemon.cli(['sync', 'vpn']);
  expect([code, (await peersOf(fleet.agent(2))).length]).toEqual([0, 3]);
});

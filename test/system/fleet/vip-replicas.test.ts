import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Fleet, type FleetAgent } from '../support/fleet.js';
import { type FleetDaemon, until } from '../support/fleet-daemon.js';
import { mayHave, settledHolder, VIP, VipMonitor } from '../support/fleet-vip.js';

const run = promisify(execFile);

let fleet: Fleet;

beforeAll(async () => {
  fleet = await Fleet.start({ agents: 2, replicas: 2, vip: VIP });
  await mayHave(fleet, fleet.agents);
}, 240_000);
afterAll(() => fleet[Symbol.asyncDispose]());

/** The server that has an agent's stream, and the others. */
async function serverOf({ nid }: FleetAgent): Promise<{ readonly its: FleetDaemon; readonly other: FleetDaemon }> {
  const { nodes } = await fleet.server.ask((client, given) => client.listNodes(given));
  const id = nodes.find(({ node }) => node === nid)?.server ?? '';
  const place = fleet.servers.findIndex((_, number) => id.startsWith(`server-${number}-`));
  const [its, other] = [fleet.servers[place], fleet.servers[1 - place]];
  if (its === undefined || other === undefined) throw new Error(`no server is ${id}`);
  return { its, other };
}

/** Whether a server reaches etcd, which is in the hub; its agents reach it all the same. */
async function reachesEtcd({ space }: FleetDaemon, how: boolean): Promise<void> {
  const { address } = fleet.network.hub;
  await run('ip', ['-n', space.name, 'route', how ? 'del' : 'add', 'blackhole', `${address}/32`]);
}

/** The only agent that has it, as this server says it. */
async function holderBy(server: FleetDaemon, withinMs = 120_000): Promise<string> {
  const look = async () => {
    const { vips } = await server.ask((client, given) => client.listVips(given));
    const states = await Promise.all(fleet.agents.map(({ daemon }) => daemon.ask((client, given) => client.status(given))));
    const having = fleet.agents.filter((_, number) => states[number]?.vip?.held === true).map(({ nid }) => nid);
    return { said: vips[0]?.phase === 'held' ? vips[0].node : '', having: having.join() };
  };
  return (await until(look, ({ said, having }) => said !== '' && said === having, withinMs)).said;
}

test('V1: a server that is cut off from the store prolongs nothing, and never two have it', async () => {
  const holder = await settledHolder(fleet);
  const spare = fleet.agents.find((agent) => agent !== holder);
  if (spare === undefined) throw new Error('there are two agents');
  using monitor = await VipMonitor.start(fleet);
  const { its, other } = await serverOf(holder);
  const isElsewhere = (await serverOf(spare)).its === other;
  await reachesEtcd(its, false);
  const gone = () => Promise.resolve(monitor.holdings.every(({ nid, until: end }) => nid !== holder.nid || Number.isFinite(end)));
  await until(gone, (is) => is, 36_000);
  // Agents choose their server: one whose server is cut off as well cannot have it.
  if (isElsewhere) expect(await holderBy(other)).toBe(spare.nid);
  await reachesEtcd(its, true);
  await settledHolder(fleet);
  expect(monitor.overlaps()).toEqual([]);
}, 300_000);

test('the server of the holder is killed: never two holders, and it is held again', async () => {
  await fleet.linked(90_000);
  const holder = await settledHolder(fleet);
  using monitor = await VipMonitor.start(fleet);
  const { its, other } = await serverOf(holder);
  await its.stop('SIGKILL');
  await holderBy(other);
  await its.start();
  await settledHolder(fleet);
  expect(monitor.overlaps()).toEqual([]);
}, 300_000);

test('both servers move it at the same time: one of them wins', async () => {
  const [one, other] = fleet.servers;
  if (one === undefined || other === undefined) throw new Error('there are two servers');
  await fleet.linked(90_000);
  using monitor = await VipMonitor.start(fleet);
  for (let round = 0; round < 5; round++) {
    const moves = [one, other].map((server, place) =>
      server.ask((client, given) => client.moveVip({ node: fleet.agent((round + place) % 2).nid }, given)).catch(() => {}),
    );
    await Promise.all(moves);
  }
  await settledHolder(fleet);
  expect(monitor.overlaps()).toEqual([]);
}, 180_000);

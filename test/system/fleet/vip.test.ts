import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Fleet, type FleetAgent, isFull } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';
import { answering, has, macOf, mayHave, plug, saidHolder, settledHolder, VIP, VipMonitor } from '../support/fleet-vip.js';

const MOVES = isFull ? 1_000 : 12;
/** What V1 promises, and a second for the kernel, which looks once in one. */
const GONE_MS = 26_000;

let fleet: Fleet;

beforeAll(async () => {
  fleet = await Fleet.start({ agents: 3, vip: VIP });
  await mayHave(fleet, fleet.agents);
}, 180_000);
afterAll(() => fleet[Symbol.asyncDispose]());

const others = (holder: FleetAgent) => fleet.agents.filter((agent) => agent !== holder);

test('one node gets it, and its neighbours, its status and the control plane say the same', async () => {
  const holder = await settledHolder(fleet);
  expect(await answering(fleet)).toEqual([await macOf(holder)]);
  const { vip } = await holder.daemon.ask((client, given) => client.status(given));
  expect(vip).toMatchObject({ address: VIP, held: true, alone: false });
  expect(Number(vip?.leftMs)).toBeGreaterThan(10_000);
  expect((await holder.daemon.cli(['status'])).stdout).toMatch(/^virtual IP +10\.77\.200\.100 here for/m);
  const [other] = others(holder);
  expect((await other?.daemon.cli(['status']))?.stdout).toMatch(/^virtual IP +10\.77\.200\.100 not here/m);
  expect((await fleet.server.cli(['vip', 'list'])).stdout).toMatch(new RegExp(`^default +held +${holder.nid} `, 'm'));
});

test('it moves where an operator wants it, within seconds', async () => {
  const [next] = others(await settledHolder(fleet));
  if (next === undefined) throw new Error('there is no other');
  expect(await fleet.server.cli(['vip', 'move', next.nid])).toMatchObject({ code: 0 });
  await until(
    () => saidHolder(fleet),
    (nid) => nid === next.nid,
    15_000,
  );
  expect(await settledHolder(fleet)).toBe(next);
  expect((await fleet.server.cli(['vip', 'move', 'n-nobody'])).code).toBe(1);
});

test('a generation that is not newer is acknowledged and does nothing, also beyond 2^53', async () => {
  const holder = await settledHolder(fleet);
  const { replyType, reply } = await fleet.result(holder.nid, 'VIP_RELEASE', { generation: 1 });
  expect(replyType).toBe('VIP_RELEASE_RESPONSE');
  expect(reply).toMatchObject({ ok: true, message: expect.stringContaining('nothing was done') });
  expect(await has(holder)).toBe(true);
});

test(
  `two hosts, ${MOVES} random moves with unplugged links between: never two holders, at the end exactly one, the right one`,
  async () => {
    using monitor = await VipMonitor.start(fleet);
    for (let move = 0; move < MOVES; move++) {
      const agent = fleet.agent(Math.floor(Math.random() * 2));
      if (Math.random() < 0.1) {
        const victim = fleet.agent(Math.floor(Math.random() * 2));
        await plug(fleet, victim, 'down');
        await sleep(Math.random() * (isFull ? 3_000 : 8_000));
        await plug(fleet, victim, 'up');
      }
      // Refused while it is away: another move comes.
      await fleet.server.ask((client, given) => client.moveVip({ node: agent.nid }, given)).catch(() => {});
      await sleep(Math.random() * 600);
    }
    const wanted = fleet.agent(1);
    const moved = () => fleet.server.ask((client, given) => client.moveVip({ node: wanted.nid }, given));
    await until(moved, () => true, 90_000);
    await until(
      () => saidHolder(fleet),
      (nid) => nid === wanted.nid,
      90_000,
    );
    expect(await settledHolder(fleet)).toBe(wanted);
    expect(await answering(fleet)).toEqual([await macOf(wanted)]);
    expect(monitor.overlaps()).toEqual([]);
    expect(monitor.holdings.length).toBeGreaterThan(1);
  },
  isFull ? 3_600_000 : 300_000,
);

test('V1: killed, frozen, unplugged: it is gone from the machine in time without anybody, and then another has it', async () => {
  using monitor = await VipMonitor.start(fleet);
  const killed = await settledHolder(fleet);
  let begun = Date.now();
  await killed.daemon.stop('SIGKILL');
  expect(await has(killed)).toBe(true);
  await until(
    () => has(killed),
    (is) => !is,
    GONE_MS - (Date.now() - begun),
  );
  const frozen = await settledHolder(fleet);
  expect(frozen).not.toBe(killed);
  begun = Date.now();
  process.kill(frozen.daemon.pid, 'SIGSTOP');
  await until(
    () => has(frozen),
    (is) => !is,
    GONE_MS - (Date.now() - begun),
  );
  const unplugged = await settledHolder(fleet);
  process.kill(frozen.daemon.pid, 'SIGCONT');
  expect([killed, frozen]).not.toContain(unplugged);
  await sleep(3_000);
  expect(await has(frozen)).toBe(false);
  begun = Date.now();
  await plug(fleet, unplugged, 'down');
  await until(
    () => has(unplugged),
    (is) => !is,
    GONE_MS - (Date.now() - begun),
  );
  expect((await settledHolder(fleet)).nid).not.toBe(unplugged.nid);
  expect(monitor.overlaps()).toEqual([]);
  await plug(fleet, unplugged, 'up');
  await killed.daemon.start();
}, 300_000);

test('an agent that starts again has removed the address before it asks, and has it back when it is told so', async () => {
  await fleet.linked();
  const holder = await settledHolder(fleet);
  using monitor = await VipMonitor.start(fleet);
  await holder.daemon.stop('SIGKILL');
  await holder.daemon.start();
  expect(await settledHolder(fleet)).toBe(holder);
  expect(monitor.holdings.filter(({ nid }) => nid === holder.nid).length).toBe(2);
  expect(monitor.overlaps()).toEqual([]);
}, 120_000);

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { InstructionState } from '../../../src/adapters/generated/holdfast/admin/v1/fleet.js';
import { Fleet, isFull } from '../support/fleet.js';
import { type FleetDaemon, until } from '../support/fleet-daemon.js';
import type { ClientCounts, FleetPeer } from '../support/fleet-peer.js';

const KILLS = isFull ? 20 : 6;
const AGENTS = 3;

/** Applies service after service. What was acknowledged is in `acknowledged`. */
async function applyUntil(fleet: Fleet, isOver: () => boolean, acknowledged: Set<string>): Promise<void> {
  for (let index = 0; !isOver(); index++) {
    const applied = await fleet.apply(`s-${index}`, []).then(
      () => true,
      () => false,
    );
    if (applied) acknowledged.add(`s-${index}`);
    await sleep(50);
  }
}

/** Tells each agent in turn to append a number of its own to the witness; whoever got no answer says it again under the same tag. */
async function sendUntil(fleet: Fleet, isOver: () => boolean): Promise<number> {
  let number = 0;
  for (; !isOver(); number++) {
    const { nid } = fleet.agent(number % AGENTS);
    await until(
      () => fleet.send(nid, 'RUN_REMOTE_SCRIPT', { script: `append.${number}` }, `t-${number}`),
      () => true,
    );
    await sleep(60);
  }
  return number;
}

/** Failures of the clients of all machines but one since `before`. */
async function failuresSince(
  clients: readonly FleetPeer[],
  before: readonly ClientCounts[],
  but?: number,
): Promise<readonly string[]> {
  const after = await Promise.all(clients.map((client) => client.counts()));
  return after.flatMap(({ failures }, index) =>
    index === but ? [] : failures.slice(before[index]?.failures.length).map((failure) => `machine ${index}: ${failure}`),
  );
}

test(`kill -9 of server and agents in turn, ${KILLS} times under load: nothing acknowledged is lost, nothing is done twice, traffic goes on`, async () => {
  await using fleet = await Fleet.start({ agents: AGENTS, scripts: { append: '' } });
  const witness = join(fleet.folder, 'witness');
  await writeFile(join(fleet.folder, 'scripts/append'), `echo @N >> ${witness}\nsleep 0.$((@N % 7))\necho did @N\n`);
  const { hub } = fleet.network;
  const greeters = [await fleet.peer(hub, 'greet', 'a'), await fleet.peer(hub, 'greet', 'b')];
  const echo = await fleet.peer(hub, 'echo');
  const endpoint = ({ port }: FleetPeer) => ({ name: `p${port}`, address: hub.address, port });
  await fleet.apply('greet', greeters.map(endpoint));
  await fleet.apply('echo', [endpoint(echo)]);
  const vips = await until(
    () => fleet.services(fleet.server),
    (all) => all.size === 2,
  );
  for (const { daemon } of fleet.agents)
    await until(
      () => fleet.services(daemon),
      (all) => all.size === 2,
    );
  await sleep(300);
  const client = ({ daemon }: { readonly daemon: FleetDaemon }) =>
    fleet.peer(daemon.space, 'client', vips.get('greet') ?? '', 80, vips.get('echo') ?? '', 80);
  const clients = await Promise.all(fleet.agents.map(client));
  const flows = async () =>
    (await Promise.all(clients.map((each) => each.counts()))).map(({ asked, echoed }) => Math.min(asked, echoed));
  await until(flows, (all) => all.every((count) => count > 5));

  let isOver = false;
  const acknowledged = new Set<string>();
  const applying = applyUntil(fleet, () => isOver, acknowledged);
  const sending = sendUntil(fleet, () => isOver);
  // Each at least once, in an order that is another one in every run.
  const all = [0, 1, 2, 3].toSorted(() => Math.random() - 0.5);
  const order = Array.from({ length: KILLS }, (_, index) => (index < 4 ? (all[index] ?? 0) : Math.floor(Math.random() * 4)));
  for (const victim of order) {
    const before = await Promise.all(clients.map((each) => each.counts()));
    const daemon = victim === AGENTS ? fleet.server : fleet.agent(victim).daemon;
    await sleep(200 + Math.random() * 600);
    await daemon.stop('SIGKILL');
    await sleep(300);
    await daemon.start();
    await sleep(500);
    expect(await failuresSince(clients, before, victim), `killed ${victim} of ${order}`).toEqual([]);
  }
  isOver = true;
  await applying;
  const sent = await sending;
  const results = await fleet.allResults(60_000);

  expect(acknowledged.size).toBeGreaterThan(KILLS);
  for (const daemon of [fleet.server, ...fleet.agents.map((each) => each.daemon)]) {
    await until(
      () => fleet.services(daemon),
      (services) => [...acknowledged].every((name) => services.has(name)),
    );
  }
  expect(results.length).toBe(sent);
  const effects = (await readFile(witness, 'utf8')).trim().split('\n').map(Number);
  expect(new Set(effects).size, 'each effect once').toBe(effects.length);
  for (const { tag, state, replyType, reply } of results) {
    expect(state, tag).toBe(InstructionState.DONE);
    const number = Number(tag.slice(2));
    if (replyType === 'ERROR') expect(reply).toMatch(/^INTERRUPTED: /);
    else {
      expect(reply, tag).toMatchObject({ exitCode: 0, response: `did ${number}\n` });
      expect(effects, tag).toContain(number);
    }
  }
  // Runners outlive their agent: whatever it was that a kill hit, nearly all have their true result.
  expect(results.filter(({ replyType }) => replyType === 'ERROR').length).toBeLessThanOrEqual(KILLS);
  await until(flows, (counts) => counts.every((count) => count > 20));
});

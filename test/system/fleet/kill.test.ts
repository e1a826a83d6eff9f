import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { InstructionState } from '../../../src/adapters/generated/holdfast/admin/v1/fleet.js';
import { Fleet, isFull } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';
import { FleetLoad } from '../support/fleet-load.js';

const KILLS = isFull ? 20 : 6;
const AGENTS = 3;

test(`kill -9 of server and agents in turn, ${KILLS} times under load: nothing acknowledged is lost, nothing is done twice, traffic goes on`, async () => {
  await using fleet = await Fleet.start({ agents: AGENTS });
  const load = await FleetLoad.on(fleet);
  load.work();
  // Each at least once, in an order that is another one in every run.
  const all = [0, 1, 2, 3].toSorted(() => Math.random() - 0.5);
  const order = Array.from({ length: KILLS }, (_, index) => (index < 4 ? (all[index] ?? 0) : Math.floor(Math.random() * 4)));
  for (const victim of order) {
    const before = await load.counts();
    const daemon = victim === AGENTS ? fleet.server : fleet.agent(victim).daemon;
    await sleep(200 + Math.random() * 600);
    await daemon.stop('SIGKILL');
    await sleep(300);
    await daemon.start();
    await sleep(500);
    expect(await load.failuresSince(before, victim), `killed ${victim} of ${order}`).toEqual([]);
  }
  const sent = await load.end();
  const results = await fleet.allResults(60_000);

  expect(load.acknowledged.size).toBeGreaterThan(KILLS);
  for (const daemon of [fleet.server, ...fleet.agents.map((each) => each.daemon)]) {
    await until(
      () => fleet.services(daemon),
      (services) => [...load.acknowledged].every((name) => services.has(name)),
    );
  }
  expect(results.length).toBe(sent);
  const effects = await load.effects();
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
  await load.flows(20);
});

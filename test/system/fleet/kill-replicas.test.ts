import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { test as anywhere, expect } from 'vitest';
import { InstructionState } from '../../../src/adapters/generated/holdfast/admin/v1/fleet.js';
import { hasEtcd } from '../../support/etcd-rig.js';
import { Fleet, isFull, type Result } from '../support/fleet.js';
import { type FleetDaemon, until } from '../support/fleet-daemon.js';
import { FleetLoad } from '../support/fleet-load.js';

const test = anywhere.skipIf(!hasEtcd);

/** Of each process, in random order. */
const KILLS = isFull ? 20 : 2;
const AGENTS = 3;
const REPLICAS = 2;
const MEMBERS = 3;
/** Each run has an order of its own; HOLDFAST_TEST_SEED repeats one. */
const SEED = Number(process.env.HOLDFAST_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32));

interface Victim {
  readonly name: string;
  /** The agent on whose machine connections end with it. */
  readonly agent?: number;
  /** Dies, and is back. */
  readonly kill: () => Promise<void>;
}

/** Numbers in [0, 1), the same for each seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Both processes of each task that runs in the fleet. */
async function runners({ folder }: Fleet): Promise<readonly number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const [program = '', mode, runs = ''] = (await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')).split('\0');
    if (program.endsWith('/holdfast-runner') && mode === 'start' && runs.startsWith(`${folder}/`)) found.push(Number(name));
  }
  return found;
}

function victimsOf(fleet: Fleet, random: () => number): readonly Victim[] {
  const restart = async (daemon: FleetDaemon) => {
    await daemon.stop('SIGKILL');
    await sleep(200 + random() * 1_000);
    await daemon.start();
  };
  const member = async (number: number) => {
    await fleet.etcd?.kill(number);
    await sleep(200 + random() * 1_000);
    fleet.etcd?.restart(number);
    await fleet.etcd?.healthy();
  };
  const runner = async () => {
    const pids = await until(
      () => runners(fleet),
      (all) => all.length > 0,
    );
    try {
      process.kill(pids[Math.floor(random() * pids.length)] ?? 0, 'SIGKILL');
    } catch {
      // It has just ended by itself.
    }
  };
  return [
    ...Array.from({ length: MEMBERS }, (_, number) => ({ name: `etcd ${number}`, kill: () => member(number) })),
    ...fleet.servers.map((server, number) => ({ name: `server ${number}`, kill: () => restart(server) })),
    ...fleet.agents.map(({ daemon }, agent) => ({ name: `agent ${agent}`, agent, kill: () => restart(daemon) })),
    { name: 'runner', kill: runner },
  ];
}

function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

test(`kill -9 of each of ${MEMBERS} etcd members, ${REPLICAS} servers, ${AGENTS} agents and runners, ${KILLS} times each in random order under load`, {
  timeout: isFull ? 3_600_000 : 300_000,
}, async () => {
  console.log(`HOLDFAST_TEST_SEED=${SEED}`);
  const random = randomOf(SEED);
  await using fleet = await Fleet.start({ agents: AGENTS, replicas: REPLICAS });
  const load = await FleetLoad.on(fleet);
  load.work();
  const victims = victimsOf(fleet, random);
  const order = shuffled(
    victims.flatMap((victim) => Array.from({ length: KILLS }, () => victim)),
    random,
  );
  // Servers keep the newest 200 results of a node; there are about 60 more of each after 5 kills.
  const results = new Map<string, Result>();
  const collect = async () => {
    for (const result of await fleet.endedResults(fleet.server, new Set(results.keys()))) results.set(result.tag, result);
  };
  for (const [index, { name, agent, kill }] of order.entries()) {
    const before = await load.counts();
    await sleep(200 + random() * 600);
    await kill();
    await sleep(500);
    expect(await load.failuresSince(before, agent), `kill ${index}, of ${name}, seed ${SEED}`).toEqual([]);
    if (index % 5 === 4) await collect();
  }
  const sent = await load.end();
  const newest = await fleet.allResults(120_000);
  await collect();

  // No acknowledged apply is lost, on any replica and on any agent.
  expect(load.acknowledged.size).toBeGreaterThan(order.length);
  for (const daemon of [...fleet.servers, ...fleet.agents.map((each) => each.daemon)]) {
    await until(
      () => fleet.services(daemon),
      (services) => [...load.acknowledged].every((name) => services.has(name)),
    );
  }
  // Each instruction has one final result and at most one effect, one where the result says success.
  for (const result of newest) expect(results.get(result.tag), 'its first result stands').toEqual(result);
  expect(Array.from({ length: sent }, (_, number) => `t-${number}`).filter((tag) => !results.has(tag))).toEqual([]);
  expect(results.size).toBe(sent);
  const effects = await load.effects();
  expect(new Set(effects).size, 'each effect once').toBe(effects.length);
  for (const { tag, state, replyType, reply } of results.values()) {
    expect(state, tag).toBe(InstructionState.DONE);
    const number = Number(tag.slice(2));
    if (replyType === 'ERROR') expect(reply, tag).toMatch(/^INTERRUPTED: /);
    else {
      expect(reply, tag).toMatchObject({ exitCode: 0, response: `did ${number}\n` });
      expect(effects, tag).toContain(number);
    }
  }
  // A task outlives its agent: only what a runner or an agent died on may lack its true result.
  const mayLack = order.filter(({ name }) => name.startsWith('agent') || name === 'runner').length;
  expect([...results.values()].filter(({ replyType }) => replyType === 'ERROR').length).toBeLessThanOrEqual(mayLack);
  await load.flows(20);
});

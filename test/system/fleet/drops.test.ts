import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { InstructionState } from '../../../src/adapters/generated/holdfast/admin/v1/fleet.js';
import { Fleet, isFull } from '../support/fleet.js';

/** Each agent is cut a few times only: after some losses in a row it waits longer and longer, as it should. */
const AGENTS = isFull ? 10 : 3;
const CUTS = isFull ? 50 : 10;
const INSTRUCTIONS = isFull ? 1_000 : 200;
const AT_ONCE = 8;
const REPEATS = 5;

async function sendAll(fleet: Fleet): Promise<void> {
  let next = 0;
  const sender = async () => {
    for (let number = next++; number < INSTRUCTIONS; number = next++) {
      const { nid } = fleet.agent(number % AGENTS);
      // Every tenth is sent again and again, one right after the other.
      for (let time = 0; time < (number % 10 === 0 ? REPEATS : 1); time++) {
        await fleet.send(nid, 'RUN_REMOTE_SCRIPT', { script: `append.${number}` }, `t-${number}`);
      }
      await sleep(AT_ONCE * 40);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sender));
}

/** Resets each agent's connections in turn, in the moment when it has one. */
async function cutAll(fleet: Fleet): Promise<number> {
  let cuts = 0;
  for (let turn = 0; cuts < CUTS; turn++) {
    const { daemon } = fleet.agent(turn % AGENTS);
    if (((await fleet.proxy?.cut(daemon.space.address)) ?? 0) > 0) cuts++;
    await sleep(150);
  }
  return cuts;
}

test(`A10: ${INSTRUCTIONS} instructions across ${CUTS} lost connections: each has one effect and one result; a tag sent ${REPEATS} times is one`, async () => {
  await using fleet = await Fleet.start({ agents: AGENTS, behindProxy: true });
  const witness = join(fleet.folder, 'witness');
  await writeFile(join(fleet.folder, 'scripts/append'), `echo @N >> ${witness}\necho did @N\n`);
  const [, cuts] = await Promise.all([sendAll(fleet), cutAll(fleet)]);
  expect(cuts).toBe(CUTS);
  const results = await fleet.allResults(120_000);
  const effects = (await readFile(witness, 'utf8')).trim().split('\n').map(Number);
  expect(effects.toSorted((a, b) => a - b)).toEqual(Array.from({ length: INSTRUCTIONS }, (_, number) => number));
  expect(new Set(results.map(({ tag }) => tag)).size).toBe(INSTRUCTIONS);
  for (const { tag, state, reply } of results) {
    expect({ state, reply }, tag).toMatchObject({
      state: InstructionState.DONE,
      reply: { exitCode: 0, response: `did ${tag.slice(2)}\n` },
    });
  }
  // An answered tag is answered from memory.
  const { nid } = fleet.agent();
  await expect(fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'append.0' }, 't-0')).resolves.toEqual(
    results.find(({ tag }) => tag === 't-0'),
  );
  await expect(fleet.send(nid, 'RUN_REMOTE_SCRIPT', { script: 'append.1' }, 't-0')).rejects.toThrow(/t-0/);
  expect((await readFile(witness, 'utf8')).trim().split('\n').length).toBe(INSTRUCTIONS);
});

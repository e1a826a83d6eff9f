import { execFile } from 'node:child_process';
import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { InstructionState } from '../../../src/adapters/generated/holdfast/admin/v1/fleet.js';
import { HEARTBEAT_MS } from '../../../src/domain/link/model.js';
import { Fleet, isFull } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';

const RESTARTS = isFull ? 20 : 5;
const SCRIPTS = isFull ? 5_000 : 250;
const AT_ONCE = 8;

let fleet: Fleet;

beforeAll(async () => {
  fleet = await Fleet.start();
  const witness = join(fleet.folder, 'witness');
  await writeFile(join(fleet.folder, 'scripts/append'), `echo @N >> ${witness}\n`);
  await writeFile(join(fleet.folder, 'scripts/slow'), `echo @N >> ${witness}\nsleep 20\n`);
  await writeFile(join(fleet.folder, 'scripts/endless'), 'while :; do sleep 0.1; done\n');
  await writeFile(join(fleet.folder, 'scripts/nothing'), 'echo nothing\n');
});
afterAll(() => fleet[Symbol.asyncDispose]());

const script = (name: string, more = {}) => ['RUN_REMOTE_SCRIPT', { script: name, ...more }] as const;

async function effects(): Promise<readonly string[]> {
  return (await readFile(join(fleet.folder, 'witness'), 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
}

async function copyJournal(from: string, to: string): Promise<void> {
  for (const suffix of ['-wal', '-shm']) await rm(to + suffix, { force: true });
  await copyFile(from, to);
}

test("A12: a journal that is swapped for yesterday's copy: nothing runs twice, and what nobody can tell of is unknown", async () => {
  const { nid, daemon } = fleet.agent();
  const journal = join(daemon.dataDir, 'journal.db');
  await fleet.result(nid, ...script('append.1'), 'one');
  await daemon.stop();
  await copyJournal(journal, `${journal}.yesterday`);
  await daemon.start();
  for (const number of [2, 3, 4]) await fleet.result(nid, ...script(`append.${number}`), `t-${number}`);
  await fleet.send(nid, ...script('slow.5'), 'slow');
  await until(effects, (lines) => lines.includes('5'));
  // The next heartbeat says how far the journal has come: there is no other stream since the copy was made.
  await sleep(2 * HEARTBEAT_MS);
  await daemon.stop('SIGKILL');
  // Of this one it is certain that no journal knew of it.
  await fleet.send(nid, ...script('append.6'), 'waits');
  await copyJournal(`${journal}.yesterday`, journal);
  await daemon.start();
  expect(await fleet.resultOf(nid, 'waits')).toMatchObject({ state: InstructionState.DONE, reply: { exitCode: 0 } });
  expect(await fleet.resultOf(nid, 'slow')).toMatchObject({ state: InstructionState.UNKNOWN });
  for (const number of [2, 3, 4]) {
    const again = await fleet.result(nid, ...script(`append.${number}`), `t-${number}`);
    expect(again).toMatchObject({ state: InstructionState.DONE, reply: { exitCode: 0 } });
  }
  expect(await effects()).toEqual(['1', '2', '3', '4', '5', '6']);
});

test(`${RESTARTS} restarts with a script in the middle of each: all end at their deadline, none piles up, each has one result`, async () => {
  const { nid, daemon } = fleet.agent();
  const running = async () => {
    const { stdout } = await promisify(execFile)('ip', ['netns', 'pids', daemon.space.name]);
    const pids = stdout.split('\n').filter((pid) => pid !== '');
    const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
    return lines.filter((line) => line.includes('holdfast-runner') || line.startsWith('bash')).length;
  };
  await until(running, (count) => count === 0);
  for (let round = 0; round < RESTARTS; round++) {
    await fleet.send(nid, ...script('endless', { timeoutSeconds: 10 }), `endless-${round}`);
    await until(running, (count) => count > 0);
    await daemon.stop(round % 2 === 0 ? 'SIGTERM' : 'SIGKILL');
    await daemon.start();
  }
  for (let round = 0; round < RESTARTS; round++) {
    const result = await fleet.resultOf(nid, `endless-${round}`);
    expect(result).toMatchObject({ state: InstructionState.DONE, reply: { timedOut: true } });
  }
  await until(running, (count) => count === 0, 5_000);
});

test(`${SCRIPTS} scripts do not fill the state directory with files`, async () => {
  const { nid, daemon } = fleet.agent();
  const files = async () => (await readdir(daemon.dataDir, { recursive: true })).length;
  await fleet.result(nid, ...script('nothing'));
  const before = await files();
  let next = 0;
  const worker = async () => {
    while (next++ < SCRIPTS) expect(await fleet.result(nid, ...script('nothing'))).toMatchObject({ reply: { exitCode: 0 } });
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  // What is acknowledged goes with the next round of the housekeeping.
  await until(files, (count) => count <= before + 50, 90_000);
});

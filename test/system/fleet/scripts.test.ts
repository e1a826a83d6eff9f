import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Fleet, isFull } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';
import type { NetworkSpace } from '../support/fleet-network.js';
import { residentBytes } from '../support/process-facts.js';

const COMMANDS = isFull ? 1_000 : 150;
const MIB = 1024 * 1024;
/** Faster than this nobody notices, and a busy machine is late by as much. */
const UNNOTICED_MS = 40;

let fleet: Fleet;

beforeAll(async () => {
  fleet = await Fleet.start({
    scripts: {
      long: 'while :; do sleep 0.1; echo tick; done\n',
      noise: 'sleep 100 & yes noise-of-a-script\n',
      nothing: 'true\n',
    },
  });
});
afterAll(() => fleet[Symbol.asyncDispose]());

async function medianMs(times: number, run: () => Promise<unknown>): Promise<number> {
  const taken: number[] = [];
  for (let index = 0; index < times; index++) {
    const start = performance.now();
    await run();
    taken.push(performance.now() - start);
  }
  return taken.toSorted((a, b) => a - b)[times >> 1] ?? 0;
}

test('D2: beside five long scripts, status and web requests are answered as on an idle agent', async () => {
  const { nid } = fleet.agent();
  const url = `http://${fleet.network.hub.address}:${fleet.installer.port}/`;
  const status = () => fleet.result(nid, 'GET_NODE_STATUS', {});
  const web = () => fleet.result(nid, 'RUN_WEB_REQUEST', { url });
  expect(await web()).toMatchObject({ reply: { responseStatusCode: '200', responseBody: 'hello\n' } });
  await medianMs(5, status);
  const idle = { status: await medianMs(15, status), web: await medianMs(15, web) };
  const scripts = await Promise.all(
    [1, 2, 3, 4, 5].map(() => fleet.send(nid, 'RUN_REMOTE_SCRIPT', { script: 'long', timeoutSeconds: 60 })),
  );
  const running = () => namesIn(fleet.agent().daemon.space);
  await until(running, (names) => names.filter((name) => name === 'bash').length >= 5);
  const busy = { status: await medianMs(15, status), web: await medianMs(15, web) };
  expect(busy.status).toBeLessThan(Math.max(5 * idle.status, UNNOTICED_MS));
  expect(busy.web).toBeLessThan(Math.max(5 * idle.web, UNNOTICED_MS));
  for (const { tag } of scripts) {
    await fleet.server.ask((client, given) => client.cancelInstruction({ node: nid, tag }, given));
    expect(await fleet.resultOf(nid, tag)).toMatchObject({ reply: expect.stringMatching(/^CANCELLED: /) });
  }
});

test('a script that writes without end: the agent stays small, the output is capped and marked, nothing of it is left', async () => {
  const { nid, daemon } = fleet.agent();
  await fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'nothing' });
  const before = await residentBytes(daemon.pid);
  for (let round = 0; round < 2; round++) {
    const start = performance.now();
    const ended = fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'noise', timeoutSeconds: 3 });
    let most = 0;
    while (performance.now() - start < 2_900) {
      most = Math.max(most, await residentBytes(daemon.pid));
      await sleep(50);
    }
    const { reply } = await ended;
    const took = performance.now() - start;
    const marker = /^(noise-of-a-script\n){100000,}n?[a-z-]*\n\[cut here: \d{7,} bytes more\]$/;
    expect(reply).toMatchObject({ timedOut: true, stderr: '', response: expect.stringMatching(marker) });
    expect((reply as { response: string }).response.length).toBeLessThan(2 * MIB + 100);
    expect(took).toBeGreaterThan(3_000);
    expect(took).toBeLessThan(6_000);
    // While it runs a little of its output passes here, for who follows it. A reply of 2 MiB is 18 MiB of copies, which the garbage collector has for a while.
    expect(most - before).toBeLessThan((round === 0 ? 5 : 30) * MIB);
    await until(
      () => namesIn(daemon.space),
      (names) => names.every(isDaemon),
      3_000,
    );
  }
  expect((await residentBytes(daemon.pid)) - before).toBeLessThan(45 * MIB);
});

test(`${COMMANDS} scripts leave no zombie, no process and no descriptor`, async () => {
  const { nid, daemon } = fleet.agent();
  const descriptors = async () => (await readdir(`/proc/${daemon.pid}/fd`)).length;
  await fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'nothing' });
  const before = await descriptors();
  let left = COMMANDS;
  const worker = async () => {
    while (left-- > 0) {
      expect(await fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'nothing' })).toMatchObject({ reply: { exitCode: 0 } });
    }
  };
  await Promise.all(Array.from({ length: 5 }, worker));
  await until(
    () => namesIn(daemon.space),
    (names) => names.every(isDaemon),
    3_000,
  );
  expect(await zombies()).toEqual([]);
  expect(await descriptors()).toBeLessThanOrEqual(before + 5);
});

/** Names of all processes in a namespace. */
async function namesIn({ name }: NetworkSpace): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)('ip', ['netns', 'pids', name]);
  const pids = stdout.split('\n').filter((pid) => pid !== '');
  const names = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')));
  return names.map((each) => each.trim()).filter((each) => each !== '');
}

/** As Node names its first thread. */
function isDaemon(name: string): boolean {
  return name === 'node' || name === 'MainThread';
}

/** Children of the agent that nobody has waited for, and runners of anybody. */
async function zombies(): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')));
  const parent = fleet.agent().daemon.pid;
  return stats.filter((stat) => {
    const [state, ppid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' && (Number(ppid) === parent || stat.includes('(holdfast-runner)'));
  });
}

import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Fleet } from '../support/fleet.js';
import { type FleetDaemon, until } from '../support/fleet-daemon.js';
import { FleetLoad } from '../support/fleet-load.js';

/** Processes of this agent, whoever started them. */
async function processesOf({ root }: FleetDaemon): Promise<readonly number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const words = (await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')).split('\0');
    if (words.includes('agent') && words.includes(root)) found.push(Number(name));
  }
  return found;
}

/** Kills what the fleet did not start itself. */
function killer(daemon: FleetDaemon): AsyncDisposable {
  const kill = async () => {
    for (const pid of await processesOf(daemon)) process.kill(pid, 'SIGKILL');
  };
  return { [Symbol.asyncDispose]: kill };
}

test('SIGUSR2: the next process takes everything over under load, and the one before stays while it has connections; without a next one it goes on', async () => {
  await using fleet = await Fleet.start({ agents: 1 });
  const { daemon, nid } = fleet.agent(0);
  await using _ = killer(daemon);
  const load = await FleetLoad.on(fleet);
  const before = await load.counts();
  const flows = async () => {
    const [now = { asked: 0, echoed: 0 }] = await load.counts();
    await load.flows(Math.max(now.asked, now.echoed) + 20);
    expect(await load.failuresSince(before)).toEqual([]);
  };
  const readied = (times: number) =>
    until(
      async () => daemon.stderr.split('is ready (agent)').length - 1,
      (count) => count === times,
    );
  const others = async (than: readonly number[]) => (await processesOf(daemon)).filter((pid) => !than.includes(pid));
  const first = daemon.pid;

  const config = join(daemon.dataDir, 'holdfast.yaml');
  await writeFile(config, 'logLevel: nonsense\n');
  process.kill(first, 'SIGUSR2');
  await until(
    async () => daemon.stderr,
    (text) => text.includes('logLevel'),
  );
  await rm(config);
  await flows();
  await until(
    () => others([first]),
    (pids) => pids.length === 0,
  );

  // It asks, is given everything, and then finds no identity.
  await rename(join(daemon.dataDir, 'certs'), join(daemon.dataDir, 'elsewhere'));
  process.kill(first, 'SIGUSR2');
  const [, stranded = 0] = await until(
    async () => [first, ...(await others([first]))],
    (pids) => pids.length === 2,
  );
  await until(
    () => others([first]),
    (pids) => !pids.includes(stranded),
  );
  await rename(join(daemon.dataDir, 'elsewhere'), join(daemon.dataDir, 'certs'));
  await readied(2);
  await flows();
  await fleet.linked();

  process.kill(first, 'SIGUSR2');
  await readied(3);
  const [second = 0] = await others([first]);
  await flows();
  expect(await processesOf(daemon), 'the held connection is in the first one').toContain(first);
  await fleet.linked();
  expect(await fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'append.1' })).toMatchObject({
    reply: { exitCode: 0, response: 'did 1\n' },
  });
  await fleet.apply('later', []);
  await until(
    () => fleet.services(daemon),
    (services) => services.has('later'),
  );

  // It dies while the one before it still has connections, and is started again.
  process.kill(second, 'SIGKILL');
  await sleep(500);
  await load.stop();
  await until(
    () => processesOf(daemon),
    (pids) => pids.length === 0,
  );
  await daemon.start();
  await fleet.linked();
});

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test as anywhere, expect } from 'vitest';
import { InstructionState } from '../../../src/adapters/generated/holdfast/admin/v1/fleet.js';
import { hasEtcd } from '../../support/etcd-rig.js';
import { type CliResult, runCli } from '../support/daemon.js';
import { Fleet } from '../support/fleet.js';
import { FleetDaemon, until } from '../support/fleet-daemon.js';
import { FleetEtcd } from '../support/fleet-etcd.js';
import type { FleetPeer } from '../support/fleet-peer.js';

const test = anywhere.skipIf(!hasEtcd);
const AGENTS = 2;

/** A fleet with traffic on each agent's machine. */
async function withTraffic(fleet: Fleet) {
  const { hub } = fleet.network;
  const backends = { greet: await fleet.peer(hub, 'greet', 'hello'), echo: await fleet.peer(hub, 'echo') };
  for (const [name, { port }] of Object.entries(backends)) await fleet.apply(name, [{ name: 'a', address: hub.address, port }]);
  const vips = await fleet.services(fleet.server);
  await onAgents(fleet, ['echo', 'greet']);
  const start = ({ daemon }: { readonly daemon: FleetDaemon }) =>
    fleet.peer(daemon.space, 'client', vips.get('greet') ?? '', 80, vips.get('echo') ?? '', 80);
  const clients: readonly FleetPeer[] = await Promise.all(fleet.agents.map(start));
  await flows(clients);
  return clients;
}

const countsOf = (clients: readonly FleetPeer[]) => Promise.all(clients.map((client) => client.counts()));

/** Traffic goes on now. */
async function flows(clients: readonly FleetPeer[]): Promise<void> {
  const before = await countsOf(clients);
  await until(
    () => countsOf(clients),
    (all) =>
      all.every((now, index) => now.asked > (before[index]?.asked ?? 0) + 3 && now.echoed > (before[index]?.echoed ?? 0) + 3),
  );
}

/** Every agent has these services, and no others. */
async function onAgents(fleet: Fleet, names: readonly string[]): Promise<void> {
  for (const { daemon } of fleet.agents)
    await until(
      async () => [...(await fleet.services(daemon)).keys()].sort(),
      (found) => found.join() === [...names].sort().join(),
    );
}

/** Every agent holds back what another log would remove. */
async function held(fleet: Fleet): Promise<void> {
  for (const { daemon } of fleet.agents)
    await until(
      () => daemon.problems(),
      (problems) => problems.some((problem) => problem.includes('MASS_REMOVAL_HELD: the control plane has another log')),
      60_000,
    );
}

test('J4, E3: a control plane is put back into an empty etcd, then into one that is newer: agents serve on, and nothing is removed that no operator removed', async () => {
  await using stack = new AsyncDisposableStack();
  const scripts = { append: '', slow: 'sleep 20; echo slept\n' };
  const fleet = stack.use(await Fleet.start({ agents: AGENTS, scripts }));
  const { hub } = fleet.network;
  const clients = await withTraffic(fleet);
  const witness = join(fleet.folder, 'witness');
  await writeFile(join(fleet.folder, 'scripts/append'), `echo @N >> ${witness}\n`);
  const ok = async (done: Promise<CliResult>) => expect(await done).toMatchObject({ code: 0 });
  const { nid } = fleet.agent();

  await fleet.apply('dropped', []);
  await fleet.send(nid, 'RUN_REMOTE_SCRIPT', { script: 'slow' }, 'slow');
  const stateOf = async (tag: string) =>
    fleet.server.ask(async (client, given) => (await client.getInstruction({ node: nid, tag }, given)).instruction?.state);
  await until(
    () => stateOf('slow'),
    (state) => state === InstructionState.DELIVERED,
  );
  const first = join(fleet.folder, 'first.tar');
  await ok(fleet.server.cli(['backup', first]));
  // What no archive knows.
  await fleet.apply('later', []);
  await ok(fleet.server.cli(['delete', 'service', 'dropped']));
  await fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'append.1' }, 'after-the-backup');
  await onAgents(fleet, ['echo', 'greet', 'later']);
  await fleet.server.stop('SIGKILL');

  const etcd = stack.use(await FleetEtcd.start(hub, join(fleet.folder, 'etcd')));
  const restore = (file: string, root: string, ...more: readonly string[]) => {
    const place = ['--etcd', etcd.urls, '--data-dir', join(root, 'data'), ...more];
    return runCli(['restore', '--backup', file, ...place], undefined, ['ip', 'netns', 'exec', hub.name]);
  };
  const { root } = fleet.server;
  const restored = await restore(first, root);
  expect(restored).toMatchObject({ code: 0, stdout: expect.stringMatching(/1 unfinished instructions ended as unknown/) });
  const server = new FleetDaemon({ verb: 'server', space: hub, root, flags: ['--server-etcd', etcd.urls] });
  stack.defer(async () => void (await server.stop('SIGKILL')));
  await server.start();
  await fleet.linked();
  await held(fleet);
  await onAgents(fleet, ['echo', 'greet', 'later']);
  // It may have been carried out: it is not sent again, and its result counts when it comes.
  expect([InstructionState.UNKNOWN, InstructionState.DONE]).toContain(await stateOf('slow'));
  expect(await stateOf('after-the-backup').catch(() => undefined)).toBeUndefined();
  await fleet.apply('later', []);
  await onAgents(fleet, ['dropped', 'echo', 'greet', 'later']);
  await until(
    async () => (await fleet.endedResults(server)).find(({ tag }) => tag === 'slow'),
    (slow) => slow?.state === InstructionState.DONE,
    60_000,
  );
  expect(await fleet.result(nid, 'RUN_REMOTE_SCRIPT', { script: 'append.2' })).toMatchObject({ reply: { exitCode: 0 } });

  const second = join(fleet.folder, 'second.tar');
  await ok(fleet.server.cli(['backup', second, '--with-key']));
  await fleet.apply('newest', []);
  await onAgents(fleet, ['dropped', 'echo', 'greet', 'later', 'newest']);
  const other = join(fleet.folder, 'other');
  expect(await restore(second, other)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/etcd holds log \S+ up to revision \d+/),
  });
  expect(await restore(second, other, '--force')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('serves from there'),
  });
  await onAgents(fleet, ['dropped', 'echo', 'greet', 'later', 'newest']);
  await server.stop();
  const forced = await restore(second, root, '--force');
  expect(forced).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/set aside \S+\/replaced-\S+\.tar\nset aside \S+witness/),
  });
  await server.start();
  await fleet.linked();
  await held(fleet);
  await onAgents(fleet, ['dropped', 'echo', 'greet', 'later', 'newest']);
  for (const { daemon } of fleet.agents) await ok(daemon.cli(['resync', '--accept']));
  await onAgents(fleet, ['dropped', 'echo', 'greet', 'later']);

  await flows(clients);
  expect((await countsOf(clients)).flatMap(({ failures }) => failures)).toEqual([]);
  expect((await readFile(witness, 'utf8')).trim().split('\n')).toEqual(['1', '2']);
});

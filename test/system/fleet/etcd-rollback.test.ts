import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test as anywhere, expect } from 'vitest';
import { hasEtcd } from '../../support/etcd-rig.js';
import { runCli, temporaryFolder } from '../support/daemon.js';
import { FleetDaemon, until } from '../support/fleet-daemon.js';
import { FleetNetwork, type NetworkSpace, spawnIn } from '../support/fleet-network.js';
import { applyService, nodesOf, registerAt, servicesOf } from '../support/fleet-verbs.js';

const test = anywhere.skipIf(!hasEtcd);

const run = promisify(execFile);
const SERVICES = 30;

/** One etcd, which can be put back to what it was when its snapshot was taken. */
class Etcd implements AsyncDisposable {
  readonly url: string;
  readonly #space: NetworkSpace;
  readonly #folder: string;
  #member: ReturnType<typeof spawnIn> | undefined;

  constructor(space: NetworkSpace, folder: string) {
    this.url = `http://${space.address}:2379`;
    this.#space = space;
    this.#folder = folder;
  }

  async start(): Promise<void> {
    const peer = `http://${this.#space.address}:2380`;
    const urls = ['--listen-client-urls', this.url, '--advertise-client-urls', this.url, '--listen-peer-urls', peer];
    const cluster = ['--initial-advertise-peer-urls', peer, '--initial-cluster', `m0=${peer}`];
    const args = ['--name', 'm0', '--data-dir', join(this.#folder, 'm0'), ...urls, ...cluster, '--log-level', 'error'];
    this.#member = spawnIn(this.#space, ['etcd', ...args], { stdio: 'ignore' });
    await until(
      () => this.#ctl('endpoint', 'health').then(() => true),
      (healthy) => healthy,
    );
  }

  async save(): Promise<void> {
    await this.#ctl('snapshot', 'save', join(this.#folder, 'snapshot.db'));
  }

  async restore(): Promise<void> {
    await this.#kill();
    await rename(join(this.#folder, 'm0'), join(this.#folder, 'former'));
    const peer = `http://${this.#space.address}:2380`;
    const cluster = ['--name', 'm0', '--initial-cluster', `m0=${peer}`, '--initial-advertise-peer-urls', peer];
    await this.#ctl('snapshot', 'restore', join(this.#folder, 'snapshot.db'), '--data-dir', join(this.#folder, 'm0'), ...cluster);
    await this.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kill();
  }

  async #ctl(...args: readonly string[]): Promise<void> {
    const command = ['netns', 'exec', this.#space.name, 'etcdctl', '--endpoints', this.url, ...args];
    await run('ip', command, { env: { ...process.env, ETCDCTL_API: '3' } });
  }

  async #kill(): Promise<void> {
    const member = this.#member;
    this.#member = undefined;
    if (member === undefined || member.exitCode !== null || member.signalCode !== null) return;
    const exited = once(member, 'exit');
    member.kill('SIGKILL');
    await exited;
  }
}

test('E3, J4: an etcd that is put back to a snapshot under running agents takes no service off a node, and is accepted by a verb', async () => {
  await using stack = new AsyncDisposableStack();
  const { path: folder } = stack.use(await temporaryFolder());
  const network = stack.use(await FleetNetwork.make());
  const etcd = stack.use(new Etcd(network.hub, folder));
  await etcd.start();
  const space = await network.join();
  const server = new FleetDaemon({ verb: 'server', space, root: join(folder, 'server'), flags: ['--server-etcd', etcd.url] });
  stack.defer(async () => void (await server.stop('SIGKILL')));
  await server.start();

  const agentSpace = await network.join();
  const root = join(folder, 'agent');
  const nid = await registerAt(server, agentSpace, root);
  const flags = ['--client-server-nodeward', `${space.address}:9192`, '--node-name', 'agent', '--metrics-listen', 'off'];
  const agent = new FleetDaemon({ verb: 'agent', space: agentSpace, root, flags });
  stack.defer(async () => void (await agent.stop('SIGKILL')));
  await agent.start();
  await applyService(server, 'before');
  await etcd.save();
  for (let i = 0; i < SERVICES; i++) await applyService(server, `after-${i}`);
  const all = await until(
    () => servicesOf(agent),
    (names) => names.length === SERVICES + 1,
  );

  await etcd.restore();
  // The server that runs has seen more than etcd holds now.
  await until(
    () => server.problems(),
    (problems) => problems.some((each) => each.includes('log.rolled_back') || each.includes('had been seen up to')),
  );
  expect(await servicesOf(agent)).toEqual(all);
  await server.stop();
  expect((await server.refusedStart()).stderr).toContain('server accept-rollback');
  const verb = ['server', 'accept-rollback', '--root', server.root, '--data-dir', '/data', '--server-etcd', etcd.url];
  const where = ['ip', 'netns', 'exec', space.name];
  const asked = await runCli(verb, undefined, where);
  expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
  const accepted = await runCli([...verb, '--yes', '-o', 'json'], undefined, where);
  expect(accepted).toMatchObject({ code: 0 });
  expect(JSON.parse(accepted.stdout)).toMatchObject({ revision: expect.any(Number), settled: { streams: 1 } });
  expect((await runCli([...verb, '--yes'], undefined, where)).stderr).toContain('nothing to accept');

  await server.start();
  expect(await servicesOf(server)).toEqual(['before']);
  await until(
    () => agent.problems(),
    (problems) => problems.some((each) => each.includes('MASS_REMOVAL_HELD')),
    60_000,
  );
  expect((await agent.problems()).join()).toContain('another log');
  expect(await servicesOf(agent)).toEqual(all);
  await until(
    () => nodesOf(server),
    ([node]) => node?.node === nid && node.state === 'online',
  );
});

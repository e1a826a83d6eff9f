import { randomBytes, randomUUID } from 'node:crypto';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test as anywhere, expect } from 'vitest';
import { hasEtcd } from '../support/etcd-rig.js';
import { runCli, temporaryFolder } from './support/daemon.js';
import { FleetDaemon, until } from './support/fleet-daemon.js';
import { FleetEtcd } from './support/fleet-etcd.js';
import { FleetNetwork, type NetworkSpace } from './support/fleet-network.js';

const test = anywhere.skipIf(!hasEtcd);

async function apply(server: FleetDaemon, name: string): Promise<void> {
  const spec = { ports: [{ name: 'tcp', port: 80 }], endpoints: [] };
  const json = JSON.stringify({ apiVersion: 'holdfast/v1', kind: 'Service', metadata: { name }, spec });
  const documents = [{ file: 'test', number: 0, path: '', json }];
  const request = { documents, source: 'test', prune: false, dryRun: false, requestId: randomUUID() };
  const { problems } = await server.ask((client, given) => client.apply(request, given));
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
}

async function services(daemon: FleetDaemon): Promise<readonly string[]> {
  const selector = { kind: 'Service', namespace: 'default', name: '', labels: '' };
  const { objectsJson } = await daemon.ask((client, given) => client.get({ selector }, given));
  const items: readonly { readonly metadata: { readonly name: string } }[] = objectsJson.map((json) => JSON.parse(json));
  return items.map(({ metadata }) => metadata.name);
}

const nodes = (server: FleetDaemon) => server.ask(async (client, given) => (await client.listNodes(given)).nodes);

/** Registers a machine at one server with a token that the other has made. */
async function register(root: string, space: NetworkSpace, from: FleetDaemon, at: FleetDaemon): Promise<string> {
  await mkdir(join(root, 'etc'), { recursive: true });
  await writeFile(join(root, 'etc/machine-id'), `${randomBytes(16).toString('hex')}\n`);
  const { token } = await from.ask((client, given) => client.createToken({ account: '', ttlMs: 600_000n, replace: '' }, given));
  await writeFile(join(root, 'token'), token);
  const where = ['--server', at.space.address, '--account', 'default', '--ca', `${from.dataDir}/registration-ca.crt`];
  const args = ['register', ...where, '--token-file', join(root, 'token'), '--root', root, '--data-dir', '/data', '-o', 'json'];
  const { code, stdout, stderr } = await runCli(args, undefined, ['ip', 'netns', 'exec', space.name]);
  if (code !== 0) throw new Error(`register ended with ${code}: ${stderr}`);
  return JSON.parse(stdout).nid;
}

async function statusOf(server: FleetDaemon, node: string): Promise<string> {
  return server.ask(async (client, given) => {
    const { instruction } = await client.send({ node, type: 'GET_NODE_STATUS', json: '{}', tag: '', expiresMs: 0n }, given);
    const tag = instruction?.tag ?? '';
    const replyOf = async () => (await client.getInstruction({ node, tag }, given)).instruction?.replyType ?? '';
    return until(replyOf, (type) => type !== '');
  });
}

test('two servers on one etcd: a node registers at either, fails over when its server is killed, and gets what the other is told', async () => {
  await using stack = new AsyncDisposableStack();
  const { path: folder } = stack.use(await temporaryFolder());
  const network = stack.use(await FleetNetwork.make());
  const etcd = stack.use(await FleetEtcd.start(network.hub, folder));
  const server = async (name: string) => {
    const space = await network.join();
    // They all have the host name of this machine.
    await mkdir(join(folder, name, 'data'), { recursive: true, mode: 0o700 });
    await writeFile(join(folder, name, 'data/holdfast.yaml'), `nodeName: ${name}\n`);
    const daemon = new FleetDaemon({ verb: 'server', space, root: join(folder, name), flags: ['--server-etcd', etcd.urls] });
    stack.defer(async () => void (await daemon.stop('SIGKILL')));
    return daemon;
  };
  const [one, other] = [await server('one'), await server('other')];
  await one.start();
  // Another key than that of the store is refused, and so is none.
  expect((await other.refusedStart()).stderr).toContain('store.key_missing');
  await copyFile(`${one.dataDir}/sealing.key`, `${other.dataDir}/sealing.key`);
  await other.start();

  const space = await network.join();
  const root = join(folder, 'agent');
  const nid = await register(root, space, one, other);
  const nodeward = [one, other].map((each) => `${each.space.address}:9192`).join(',');
  const flags = ['--client-server-nodeward', nodeward, '--node-name', 'agent', '--metrics-listen', 'off'];
  const agent = new FleetDaemon({ verb: 'agent', space, root, flags });
  stack.defer(async () => void (await agent.stop('SIGKILL')));
  await agent.start();
  const isOnline = async (at: FleetDaemon) => (await nodes(at)).map(({ node, state }) => `${node} ${state}`);
  for (const each of [one, other])
    await until(
      () => isOnline(each),
      ([only]) => only === `${nid} online`,
    );

  for (const [index, each] of [one, other].entries()) {
    await apply(each, `first-${index}`);
    expect(await statusOf(each, nid)).not.toBe('ERROR');
  }
  for (const each of [one, other, agent])
    await until(
      () => services(each),
      (names) => names.length === 2,
    );

  const [{ server: holder = '' } = {}] = await nodes(one);
  expect(holder).toMatch(/^(one|other)-/);
  const [victim, survivor] = holder.startsWith('one-') ? [one, other] : [other, one];
  await victim.stop('SIGKILL');
  await apply(survivor, 'after-the-kill');
  await until(
    () => services(agent),
    (names) => names.includes('after-the-kill'),
    60_000,
  );
  await until(
    () => nodes(survivor),
    ([node]) => node?.state === 'online' && node.server !== holder,
    60_000,
  );
  expect(await statusOf(survivor, nid)).not.toBe('ERROR');

  await etcd.kill(0);
  await until(
    () => apply(survivor, 'after-the-member').then(() => true),
    (done) => done,
  );
  await until(
    () => services(agent),
    (names) => names.includes('after-the-member'),
  );
  await victim.start();
  expect([...(await services(victim))].sort()).toEqual(['after-the-kill', 'after-the-member', 'first-0', 'first-1']);
});

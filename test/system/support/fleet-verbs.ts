import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCli } from './daemon.js';
import type { FleetDaemon } from './fleet-daemon.js';
import type { NetworkSpace } from './fleet-network.js';

/** A service with port 80 and no endpoint; the revision that it got. @throws Error when it is refused */
export async function applyService(server: FleetDaemon, name: string): Promise<bigint> {
  const spec = { ports: [{ name: 'tcp', port: 80 }], endpoints: [] };
  const json = JSON.stringify({ apiVersion: 'holdfast/v1', kind: 'Service', metadata: { name }, spec });
  const documents = [{ file: 'test', number: 0, path: '', json }];
  const request = { documents, source: 'test', prune: false, dryRun: false, requestId: randomUUID() };
  const { problems, revision } = await server.ask((client, given) => client.apply(request, given));
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  return revision;
}

/** Names of all services of the default namespace, sorted. */
export async function servicesOf(daemon: FleetDaemon): Promise<readonly string[]> {
  const selector = { kind: 'Service', namespace: 'default', name: '', labels: '' };
  const { objectsJson } = await daemon.ask((client, given) => client.get({ selector }, given));
  const items: readonly { readonly metadata: { readonly name: string } }[] = objectsJson.map((json) => JSON.parse(json));
  return items.map(({ metadata }) => metadata.name).sort();
}

export const nodesOf = (server: FleetDaemon) => server.ask(async (client, given) => (await client.listNodes(given)).nodes);

/** Makes the machine at `root` a node; its id. */
export async function registerAt(server: FleetDaemon, space: NetworkSpace, root: string): Promise<string> {
  await mkdir(join(root, 'etc'), { recursive: true });
  await writeFile(join(root, 'etc/machine-id'), `${randomBytes(16).toString('hex')}\n`);
  const { token } = await server.ask((client, given) => client.createToken({ account: '', ttlMs: 600_000n, replace: '' }, given));
  await writeFile(join(root, 'token'), token);
  const where = ['--server', server.space.address, '--account', 'default', '--ca', `${server.dataDir}/registration-ca.crt`];
  const args = ['register', ...where, '--token-file', join(root, 'token'), '--root', root, '--data-dir', '/data', '-o', 'json'];
  const { code, stdout, stderr } = await runCli(args, undefined, ['ip', 'netns', 'exec', space.name]);
  if (code !== 0) throw new Error(`register ended with ${code}: ${stderr}`);
  return JSON.parse(stdout).nid;
}

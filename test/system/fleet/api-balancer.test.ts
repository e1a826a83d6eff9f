import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ThrowawayPki } from '../../support/throwaway-pki.js';
import { Fleet, type FleetAgent } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';
import { spawnIn } from '../support/fleet-network.js';

const run = promisify(execFile);
const SHIM = join(import.meta.dirname, '../../support/systemctl-of-haproxy.sh');
/** A machine whose one service is HAProxy, with files of its own; $4 is the value of --root. */
const WITHIN = `mkdir -p "$4/sbin" "$4/etc/haproxy" "$4/run/haproxy" &&
sed "s|@ROOT@|$4|g" ${SHIM} > "$4/sbin/systemctl" && chmod 755 "$4/sbin/systemctl" &&
mount --bind "$4/sbin" /usr/local/sbin && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/wireguard && exec "$@"`;

let fleet: Fleet;
const pki = new ThrowawayPki('kubernetes');

beforeAll(async () => {
  fleet = await Fleet.start({ agents: 3, agentsWithin: ['sh', '-c', WITHIN, 'sh'] });
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** From now on the node is a control plane, whose API server says its name. */
async function promote({ nid, daemon: { space, root } }: FleetAgent): Promise<void> {
  const { certificate, privateKey } = pki.issue({ name: 'api', san: ['DNS:kubernetes'], usage: 'serverAuth,clientAuth' });
  const [cert, key] = [join(root, 'api.crt'), join(root, 'api.key')];
  await writeFile(cert, certificate);
  await writeFile(key, privateKey);
  const program = join(import.meta.dirname, '../support/api-server-process.mjs');
  const child = spawnIn(space, [process.execPath, program, nid, cert, key], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  await once(child, 'message');
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const config = {
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:6443', 'certificate-authority-data': base64(pki.root) } }],
    users: [{ name: 'u', user: { 'client-certificate-data': base64(certificate), 'client-key-data': base64(privateKey) } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  await mkdir(join(root, 'etc/kubernetes/manifests'), { recursive: true });
  await writeFile(join(root, 'etc/kubernetes/admin.conf'), JSON.stringify(config));
  await writeFile(join(root, 'etc/kubernetes/manifests/kube-apiserver.yaml'), '');
}

/** Who answers on the balancer's port of a node. */
async function answer({ daemon }: FleetAgent): Promise<string> {
  const ask = `fetch('https://127.0.0.1:6446/').then((r) => r.text()).then(console.log, (e) => { console.error(e); process.exit(1); })`;
  const env = { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_NO_WARNINGS: '1' };
  const { stdout } = await run('ip', ['netns', 'exec', daemon.space.name, process.execPath, '-e', ask], { env });
  return stdout.trim();
}

async function servers({ daemon }: FleetAgent): Promise<readonly string[]> {
  const shown = await daemon.json<{ servers: { name: string; endpoint: string; state: string }[] }>('kubeproxy', 'refresh');
  return shown.servers.map(({ name, endpoint, state }) => `${name} ${endpoint} ${state}`);
}

const calls = async ({ daemon }: FleetAgent) => (await readFile(`${daemon.root}/run/calls`, 'utf8')).trim().split('\n');
const fileOf = ({ daemon }: FleetAgent) => `${daemon.root}/etc/haproxy/haproxy.cfg`;

test('a fleet without a control plane of Kubernetes leaves HAProxy alone', async () => {
  const { code, stdout } = await fleet.agent().daemon.cli(['kubeproxy', 'list']);
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'the control plane has named no API servers yet\n' });
  expect((await fleet.agent().daemon.cli(['status'])).stdout).toMatch(/^api balancer +waiting on port 6446/m);
});

test('every node balances over the control planes, also one that comes later, which takes no reload', async () => {
  await Promise.all([promote(fleet.agent(0)), promote(fleet.agent(1))]);
  const [a, b, worker] = [fleet.agent(0), fleet.agent(1), fleet.agent(2)];
  const up = (agent: FleetAgent, name: string) => `${name} ${agent.daemon.space.address}:6443 up`;
  const listed = (all: readonly string[]) => all.map((line) => line.replace(/^api-\d+ /, '')).toSorted();
  const expected = (...agents: FleetAgent[]) => listed(agents.map((agent) => up(agent, 'api-1')));
  for (const agent of fleet.agents) {
    await until(
      () => servers(agent),
      (all) => String(listed(all)) === String(expected(a, b)),
    );
    expect([a.nid, b.nid]).toContain(await answer(agent));
    expect(await agent.daemon.problems()).toEqual([]);
  }
  const before = await calls(worker);
  await promote(worker);
  await until(
    () => servers(worker),
    (all) => String(listed(all)) === String(expected(a, b, worker)),
  );
  expect(await calls(worker)).toEqual(before);
  expect((await worker.daemon.cli(['status'])).stdout).toMatch(/^api balancer +serving on port 6446, 3 of 3 API servers up$/m);
  const events = (await worker.daemon.cli(['events'])).stdout;
  expect(events).toMatch(/loadbalancer +the API is balanced over /);
});

test('HAProxy serves on without the agent, which repairs a broken file without its control plane', async () => {
  const worker = fleet.agent(2);
  const good = await readFile(fileOf(worker), 'utf8');
  await worker.daemon.stop('SIGKILL');
  expect(fleet.agents.map(({ nid }) => nid)).toContain(await answer(worker));
  await fleet.server.stop('SIGKILL');
  await writeFile(fileOf(worker), good.slice(0, 300));
  await worker.daemon.start(/runs and is not ready yet|is ready/);
  await until(
    () => readFile(fileOf(worker), 'utf8'),
    (text) => text === good,
  );
  expect(fleet.agents.map(({ nid }) => nid)).toContain(await answer(worker));
  expect((await worker.daemon.cli(['kubeproxy', 'refresh'])).stderr).toContain('loadbalancer.not_linked');
  await fleet.server.start();
  await fleet.linked();
  await until(
    () => servers(worker),
    (all) => all.length === 3,
  );
});

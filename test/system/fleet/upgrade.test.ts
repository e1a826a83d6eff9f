import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli, temporaryFolder } from '../support/daemon.js';
import { Fleet } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';
import { spawnIn } from '../support/fleet-network.js';
import { SIGNING_KEY, UpgradeTools } from '../support/upgrade-tools.js';

const PORT = 8099;
/** In the agent's own mount namespace the tools are in PATH, and systemd has booted the machine. */
const WITHIN =
  'mount --make-rprivate / && mount --bind "$0" /usr/local/bin && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec "$@"';
const SERVE = `require('node:http').createServer((q, r) => r.end(process.argv[1])).listen(${PORT}, () => console.log('up'))`;

let stack: AsyncDisposableStack;
let fleet: Fleet;
let tools: UpgradeTools;

beforeAll(async () => {
  stack = new AsyncDisposableStack();
  const { path: folder } = stack.use(await temporaryFolder());
  tools = await UpgradeTools.make(folder, '1.32.1');
  const packages = `HOLDFAST_CLIENT_SERVER_PACKAGES=http://10.77.0.1:${PORT}`;
  fleet = stack.use(await Fleet.start({ agentsWithin: ['env', packages, 'unshare', '-m', 'sh', '-c', WITHIN, tools.programs] }));
  expect(fleet.network.hub.address).toBe('10.77.0.1');
  const server = spawnIn(fleet.network.hub, [process.execPath, '-e', SERVE, '--', SIGNING_KEY], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  stack.defer(() => ended(server));
  await once(server.stdout ?? server, 'data');
});
afterAll(() => stack.disposeAsync());

async function ended(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

const LOCK = 'apt-get --option DPkg::Lock::Timeout=120';
const KEEP = '--option Dpkg::Options::=--force-confdef --option Dpkg::Options::=--force-confold';
const CALLS = [
  /^apt-get .* update$/,
  'apt-mark unhold kubeadm',
  `${LOCK} ${KEEP} install --yes kubeadm=VERSION-*`,
  'apt-mark hold kubeadm',
  'kubeadm upgrade apply vVERSION --yes',
  'apt-mark unhold kubelet kubectl',
  `${LOCK} ${KEEP} install --yes kubelet=VERSION-* kubectl=VERSION-*`,
  'apt-mark hold kubelet kubectl',
  'systemctl restart -- kubelet.service',
];
const calls = (version: string) =>
  CALLS.map((call) => (typeof call === 'string' ? call.replaceAll('VERSION', version) : expect.stringMatching(call)));

test('UPGRADE_NODE_K8S: each tool is called once, in order, and each step is an event at the server', async () => {
  const { nid, daemon } = fleet.agent();
  const { reply } = await fleet.result(nid, 'UPGRADE_NODE_K8S', { targetKubernetesVersion: '1.32.4', isFirstCp: true });
  expect(reply).toEqual({
    ...{ success: true, message: 'Kubernetes 1.32.4 runs on this node', previousVersion: '1.32.1', newVersion: '1.32.4' },
  });
  expect(await tools.changes()).toEqual(calls('1.32.4'));
  expect(await tools.read('node')).toBe('1.32.4');
  expect(await readFile(join(daemon.root, 'etc/apt/keyrings/kubernetes-apt-keyring.asc'), 'utf8')).toBe(SIGNING_KEY);
  expect(await readFile(join(daemon.root, 'etc/apt/sources.list.d/kubernetes.list'), 'utf8')).toContain(
    '/core:/stable:/v1.32/deb/ /',
  );
  const { stdout } = await runCli(['events', '--data-dir', fleet.server.dataDir]);
  for (const step of ['signing-key', 'apt-update', 'kubeadm', 'cluster', 'kubelet', 'restart', 'wait']) {
    expect(stdout).toMatch(new RegExp(`node ${nid}.*upgrade: ${step}: `));
  }
});

test.each([
  ['1.32.5', /^kubeadm upgrade apply/],
  ['1.33.0', /^apt-get .* install --yes kubelet/],
])('A8: killed -9 while upgrading to %s in %s, it goes on where it was', { timeout: 120_000 }, async (version, where) => {
  const { nid, daemon } = fleet.agent();
  await tools.write('log', '');
  await tools.write('slow', '2');
  const { tag } = await fleet.send(nid, 'UPGRADE_NODE_K8S', { targetKubernetesVersion: version, isFirstCp: true });
  await until(
    () => tools.changes(),
    (lines) => lines.some((line) => where.test(line)),
    60_000,
  );
  await daemon.stop('SIGKILL');
  await daemon.start();
  const { reply } = await fleet.resultOf(nid, tag);
  expect(reply).toMatchObject({ success: true, newVersion: version });
  const programs = (await tools.changes()).filter((line) => /^(?:apt-get|kubeadm)/.test(line));
  expect(programs).toEqual(calls(version).filter((call) => typeof call !== 'string' || /^(?:apt-get|kubeadm)/.test(call)));
  expect(await tools.read('node')).toBe(version);
});

test('a failure is an answer that names the step, and the tag tells the same again', async () => {
  const { nid } = fleet.agent();
  await tools.write('slow', '0');
  await tools.write('log', '');
  const { reply, state } = await fleet.result(nid, 'UPGRADE_NODE_K8S', { targetKubernetesVersion: '1.35.0' });
  expect(reply).toMatchObject({ success: false, previousVersion: '1.33.0', message: expect.stringMatching(/^step versions: /) });
  expect(state).toBeDefined();
  expect(await tools.changes()).toEqual([]);
});

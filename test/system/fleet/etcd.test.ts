import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ThrowawayPki } from '../../support/throwaway-pki.js';
import { runCli } from '../support/daemon.js';
import { Fleet } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';
import { spawnIn } from '../support/fleet-network.js';

const ADDRESSES = ['127.0.0.1', '127.0.0.2', '127.0.0.10'];

let fleet: Fleet;
const etcds: ChildProcess[] = [];

/** The etcd of a control plane as kubeadm makes it, all three members in the network of one machine. */
async function startEtcd(): Promise<void> {
  const { space, root } = fleet.agent().daemon;
  const folder = join(root, 'etc/kubernetes/pki/etcd');
  await mkdir(folder, { recursive: true });
  const pki = new ThrowawayPki('etcd-ca');
  const san = ADDRESSES.map((address) => `IP:${address}`);
  const pair = pki.issue({ name: 'peer', san, usage: 'serverAuth,clientAuth' });
  const [ca, certificate, key] = ['ca.crt', 'peer.crt', 'peer.key'].map((name) => join(folder, name)) as [string, string, string];
  await Promise.all([writeFile(ca, pki.root), writeFile(certificate, pair.certificate), writeFile(key, pair.privateKey)]);
  pki.remove();
  const peer = (address: string) => `https://${address}:2380`;
  const initial = ADDRESSES.map((address) => `m${address}=${peer(address)}`).join(',');
  for (const address of ADDRESSES) {
    const client = `https://${address}:2379`;
    const args = [
      ...['--name', `m${address}`, '--data-dir', join(root, `etcd-${address}`), '--initial-cluster', initial],
      ...['--listen-client-urls', client, '--advertise-client-urls', client, '--log-level', 'error'],
      ...['--listen-peer-urls', peer(address), '--initial-advertise-peer-urls', peer(address)],
      ...['--cert-file', certificate, '--key-file', key, '--trusted-ca-file', ca, '--client-cert-auth'],
      ...['--peer-cert-file', certificate, '--peer-key-file', key, '--peer-trusted-ca-file', ca, '--peer-client-cert-auth'],
    ];
    etcds.push(spawnIn(space, ['etcd', ...args], { stdio: 'ignore' }));
  }
}

const etcd = (...args: readonly string[]) => runCli(['etcd', ...args, '--data-dir', fleet.agent().daemon.dataDir]);
const members = async () => {
  const { code, stdout } = await etcd('list', '-o', 'json');
  const list: readonly { id: string; name: string; isLeader: boolean; problem?: string }[] =
    code === 0 ? JSON.parse(stdout).members : [];
  return list;
};

beforeAll(async () => {
  fleet = await Fleet.start();
  await startEtcd();
  await until(members, (list) => list.length === 3, 60_000);
}, 120_000);
afterAll(async () => {
  for (const process of etcds) {
    const ended = once(process, 'exit');
    if (process.exitCode === null && process.signalCode === null && process.kill('SIGKILL')) await ended;
  }
  await fleet[Symbol.asyncDispose]();
});

test('REMOVE_ETCD_MEMBER and etcd remove, on a real agent: exactly that member each time, and the last vote stays', {
  timeout: 180_000,
}, async () => {
  const { nid } = fleet.agent();
  expect(await fleet.result(nid, 'REMOVE_ETCD_MEMBER', { node_ip: '127.0.0.11' })).toMatchObject({ replyType: 'NO_CONTENT' });
  expect(await members()).toHaveLength(3);
  expect(await fleet.result(nid, 'REMOVE_ETCD_MEMBER', { node_ip: '127.0.0.10' })).toMatchObject({ replyType: 'NO_CONTENT' });
  const left = await until(members, (list) => list.length === 2, 30_000);
  expect(left.map(({ name }) => name).toSorted()).toEqual(['m127.0.0.1', 'm127.0.0.2']);
  const other = left.find(({ name }) => name === 'm127.0.0.2');
  const removed = await etcd('remove', other?.id ?? '', '--yes');
  expect([removed.code, removed.stdout]).toEqual([0, `etcd/${other?.id} removed\n`]);
  const refused = await fleet.result(nid, 'REMOVE_ETCD_MEMBER', { node_ip: '127.0.0.1' });
  expect(refused).toMatchObject({
    replyType: 'ERROR',
    reply: expect.stringMatching(/is the last voting member; nothing was removed$/),
  });
  expect((await members()).map(({ name }) => name)).toEqual(['m127.0.0.1']);
});

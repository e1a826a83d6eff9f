import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { GrpcEtcdMembers } from '../../src/adapters/etcd/grpc-etcd-members.js';
import { tempFolder } from './temp-folder.js';
import { ThrowawayPki } from './throwaway-pki.js';

const options = { signal: new AbortController().signal };

interface Started {
  readonly process: ChildProcess;
  readonly clientUrl: string;
  readonly peerUrl: string;
}

/** A real etcd as kubeadm makes it: each member on an address of its own (of loopback), mutual TLS on both ports. */
export class EtcdCluster {
  readonly files: { readonly ca: string; readonly certificate: string; readonly key: string };
  readonly #folder: string;
  readonly #flags: readonly string[];
  readonly #port: number;
  readonly #started = new Map<string, Started>();

  private constructor(folder: string, port: number, flags: readonly string[]) {
    this.#folder = folder;
    this.#port = port;
    this.#flags = flags;
    this.files = { ca: join(folder, 'ca.crt'), certificate: join(folder, 'peer.crt'), key: join(folder, 'peer.key') };
  }

  /** Is stopped with the test. */
  static async start(addresses: readonly string[], flags: readonly string[] = []): Promise<EtcdCluster> {
    const folder = await tempFolder();
    const port = 20_000 + 2 * Math.floor(Math.random() * 5_000);
    const cluster = new EtcdCluster(folder, port, ['--initial-cluster-state', 'new', ...flags]);
    onTestFinished(() => cluster.stop());
    await cluster.#certify();
    const initial = addresses.map((address) => `${nameOf(address)}=${cluster.peerUrl(address)}`).join(',');
    for (const address of addresses) cluster.#run(address, initial, cluster.#flags);
    await cluster.settled(addresses.length, addresses[0] ?? '');
    return cluster;
  }

  peerUrl(address: string): string {
    return `https://${address}:${this.#port + 1}`;
  }

  /** As the agent of that machine asks. */
  members(address: string): GrpcEtcdMembers {
    return new GrpcEtcdMembers({ url: `https://${address}:${this.#port}`, files: this.files });
  }

  /** A member that was added. */
  join(address: string, initialCluster: string, name = nameOf(address)): void {
    const initial = `${initialCluster},${name}=${this.peerUrl(address)}`;
    this.#run(address, initial, ['--initial-cluster-state', 'existing'], name);
  }

  /** So many members are there, and all of them well. */
  async settled(count: number, address: string): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      const members = await this.members(address)
        .list(true, options)
        .catch(() => []);
      if (members.length === count && members.every(({ problem }) => problem === undefined)) return;
      if (attempt >= 100) throw new Error(`the cluster is not well: ${JSON.stringify(members.map(({ problem }) => problem))}`);
      await pause(200);
    }
  }

  /** It holds its connections and answers nobody. */
  freeze(address: string): void {
    this.#started.get(address)?.process.kill('SIGSTOP');
  }

  async kill(address: string): Promise<void> {
    const process = this.#started.get(address)?.process;
    if (process === undefined || process.exitCode !== null || process.signalCode !== null) return;
    const exited = once(process, 'exit');
    process.kill('SIGKILL');
    await exited;
  }

  async stop(): Promise<void> {
    for (const address of this.#started.keys()) await this.kill(address);
  }

  async #certify(): Promise<void> {
    const pki = new ThrowawayPki('etcd-ca');
    const san = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.10'].map((address) => `IP:${address}`);
    const pair = pki.issue({ name: 'peer', san, usage: 'serverAuth,clientAuth' });
    await writeFile(this.files.ca, pki.root);
    await writeFile(this.files.certificate, pair.certificate);
    await writeFile(this.files.key, pair.privateKey);
    pki.remove();
  }

  #run(address: string, initial: string, more: readonly string[], name = nameOf(address)): void {
    const { ca, certificate, key } = this.files;
    const clientUrl = `https://${address}:${this.#port}`;
    const peerUrl = this.peerUrl(address);
    const args = [
      ...['--name', name, '--data-dir', join(this.#folder, name), '--initial-cluster', initial, '--log-level', 'error'],
      ...['--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
      ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
      ...['--cert-file', certificate, '--key-file', key, '--trusted-ca-file', ca, '--client-cert-auth'],
      ...['--peer-cert-file', certificate, '--peer-key-file', key, '--peer-trusted-ca-file', ca, '--peer-client-cert-auth'],
      ...['--heartbeat-interval', '50', '--election-timeout', '500', ...more],
    ];
    this.#started.set(address, { process: spawn('etcd', args, { stdio: 'ignore' }), clientUrl, peerUrl });
  }
}

function nameOf(address: string): string {
  return `m${address.split('.').at(-1)}`;
}

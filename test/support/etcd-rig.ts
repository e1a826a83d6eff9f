import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { EtcdClient } from '../../src/adapters/etcd/etcd-client.js';
import type { EtcdTls } from '../../src/adapters/etcd/etcd-endpoint.js';
import { deleteOp, putOp, range } from '../../src/adapters/etcd/etcd-messages.js';

/** Why tests are skipped on a machine without it; CI has it. */
export const hasEtcd = spawnSync('etcd', ['--version'], { stdio: 'ignore' }).status === 0;

const options = { signal: new AbortController().signal };

interface Member {
  readonly url: string;
  readonly start: () => ChildProcess;
  process: ChildProcess;
}

export interface EtcdRigOptions {
  readonly members?: number;
  /** Paths of certificate, key and, for mutual TLS, the CA of clients. */
  readonly tls?: { readonly certificate: string; readonly key: string; readonly ca: string };
  readonly clientTls?: EtcdTls;
  readonly flags?: readonly string[];
}

/** A real etcd on random ports of loopback, in a folder of its own. */
export class EtcdRig {
  readonly #folder: string;
  readonly #members: readonly Member[];
  readonly #clientTls: EtcdTls;
  readonly #clients: EtcdClient[] = [];

  private constructor(folder: string, members: readonly Member[], clientTls: EtcdTls) {
    this.#folder = folder;
    this.#members = members;
    this.#clientTls = clientTls;
  }

  static async start({ members: count = 1, tls, clientTls = {}, flags = [] }: EtcdRigOptions = {}): Promise<EtcdRig> {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-etcd-'));
    const ports = await freePorts(count * 2);
    const peers = Array.from({ length: count }, (_, i) => `m${i}=http://127.0.0.1:${ports[count + i]}`).join(',');
    const members = Array.from({ length: count }, (_, i): Member => {
      const url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${ports[i]}`;
      const peer = `http://127.0.0.1:${ports[count + i]}`;
      const secure =
        tls === undefined
          ? []
          : ['--cert-file', tls.certificate, '--key-file', tls.key, '--client-cert-auth', '--trusted-ca-file', tls.ca];
      const args = [
        ...['--name', `m${i}`, '--data-dir', join(folder, `m${i}`), '--listen-client-urls', url, '--advertise-client-urls', url],
        ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', peers],
        ...['--heartbeat-interval', '50', '--election-timeout', '500', '--log-level', 'error', ...secure, ...flags],
      ];
      const start = () => spawn('etcd', args, { stdio: 'ignore' });
      return { url, start, process: start() };
    });
    const rig = new EtcdRig(folder, members, clientTls);
    await rig.ready();
    return rig;
  }

  get urls(): readonly string[] {
    return this.#members.map(({ url }) => url);
  }

  client(endpoints = this.urls, tls = this.#clientTls): EtcdClient {
    const client = new EtcdClient({ endpoints, tls });
    this.#clients.push(client);
    return client;
  }

  /**
   * Each member takes writes. One whose way to the leader is not open yet loses what is proposed to it without a word, and its client waits
   * for 6 s: a read of one of them says nothing of that. What is deleted is not there, so that no revision changes.
   */
  async ready(): Promise<void> {
    const running = this.#members.filter(({ process }) => process.exitCode === null && process.signalCode === null);
    for (const { url } of running) {
      const client = this.client([url]);
      for (let attempt = 0; ; attempt += 1) {
        try {
          await client.txn({ compare: [], success: [deleteOp('ready')], failure: [] }, options);
          break;
        } catch (error) {
          if (attempt >= 10) throw error;
        }
      }
      client.close();
    }
  }

  /** etcd's own newest revision. */
  async revision(): Promise<bigint> {
    const client = this.client();
    const answer = await client.range(range('none'), options);
    client.close();
    return answer?.header?.revision ?? 0n;
  }

  /** Nothing before the newest revision is kept. */
  async compact(): Promise<void> {
    const client = this.client();
    const revision = (await client.range(range('none'), options))?.header?.revision ?? 0n;
    await client.compact(revision, options);
    client.close();
  }

  /** Somebody else writes all the time, and compacts each second. */
  disturb(): { stop(): Promise<void> } {
    const client = this.client();
    const abort = new AbortController();
    const writing = (async () => {
      for (let i = 0; !abort.signal.aborted; i += 1) {
        await client.txn({ compare: [], success: [putOp(`/foreign/${i % 50}`, String(i))], failure: [] }, options);
        await pause(5);
      }
    })();
    const compacting = (async () => {
      while (!abort.signal.aborted) {
        await this.compact().catch(() => {});
        await pause(1_000, undefined, { signal: abort.signal }).catch(() => {});
      }
    })();
    const stop = async () => {
      abort.abort();
      await Promise.all([writing, compacting]);
      client.close();
    };
    return { stop };
  }

  signal(index: number, name: NodeJS.Signals): void {
    this.#members[index]?.process.kill(name);
  }

  async kill(index: number): Promise<void> {
    const process = this.#members[index]?.process;
    if (process === undefined || process.exitCode !== null || process.signalCode !== null) return;
    const exited = once(process, 'exit');
    process.kill('SIGKILL');
    await exited;
  }

  restart(index: number): void {
    const member = this.#members[index];
    if (member !== undefined) member.process = member.start();
  }

  /** A copy of the only member's data, for `putBack`; it is away meanwhile. */
  async save(): Promise<void> {
    await this.kill(0);
    await cp(join(this.#folder, 'm0'), join(this.#folder, 'saved'), { recursive: true });
    this.restart(0);
    await this.ready();
  }

  /** As a restore from a snapshot with the same token: the cluster keeps its id and goes back in revisions. */
  async putBack(): Promise<void> {
    await this.kill(0);
    await rm(join(this.#folder, 'm0'), { recursive: true });
    await rename(join(this.#folder, 'saved'), join(this.#folder, 'm0'));
    this.restart(0);
    await this.ready();
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    for (let i = 0; i < this.#members.length; i += 1) await this.kill(i);
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Free when asked; who takes one meanwhile makes the test fail at its start. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      return server;
    }),
  );
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  });
  for (const server of servers) server.close();
  await pause(1);
  return ports;
}

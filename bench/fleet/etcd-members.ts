import { readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, Children } from '../rig/children.ts';
import { freePort } from './server.ts';

const NUMBERS = [0, 1, 2] as const;
const READY_MS = 30_000;

/** Three members of one etcd on loopback, with its default limits. Those who take writes through one of them are told by all. */
export class EtcdMembers implements AsyncDisposable {
  /** As `--server-etcd` takes them. */
  readonly urls: string;
  readonly #folder: string;
  readonly #children: Children;
  readonly #members: readonly Child[];

  private constructor(folder: string, children: Children, members: readonly Child[], urls: readonly string[]) {
    this.#folder = folder;
    this.#children = children;
    this.#members = members;
    this.urls = urls.join(',');
  }

  /** Resolves when each has a leader. @throws Error when one ends, or has none within 30 s */
  static async start(folder: string): Promise<EtcdMembers> {
    const children = new Children(folder);
    const clients: string[] = [];
    const peers: string[] = [];
    for (const _ of NUMBERS) {
      clients.push(`http://127.0.0.1:${await freePort()}`);
      peers.push(`http://127.0.0.1:${await freePort()}`);
    }
    const cluster = NUMBERS.map((number) => `m${number}=${peers[number]}`).join(',');
    const members = NUMBERS.map((number) => {
      const [client = '', peer = ''] = [clients[number], peers[number]];
      const args = [
        ...['--name', `m${number}`, '--data-dir', join(folder, `m${number}`), '--log-level', 'error'],
        ...['--listen-client-urls', client, '--advertise-client-urls', client],
        ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', cluster],
      ];
      return children.start(`m${number}`, ['setpriv', '--pdeathsig', 'TERM', 'etcd', ...args]);
    });
    const until = performance.now() + READY_MS;
    for (const [number, client] of clients.entries()) {
      while (!(await isHealthy(client))) {
        const member = members[number];
        if (member?.running() !== true || performance.now() > until) throw new Error(`etcd does not start: ${member?.said()}`);
        await sleep(100);
      }
    }
    return new EtcdMembers(folder, children, members, clients);
  }

  async used(): Promise<{ readonly residentMb: number; readonly dataMb: number }> {
    const resident = this.#members.map(({ pid }) =>
      Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0),
    );
    const { size } = await stat(join(this.#folder, 'm0/member/snap/db'));
    return { residentMb: (resident.reduce((sum, each) => sum + each, 0) * 1_024) / 1e6, dataMb: size / 1e6 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#children[Symbol.asyncDispose]();
  }
}

/** Which it is while it has a leader. */
async function isHealthy(client: string): Promise<boolean> {
  const answer = await fetch(`${client}/health`).catch(() => undefined);
  return answer?.ok === true;
}

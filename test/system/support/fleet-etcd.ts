import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from './fleet-daemon.js';
import { type NetworkSpace, spawnIn } from './fleet-network.js';

const run = promisify(execFile);
const MEMBERS = 3;

/** Three members of one etcd in a namespace, killed with its disposal. */
export class FleetEtcd implements AsyncDisposable {
  readonly urls: string;
  readonly #space: NetworkSpace;
  readonly #start: (number: number) => ChildProcess;
  readonly #members: ChildProcess[];

  private constructor(space: NetworkSpace, start: (number: number) => ChildProcess) {
    this.#space = space;
    this.#start = start;
    this.#members = numbers.map(start);
    this.urls = numbers.map((number) => clientUrl(space, number)).join(',');
  }

  /** Resolves when it is healthy. Its data is in `folder`. */
  static async start(space: NetworkSpace, folder: string): Promise<FleetEtcd> {
    const cluster = numbers.map((number) => `m${number}=${peerUrl(space, number)}`).join(',');
    const member = (number: number) => {
      const [client, peer] = [clientUrl(space, number), peerUrl(space, number)];
      const args = [
        ...['--name', `m${number}`, '--data-dir', join(folder, `m${number}`), '--log-level', 'error'],
        ...['--listen-client-urls', client, '--advertise-client-urls', client],
        ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', cluster],
      ];
      return spawnIn(space, ['etcd', ...args], { stdio: 'ignore' });
    };
    const etcd = new FleetEtcd(space, member);
    try {
      await etcd.healthy();
    } catch (error) {
      await etcd[Symbol.asyncDispose]();
      throw error;
    }
    return etcd;
  }

  /** Each member that runs takes writes: one whose way to the leader is not open yet loses them. */
  async healthy(): Promise<void> {
    for (const number of numbers.filter((each) => isRunning(this.#members[each]))) {
      const args = ['netns', 'exec', this.#space.name, 'etcdctl', '--endpoints', clientUrl(this.#space, number), 'del', 'none'];
      await until(
        () => run('ip', args, { env: { ...process.env, ETCDCTL_API: '3' } }),
        () => true,
      );
    }
  }

  async kill(number: number): Promise<void> {
    const member = this.#members[number];
    if (member === undefined || !isRunning(member)) return;
    const exited = once(member, 'exit');
    member.kill('SIGKILL');
    await exited;
  }

  /** With the data that it had when it was killed. */
  restart(number: number): void {
    this.#members[number] = this.#start(number);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const number of numbers) await this.kill(number);
  }
}

const numbers = Array.from({ length: MEMBERS }, (_, number) => number);

function clientUrl({ address }: NetworkSpace, number: number): string {
  return `http://${address}:${2379 + number * 10}`;
}

function peerUrl({ address }: NetworkSpace, number: number): string {
  return `http://${address}:${2380 + number * 10}`;
}

function isRunning(member: ChildProcess | undefined): boolean {
  return member !== undefined && member.exitCode === null && member.signalCode === null;
}

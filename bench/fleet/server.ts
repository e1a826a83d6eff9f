import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { GrpcAdminClient } from '../../dist/adapters/admin/grpc-admin-client.js';
import { type Child, Children } from '../rig/children.ts';
import { cpuSeconds } from '../rig/usage.ts';
import type { ServerPlace } from './protocol.ts';

const program = join(import.meta.dirname, '../../bin/holdfast');
const READY_MS = 60_000;
const LOOK_MS = 20;
const HOST = '127.0.0.1';

/** What a server has used: CPU seconds since it was started, and what it occupies now. */
export interface Used {
  readonly cpuSeconds: number;
  readonly residentMb: number;
}

export interface FleetServerOptions {
  readonly folder: string;
  /** CPU profiles go there when a server ends well. */
  readonly profile: string | undefined;
  /** Clients' addresses of members; without, it has its own store. */
  readonly etcd: string | undefined;
}

/** One `holdfast server`, with its data in a folder. */
export class FleetServer implements AsyncDisposable {
  readonly place: ServerPlace;
  readonly #options: FleetServerOptions;
  readonly #children: Children;
  #child: Child | undefined;

  private constructor(options: FleetServerOptions, [registrationPort, nodesPort]: readonly [number, number]) {
    const root = join(options.folder, 'data/registration-ca.crt');
    this.place = { host: HOST, registrationPort, nodesPort, root };
    this.#options = options;
    this.#children = new Children(options.folder);
  }

  static async in(options: FleetServerOptions): Promise<FleetServer> {
    return new FleetServer(options, [await freePort(), await freePort()]);
  }

  /** Resolves when nodes are served. */
  async start(): Promise<void> {
    const { registrationPort, nodesPort } = this.place;
    const listen = (flag: string, port: number) => [`--server-listen-${flag}`, `${HOST}:${port}`];
    const { profile, etcd } = this.#options;
    const store = etcd === undefined ? [] : ['--server-etcd', etcd];
    const ports = [...listen('l1', registrationPort), ...listen('l2', nodesPort), '--server-listen-metrics', 'off'];
    const flags = ['--data-dir', this.#dataDir, ...store, ...ports];
    const options = profile === undefined ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profile}` };
    const command = ['setpriv', '--pdeathsig', 'TERM', program, 'server', ...flags, '--log-level', 'warn'];
    const child = this.#children.start('server', command, options);
    this.#child = child;
    const until = performance.now() + READY_MS;
    while (!child.said().includes('is ready')) {
      if (!child.running() || performance.now() > until) throw new Error(`the server does not start: ${child.said()}`);
      await sleep(LOOK_MS);
    }
  }

  /** As an administrator does. */
  stop(): Promise<void> {
    return this.#end('SIGTERM');
  }

  /** As the kernel does when memory is short. */
  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  client(): GrpcAdminClient {
    return new GrpcAdminClient(join(this.#dataDir, 'admin/admin.sock'));
  }

  used(): Used {
    const pid = this.#child?.pid ?? -1;
    const resident = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return { cpuSeconds: cpuSeconds(pid), residentMb: (Number(resident ?? 0) * 1_024) / 1e6 };
  }

  /** Of a file of the data directory and its write-ahead log, MB. */
  async fileMb(name: string): Promise<number> {
    const sizes = await Promise.all(
      [name, `${name}-wal`].map((file) =>
        stat(join(this.#dataDir, file)).then(
          ({ size }) => size,
          () => 0,
        ),
      ),
    );
    return sizes.reduce((sum, size) => sum + size) / 1e6;
  }

  /** Entries that the log keeps, and those that it ever had. To be asked when the server has ended. */
  entries(): { readonly kept: number; readonly written: number } {
    using db = new DatabaseSync(join(this.#dataDir, 'log.db'), { readOnly: true });
    const row = db.prepare('SELECT count(*) AS kept, max(revision) AS written FROM entries').get();
    return { kept: Number(row?.kept ?? 0), written: Number(row?.written ?? 0) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#children[Symbol.asyncDispose]();
  }

  get #dataDir(): string {
    return join(this.#options.folder, 'data');
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    process.kill(child.pid, signal);
    while (child.running()) await sleep(LOOK_MS);
    await child.stop();
  }
}

/** One that nobody has at present. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, HOST);
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  if (address === null || typeof address === 'string') throw new Error('a port has no number');
  return address.port;
}

import { hash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { SystemClock } from '../../src/adapters/clock/system-clock.js';
import { ExecaCommandRunner } from '../../src/adapters/command/execa-command-runner.js';
import { FileBalancerConfig } from '../../src/adapters/loadbalancer/file-balancer-config.js';
import { HaproxyRuntime } from '../../src/adapters/loadbalancer/haproxy-runtime.js';
import { SystemdUnits } from '../../src/adapters/service/systemd-units.js';
import { BalancerKeeper, type BalancerKeeperParts } from '../../src/app/loadbalancer/balancer-keeper.js';
import { FakeLogger } from '../fakes/fake-logger.js';

const sha256 = (text: string) => hash('sha256', text, 'hex');

/** A machine with HAProxy, below a folder of its own: the real program, under a systemctl that knows it alone. */
export class HaproxyMachine {
  readonly logger = new FakeLogger();
  readonly root: string;
  readonly port: number;
  readonly file: string;
  readonly socket: string;

  constructor(root: string, port: number) {
    this.root = root;
    this.port = port;
    this.file = `${root}/etc/haproxy/haproxy.cfg`;
    this.socket = `${root}/run/haproxy/admin.sock`;
  }

  /** HAProxy does not run yet; it ends with the test. */
  static async make(): Promise<HaproxyMachine> {
    const root = await mkdtemp(join(tmpdir(), 'holdfast-hp-'));
    const machine = new HaproxyMachine(root, await freePort());
    for (const folder of ['etc/haproxy', 'run/haproxy', 'booted', 'sbin']) await mkdir(join(root, folder), { recursive: true });
    const script = await readFile(join(import.meta.dirname, 'systemctl-of-haproxy.sh'), 'utf8');
    await writeFile(machine.systemctl, script.replaceAll('@ROOT@', root));
    await chmod(machine.systemctl, 0o755);
    onTestFinished(async () => {
      await machine.stop();
      await rm(root, { recursive: true, force: true });
    });
    return machine;
  }

  get systemctl(): string {
    return `${this.root}/sbin/systemctl`;
  }

  /** As another process of the agent has it. */
  parts(requestSeconds = 60): BalancerKeeperParts {
    const commands = new ExecaCommandRunner();
    return {
      config: new FileBalancerConfig({ file: this.file, memoryFile: `${this.root}/api-servers.json`, commands }),
      runtime: new HaproxyRuntime(this.socket),
      units: new SystemdUnits({ commands, systemctl: this.systemctl, booted: `${this.root}/booted` }),
      settings: { port: this.port, socket: this.socket, requestSeconds },
      clock: new SystemClock(),
      logger: this.logger,
      sha256,
    };
  }

  keeper(requestSeconds?: number): BalancerKeeper {
    return new BalancerKeeper(this.parts(requestSeconds));
  }

  /** What its manager was asked to do. */
  async calls(): Promise<readonly string[]> {
    return (await readFile(`${this.root}/run/calls`, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
  }

  async master(): Promise<number> {
    return Number(await readFile(`${this.root}/run/haproxy.pid`, 'utf8'));
  }

  /** Pids of the workers, the current one and those that were replaced and still live. */
  async workers(): Promise<readonly number[]> {
    const master = await this.master();
    const children = await readFile(`/proc/${master}/task/${master}/children`, 'utf8').catch(() => '');
    return children.split(' ').flatMap((pid) => (pid === '' ? [] : [Number(pid)]));
  }

  async stop(): Promise<void> {
    const master = await this.master().catch(() => undefined);
    if (master === undefined || Number.isNaN(master)) return;
    const workers = await this.workers();
    for (const pid of [master, ...workers]) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended already.
      }
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, '::', resolve));
  const address = server.address();
  await new Promise((resolve) => void server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('there is no port');
  return address.port;
}

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { RulePlan } from '../../src/domain/dataplane/ruleset.js';
import type { PacketFilter } from '../../src/ports/dataplane/packet-filter.js';
import { NamespaceChild } from './namespace-child.js';
import { packetFilterIn } from './packet-filter-namespace.js';

const TABLE = 'holdfast';
const BACKENDS = 4;
/** A key and what it leads to; of classes, which lead to chains, the key alone. */
export const elementBytes = {
  ...{ service4: 16, service6: 28, endpoint4: 24, endpoint6: 48, class4: 4, class6: 4 },
  ...{ local4: 4, local6: 16, hairpin4: 8, hairpin6: 32, affinity4: 20, affinity6: 44 },
} as const;
const options = { signal: new AbortController().signal };

/** What a client saw, one text for each time that it asked: what answered, or `refused`, `reset`, `silent`. */
export type Answers = readonly string[];

/**
 * Three hosts: `client` (10.9.1.2), `node` with the rules (10.9.1.1, 10.9.2.1), `back` with echo servers on 10.9.2.2 and following, which tell
 * their own address and the client's. IPv6 alike below fd09::.
 */
export class FilterSpace implements AsyncDisposable {
  readonly #name: string;
  readonly #children: ChildProcess[] = [];
  #node: NamespaceChild | undefined;
  #filter: PacketFilter | undefined;

  private constructor(name: string) {
    this.#name = name;
  }

  static async make(name: string): Promise<FilterSpace> {
    const space = new FilterSpace(`holdfast-${name}-${process.pid}`);
    try {
      space.#lay();
      space.#node = new NamespaceChild(space.of('node'));
      space.#filter = await packetFilterIn(space.#node);
      await space.#start('back', 'filter-server.mjs', String(BACKENDS));
    } catch (error) {
      await space[Symbol.asyncDispose]();
      throw error;
    }
    return space;
  }

  get filter(): PacketFilter {
    if (this.#filter === undefined) throw new Error('the space is not made');
    return this.#filter;
  }

  /** Of one host; `ip -n` takes it. */
  of(host: 'client' | 'node' | 'back'): string {
    return `${this.#name}-${host}`;
  }

  /** Our table, owned by the process that makes it. */
  async load([base = [], ...rest]: RulePlan): Promise<void> {
    await this.filter.open(() => {}, options);
    await this.filter.replace(base, options);
    await this.apply(rest);
  }

  apply(plan: RulePlan): Promise<void> {
    return this.filter.apply(plan, options);
  }

  /** Keys and data in hexadecimal, sorted. */
  async elements(set: keyof typeof elementBytes): Promise<readonly string[]> {
    const { sets } = await this.filter.dump(options);
    const text = Buffer.from(sets.find((each) => each.set === set)?.packed ?? []).toString('hex');
    return (text.match(new RegExp(`.{${2 * elementBytes[set]}}`, 'g')) ?? []).sort();
  }

  async chains(): Promise<readonly string[]> {
    return (await this.filter.dump(options)).chains.toSorted();
  }

  /** As nft(8) sees it. */
  list(): string {
    return execFileSync('ip', ['netns', 'exec', this.of('node'), 'nft', 'list', 'table', 'inet', TABLE], { encoding: 'utf8' });
  }

  /** Asks the address so many times, each time from a new port. */
  async ask(
    host: 'client' | 'node' | 'back',
    protocol: 'tcp' | 'udp',
    address: string,
    port: number,
    times: number,
    from = '',
  ): Promise<Answers> {
    const argv = [
      'netns',
      'exec',
      this.of(host),
      process.execPath,
      script('filter-client.mjs'),
      protocol,
      address,
      String(port),
      String(times),
      from,
    ];
    const child = spawn('ip', argv, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout?.on('data', (part) => (text += part));
    await once(child, 'close');
    return JSON.parse(text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#node?.stop();
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    for (const host of ['client', 'node', 'back'] as const) {
      try {
        execFileSync('ip', ['netns', 'del', this.of(host)], { stdio: 'ignore' });
      } catch {
        // It was not made.
      }
    }
  }

  #lay(): void {
    const ip = (...args: string[]) => execFileSync('ip', args);
    for (const host of ['client', 'node', 'back'] as const) {
      ip('netns', 'add', this.of(host));
      ip('-n', this.of(host), 'link', 'set', 'lo', 'up');
      for (const key of [
        'net.ipv4.ip_forward=1',
        'net.ipv6.conf.all.forwarding=1',
        'net.ipv6.conf.default.accept_dad=0',
        'net.ipv4.icmp_ratelimit=0',
      ]) {
        execFileSync('ip', ['netns', 'exec', this.of(host), 'sysctl', '-qw', key]);
      }
    }
    for (const [host, net] of [
      ['client', 1],
      ['back', 2],
    ] as const) {
      ip('link', 'add', 'eth0', 'netns', this.of(host), 'type', 'veth', 'peer', 'name', host, 'netns', this.of('node'));
      ip('-n', this.of('node'), 'addr', 'add', `10.9.${net}.1/24`, 'dev', host);
      ip('-n', this.of('node'), 'addr', 'add', `fd09:${net}::1/64`, 'dev', host, 'nodad');
      for (let last = 2; last < 2 + BACKENDS; last++) {
        ip('-n', this.of(host), 'addr', 'add', `10.9.${net}.${last}/24`, 'dev', 'eth0');
        ip('-n', this.of(host), 'addr', 'add', `fd09:${net}::${last}/64`, 'dev', 'eth0', 'nodad');
      }
      ip('-n', this.of('node'), 'link', 'set', host, 'up');
      ip('-n', this.of(host), 'link', 'set', 'eth0', 'up');
      ip('-n', this.of(host), 'route', 'add', 'default', 'via', `10.9.${net}.1`);
      ip('-n', this.of(host), '-6', 'route', 'add', 'default', 'via', `fd09:${net}::1`);
    }
    ip('-n', this.of('node'), 'route', 'add', 'local', '10.192.0.0/16', 'dev', 'lo', 'src', '10.9.2.1');
    ip('-n', this.of('node'), '-6', 'route', 'add', 'local', 'fd96::/112', 'dev', 'lo', 'src', 'fd09:2::1');
  }

  async #start(host: 'client' | 'node' | 'back', program: string, ...args: readonly string[]): Promise<ChildProcess> {
    const argv = ['netns', 'exec', this.of(host), process.execPath, script(program), ...args];
    const child = spawn('ip', argv, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#children.push(child);
    await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(([code]) => {
        throw new Error(`${program} ended with ${code}`);
      }),
    ]);
    return child;
  }
}

function script(name: string): string {
  return join(import.meta.dirname, name);
}

import { AgentError, type ErrorCode } from '../../src/domain/kernel/errors.js';
import { ipAddress } from '../../src/domain/kernel/network.js';
import type { ApiServer, RunningBalancer, RunningServer, RuntimeStep } from '../../src/domain/loadbalancer/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { BalancerConfig } from '../../src/ports/loadbalancer/balancer-config.js';
import type { BalancerRuntime } from '../../src/ports/loadbalancer/balancer-runtime.js';

export type HaproxyStep = 'read' | 'test' | 'place' | 'remember' | 'observe' | 'change';

/** A machine's HAProxy: its file, what is remembered beside it, and its process, which outlive the agents that use them. */
export class FakeHaproxy implements BalancerConfig, BalancerRuntime {
  /** Parts of files that HAProxy does not take, and what it says. */
  readonly refused = new Map<string, string>();
  /** Sessions by name of server. */
  readonly sessions = new Map<string, number>();
  ipv6 = true;
  file: string | undefined;
  memory: readonly ApiServer[] | undefined;
  /** What was done to it. */
  readonly log: string[] = [];
  #servers: RunningServer[] = [];
  #description: string | undefined;
  #pid = 100;
  readonly #failures = new Map<HaproxyStep, ErrorCode | Error>();

  /** The next call of it fails. */
  failNext(step: HaproxyStep, error: ErrorCode | Error): void {
    this.#failures.set(step, error);
  }

  /** As its manager does it: another worker, with what the file says. */
  load(): void {
    const text = this.file ?? '';
    this.#pid += 1;
    this.#description = /^ {4}description (.*)$/m.exec(text)?.[1] ?? '';
    this.#servers = [...text.matchAll(/^ {4}server (\S+) (\S+):(\d+) check/gm)].map(([, name = '', host = '', port]) => {
      const address = ipAddress(host.replace(/^\[(.*)\]$/, '$1'));
      return serverOf(name, { address, host: address === undefined ? host : '', port: Number(port), isChecked: true });
    });
    this.log.push('load');
  }

  /** It does not answer any more. */
  die(): void {
    this.#description = undefined;
  }

  dump(): string {
    return this.#servers
      .map(({ name, address, host, port, admin, isChecked }) =>
        [name, host || address, port, admin, isChecked ? 'checked' : 'unchecked'].join(' '),
      )
      .toSorted()
      .join('\n');
  }

  async hasIpv6(): Promise<boolean> {
    return this.ipv6;
  }

  async read(options: CallOptions): Promise<string | undefined> {
    this.#enter('read', options);
    return this.file;
  }

  async test(text: string, options: CallOptions): Promise<string | undefined> {
    this.#enter('test', options);
    const found = [...this.refused].find(([part]) => text.includes(part));
    return found && `haproxy -c: ${found[1]}`;
  }

  async place(text: string, options: CallOptions): Promise<void> {
    this.#enter('place', options);
    this.file = text;
    this.log.push('place');
  }

  async remembered(): Promise<readonly ApiServer[] | undefined> {
    return this.memory;
  }

  async remember(servers: readonly ApiServer[], options: CallOptions): Promise<void> {
    this.#enter('remember', options);
    this.memory = servers;
  }

  async observe(options: CallOptions): Promise<RunningBalancer | undefined> {
    this.#enter('observe', options);
    if (this.#description === undefined) return undefined;
    const servers = this.#servers.map((server) => ({ ...server, sessions: this.sessions.get(server.name) ?? 0 }));
    return { pid: this.#pid, description: this.#description, servers };
  }

  async change(step: RuntimeStep, options: CallOptions): Promise<void> {
    this.#enter('change', options);
    if (this.#description === undefined) throw new AgentError('loadbalancer.not_changed', { problem: 'connect ECONNREFUSED' });
    const has = this.#servers.some(({ name }) => name === step.name);
    if (has === (step.do === 'add'))
      throw new AgentError('loadbalancer.not_changed', {
        problem: `${step.do} ${step.name}: ${has ? 'Already exists' : 'No such'} server.`,
      });
    this.log.push(`${step.do} ${step.name}`);
    if (step.do === 'add') {
      const { address, port } = step;
      this.#servers.push(serverOf(step.name, { address, port, host: '', admin: 'maint', isChecked: false }));
    } else if (step.do === 'remove' && (this.sessions.get(step.name) ?? 0) === 0) {
      this.#servers = this.#servers.filter(({ name }) => name !== step.name);
    } else {
      const admin = step.do === 'remove' ? 'maint' : step.do;
      const change = (one: RunningServer): RunningServer => ({ ...one, admin, isChecked: one.isChecked || step.do === 'ready' });
      this.#servers = this.#servers.map((one) => (one.name === step.name ? change(one) : one));
    }
  }

  /** Something else than the agent has changed a server. */
  alter(name: string, change: Partial<RunningServer>): void {
    this.#servers = this.#servers.map((server) => (server.name === name ? { ...server, ...change } : server));
  }

  #enter(step: HaproxyStep, { signal }: CallOptions): void {
    signal.throwIfAborted();
    const failure = this.#failures.get(step);
    this.#failures.delete(step);
    if (failure instanceof Error) throw failure;
    if (failure !== undefined) throw new AgentError(failure, { problem: step });
  }
}

function serverOf(name: string, facts: Partial<RunningServer> & Pick<RunningServer, 'address' | 'host' | 'port'>): RunningServer {
  return { name, admin: 'ready', isChecked: true, isUp: true, sessions: 0, changedSeconds: 0, ...facts };
}

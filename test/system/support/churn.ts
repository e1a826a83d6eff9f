import { setTimeout as sleep } from 'node:timers/promises';
import type { Admin } from './admin.js';
import { ENDPOINT_PORT, EndpointProcess } from './churn-endpoints.js';
import { ChurnLedger, type Verdict } from './churn-ledger.js';
import { ask } from './load.js';

export const SERVICE_PORT = 18_080;
const TICK_MS = 10;
/** More would say something of the client: a machine that is too slow gets fewer connections instead. */
const MOST_OUTSTANDING = 256;

export interface ChurnSize {
  readonly services: number;
  readonly processes: number;
  readonly endpointsPerProcess: number;
  readonly changesPerSecond: number;
  readonly connectionsPerSecond: number;
  readonly deathsPerSecond: number;
  readonly killsPerSecond: number;
}

export interface ChurnCounts {
  connections: number;
  changes: number;
  deaths: number;
  kills: number;
  readonly failures: Record<Verdict, number>;
  /** What was seen of connections that count against the proxy. */
  readonly lost: string[];
}

/** Services whose endpoints change and die under load, and the judgement of every connection that fails. */
export class Churn {
  readonly counts: ChurnCounts = {
    connections: 0,
    changes: 0,
    deaths: 0,
    kills: 0,
    failures: { lost: 0, cut: 0, without: 0 },
    lost: [],
  };
  readonly processes: readonly EndpointProcess[];
  readonly #size: ChurnSize;
  readonly #admin: Admin;
  readonly #random: () => number;
  readonly #ledger = new ChurnLedger();
  /** By service: what is applied; those that are not there are deleted. */
  readonly #applied = new Map<string, readonly string[]>();
  readonly #addresses = new Map<string, string>();
  readonly #changing = new Set<string>();
  readonly #running = new Set<Promise<unknown>>();

  constructor(size: ChurnSize, admin: Admin, random: () => number) {
    this.#size = size;
    this.#admin = admin;
    this.#random = random;
    this.processes = Array.from({ length: size.processes }, (_, host) => new EndpointProcess(host, size.endpointsPerProcess));
  }

  get services(): number {
    return this.#applied.size;
  }

  /** Every endpoint lives and every service is applied. */
  async prepare(): Promise<void> {
    await Promise.all(this.processes.map((each) => this.#start(each)));
    const all = this.#names().map((name) => [name, this.#someEndpoints()] as const);
    await this.#apply(all);
  }

  /** Until the signal; every connection and change that was begun has ended when it resolves. */
  async run(signal: AbortSignal): Promise<void> {
    const { connectionsPerSecond, changesPerSecond, deathsPerSecond, killsPerSecond } = this.#size;
    await Promise.all([
      this.#paced(connectionsPerSecond, signal, () => this.#connect()),
      this.#paced(changesPerSecond, signal, () => this.#change()),
      this.#paced(deathsPerSecond, signal, () => this.#dieAndReturn()),
      this.#paced(killsPerSecond, signal, () => this.#killAndReturn()),
    ]);
    await Promise.all(this.#running);
  }

  /** Connects once to each service; those that did not answer. */
  async unanswered(): Promise<readonly string[]> {
    const silent: string[] = [];
    for (const [name, endpoints] of this.#applied) {
      const answer = await ask(this.#addresses.get(name) ?? '', SERVICE_PORT).catch(String);
      if (!endpoints.includes(answer)) silent.push(`${name}: ${answer}`);
    }
    return silent;
  }

  async stop(): Promise<void> {
    await Promise.all(this.processes.map((each) => each.kill()));
  }

  async #paced(perSecond: number, signal: AbortSignal, begin: () => Promise<unknown>): Promise<void> {
    const startedAt = performance.now();
    for (let begun = 0; !signal.aborted; await sleep(TICK_MS)) {
      const due = Math.floor(((performance.now() - startedAt) / 1_000) * perSecond);
      for (; begun < due; begun++) {
        if (this.#running.size >= MOST_OUTSTANDING) continue;
        const one = begin().finally(() => this.#running.delete(one));
        this.#running.add(one);
      }
    }
  }

  async #connect(): Promise<void> {
    const name = this.#pick([...this.#applied.keys()]);
    const address = name === undefined ? undefined : this.#addresses.get(name);
    if (name === undefined || address === undefined) return;
    this.counts.connections++;
    const from = performance.now();
    await ask(address, SERVICE_PORT).catch((error: NodeJS.ErrnoException) => {
      const verdict = this.#ledger.judge(name, from);
      this.counts.failures[verdict]++;
      if (verdict === 'lost')
        this.counts.lost.push(`${name}: ${error.code ?? error.message} after ${performance.now() - from} ms`);
    });
  }

  /** One in ten changes deletes a service; one that is deleted comes back. */
  async #change(): Promise<void> {
    const name = this.#pick(this.#names().filter((each) => !this.#changing.has(each)));
    if (name === undefined) return;
    this.#changing.add(name);
    this.counts.changes++;
    if (this.#applied.has(name) && this.#random() < 0.1) await this.#delete(name);
    else await this.#apply([[name, this.#someEndpoints()]]);
    this.#changing.delete(name);
  }

  async #apply(services: readonly (readonly [string, readonly string[]])[]): Promise<void> {
    for (const [name, endpoints] of services) this.#ledger.serviceChanges(name, endpoints);
    const { resources } = await this.#admin.apply(services.map(([name, endpoints]) => manifest(name, endpoints)));
    for (const { ref, addresses } of resources) this.#addresses.set(ref?.name ?? '', addresses[0]?.split(':')[0] ?? '');
    for (const [name, endpoints] of services) {
      this.#applied.set(name, endpoints);
      this.#ledger.serviceChanged(name, endpoints, performance.now());
    }
  }

  async #delete(name: string): Promise<void> {
    this.#ledger.serviceChanges(name, undefined);
    this.#applied.delete(name);
    await this.#admin.deleteService(name);
    this.#ledger.serviceChanged(name, undefined, performance.now());
  }

  async #dieAndReturn(): Promise<void> {
    const process = this.#pick(this.processes.filter(({ running }) => running));
    const address = this.#pick(process?.addresses.filter((each) => process.isOpen(each)) ?? []);
    if (process === undefined || address === undefined) return;
    this.counts.deaths++;
    this.#ledger.endpointDies(address);
    await process.close(address);
    this.#ledger.endpointDied(address, performance.now());
    await sleep(500 + this.#random() * 2_500);
    // Its process may have been killed meanwhile, and have brought it back.
    if (!process.running || process.isOpen(address)) return;
    await process.open(address);
    if (process.isOpen(address)) this.#ledger.endpointLives(address, performance.now());
  }

  async #killAndReturn(): Promise<void> {
    const process = this.#pick(this.processes.filter(({ running }) => running));
    if (process === undefined) return;
    this.counts.kills++;
    for (const address of process.addresses) this.#ledger.endpointDies(address);
    await process.kill();
    for (const address of process.addresses) this.#ledger.endpointDied(address, performance.now());
    await sleep(500 + this.#random() * 1_500);
    await this.#start(process);
  }

  async #start(process: EndpointProcess): Promise<void> {
    await process.start();
    for (const address of process.addresses) this.#ledger.endpointLives(address, performance.now());
  }

  #names(): readonly string[] {
    return Array.from({ length: this.#size.services }, (_, index) => `s-${index}`);
  }

  /** Two to four. */
  #someEndpoints(): readonly string[] {
    const all = this.processes.flatMap(({ addresses }) => addresses);
    const count = 2 + Math.floor(this.#random() * 3);
    return [...new Set(Array.from({ length: count }, () => this.#pick(all) ?? ''))];
  }

  #pick<T>(values: readonly T[]): T | undefined {
    return values[Math.floor(this.#random() * values.length)];
  }
}

function manifest(name: string, endpoints: readonly string[]): object {
  return {
    apiVersion: 'holdfast/v1',
    kind: 'Service',
    metadata: { name },
    spec: {
      ports: [{ name: 'tcp', port: SERVICE_PORT }],
      drain: { timeout: '2s' },
      endpoints: endpoints.map((address) => ({ address, port: ENDPOINT_PORT })),
    },
  };
}

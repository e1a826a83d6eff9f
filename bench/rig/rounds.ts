import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Case, Effort, Target } from './cases.ts';
import { type Child, Children, inside, run } from './children.ts';
import { BACKEND_ADDRESS, LISTEN_ADDRESS, Network } from './network.ts';
import { ECHO_PORT, environmentOf, IPERF_PORT, isAvailable, type Peer, type Ports, tools } from './peers.ts';
import type { Sample } from './results.ts';
import { cpuSeconds, foreignCores, isDisturbed, Quiet } from './usage.ts';

const FIRST_PORT = 20_000;
const READY_MS = 20_000;
const PAUSE_MS = 150;
const ATTEMPTS = 2;

export interface Plan {
  readonly cases: readonly Case[];
  readonly peers: readonly Peer[];
  readonly rounds: number;
  readonly effort: Effort;
  /** How long to wait in all for others to be quiet. */
  readonly quietMs: number;
  /** Ends after the sample that runs. */
  readonly signal: AbortSignal;
}

/** Carries a plan out. Peers take turns inside a round, so that each round compares them on one and the same machine. */
export async function measure(plan: Plan, report: (sample: Sample) => void, note: (text: string) => void): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
  await using _folder = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
  await using network = await Network.create();
  await using children = new Children(folder);
  startBackends(network, children);
  const bench = new Bench(network, children, folder, note);
  const quiet = new Quiet(plan.quietMs);
  for (const each of plan.cases) {
    const peers = plan.peers.filter((peer) => takesPart(peer, each));
    for (let round = 0; round < plan.rounds; round++) {
      for (const peer of peers) {
        plan.signal.throwIfAborted();
        const sample = await bench.sample(each, peer, plan.effort, quiet);
        if (sample !== undefined) report({ ...sample, round });
        if (peer.alone === true) await bench.stop(peer);
      }
    }
    await bench.stopPeers();
  }
}

function takesPart(peer: Peer, { protocol, without }: Case): boolean {
  return isAvailable(peer) && peer.protocols.includes(protocol) && !without.includes(peer.name);
}

function startBackends({ backend }: Network, children: Children): void {
  children.start('echo', inside(backend, [join(tools, 'echo'), `${BACKEND_ADDRESS}:${ECHO_PORT}`]));
  children.start('iperf3', inside(backend, ['iperf3', '-s', '-B', BACKEND_ADDRESS, '-p', String(IPERF_PORT)]));
}

/** Starts peers when they are needed and measures one at a time. */
class Bench {
  readonly #network: Network;
  readonly #children: Children;
  readonly #folder: string;
  readonly #note: (text: string) => void;
  readonly #started = new Map<string, { readonly child: Child; readonly ports: Ports }>();
  readonly #broken = new Set<string>();
  #nextPort = FIRST_PORT;

  constructor(network: Network, children: Children, folder: string, note: (text: string) => void) {
    this.#network = network;
    this.#children = children;
    this.#folder = folder;
    this.#note = note;
  }

  /** The less disturbed of two attempts; `undefined` for a peer that does not start. */
  async sample(each: Case, peer: Peer, effort: Effort, quiet: Quiet): Promise<Omit<Sample, 'round'> | undefined> {
    if (each.fresh) await this.stop(peer);
    let best: Omit<Sample, 'round'> | undefined;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const target = await this.#target(each, peer);
      if (target === undefined) return undefined;
      await quiet.wait();
      const sample = await this.#once(each, peer, target, effort);
      if (best?.value === undefined || (sample.value !== undefined && sample.foreignCores < best.foreignCores)) best = sample;
      await sleep(PAUSE_MS);
      if (best.value !== undefined && (each.fresh || !isDisturbed(best.foreignCores))) break;
    }
    return best;
  }

  async #once(each: Case, { name }: Peer, target: Target, effort: Effort): Promise<Omit<Sample, 'round'>> {
    const identity = { case: each.name, peer: name };
    const before = target.pid === undefined ? 0 : cpuSeconds(target.pid);
    const work = () => each.run(target, effort).catch((error: Error) => ({ problem: error.message }));
    const { value: outcome, foreignCores: others } = await foreignCores(work);
    const used = target.pid === undefined ? {} : { cpuSeconds: cpuSeconds(target.pid) - before };
    if ('problem' in outcome) this.#note(`${each.name} ${name}: ${outcome.problem}`);
    return { ...identity, ...outcome, ...used, foreignCores: others };
  }

  async #target(each: Case, peer: Peer): Promise<Target | undefined> {
    const namespace = this.#network.client;
    if (peer.command === undefined) {
      const direct = { namespace, address: BACKEND_ADDRESS, iperf: IPERF_PORT, echo: ECHO_PORT, pid: undefined };
      if (await this.#answers(each, () => true, direct)) return direct;
      throw new Error('the back end does not answer');
    }
    const { child, ports } = this.#started.get(peer.name) ?? this.#start(peer, peer.command);
    const target = { namespace, address: LISTEN_ADDRESS, ...ports, pid: child.pid };
    if (this.#broken.has(peer.name)) return undefined;
    if (await this.#answers(each, child.running, target)) return target;
    this.#note(`${peer.name} does not serve ${each.name}: ${child.said()}`);
    this.#broken.add(peer.name);
    return undefined;
  }

  #start({ name }: Peer, command: NonNullable<Peer['command']>) {
    const ports = { iperf: this.#nextPort, echo: this.#nextPort + 1 };
    this.#nextPort += 10;
    const child = this.#children.start(name, inside(this.#network.proxy, command(ports, this.#folder)), environmentOf(ports));
    const started = { child, ports };
    this.#started.set(name, started);
    return started;
  }

  async #answers({ protocol }: Case, running: () => boolean, { namespace, address, echo }: Target): Promise<boolean> {
    const mode = protocol === 'udp' ? 'probe-udp' : 'probe';
    const until = performance.now() + READY_MS;
    while (running() && performance.now() < until) {
      if ((await run(inside(namespace, [join(tools, 'load'), mode, `${address}:${echo}`, '1', '1']))).code === 0) return true;
      await sleep(100);
    }
    return false;
  }

  async stopPeers(): Promise<void> {
    for (const name of [...this.#started.keys()]) await this.stop({ name });
    this.#broken.clear();
  }

  async stop({ name }: Pick<Peer, 'name'>): Promise<void> {
    await this.#started.get(name)?.child.stop();
    this.#started.delete(name);
  }
}

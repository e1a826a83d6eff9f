import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GrpcAdminClient } from '../../dist/adapters/admin/grpc-admin-client.js';
import { InstructionState } from '../../dist/adapters/generated/holdfast/admin/v1/fleet.js';
import { foreignCores } from '../rig/usage.ts';
import { AgentProcesses } from './agent-processes.ts';
import { EtcdMembers } from './etcd-members.ts';
import { type ChangeTimes, FigureBook, type FleetSize, type Measured, quantile } from './figures.ts';
import { instant } from './protocol.ts';
import { FleetServer } from './server.ts';

/** How long, and how often. */
export interface Effort {
  readonly idleMs: number;
  readonly changes: number;
  readonly changesPerSecond: number;
  /** Also how it comes back from kill -9. */
  readonly kills: boolean;
}

export interface MeasureOptions extends FleetSize {
  readonly effort: Effort;
  readonly profile: string | undefined;
  readonly signal: AbortSignal;
}

/** Calls of one administrator's program at a time. */
const AT_ONCE = 16;
const TOKEN_MS = 3_600_000n;
/** What no fleet takes, however slow its machine. */
const GIVE_UP_MS = 300_000;
const CHANGE_MS = 60_000;
/**
 * As agents come back to a server. All of them share what the machine has left: started in one moment, they would give up their own
 * handshakes, which agents on machines of their own do not.
 */
const START_PER_SECOND = 100;
const FIRST = `first connection, ${START_PER_SECOND} a second`;
const LOOK_MS = 50;
const SERVICES = 50;
const ENDPOINTS = 3;

/** Everything of one size: a server and its agents come and go with it. */
export async function measure(options: MeasureOptions, note: (text: string) => void): Promise<Measured> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-fleet-'));
  try {
    await using etcd = options.store === 'etcd' ? await EtcdMembers.start(folder) : undefined;
    await using server = await FleetServer.in({ folder, profile: options.profile, etcd: etcd?.urls });
    await using agents = new AgentProcesses(options.agents, options.signal);
    return await new Bench({ server, agents, etcd }, options, note).run();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface BenchParts {
  readonly server: FleetServer;
  readonly agents: AgentProcesses;
  readonly etcd: EtcdMembers | undefined;
}

class Bench {
  readonly #server: FleetServer;
  readonly #agents: AgentProcesses;
  readonly #etcd: EtcdMembers | undefined;
  readonly #options: MeasureOptions;
  readonly #book: FigureBook;

  constructor({ server, agents, etcd }: BenchParts, options: MeasureOptions, note: (text: string) => void) {
    this.#server = server;
    this.#agents = agents;
    this.#etcd = etcd;
    this.#options = options;
    this.#book = new FigureBook(options, note);
  }

  async run(): Promise<Measured> {
    const { effort } = this.#options;
    const { value: changes, foreignCores: others } = await foreignCores(async () => {
      await this.#server.start();
      await this.#register();
      await this.#connect();
      const idleCores = await this.#idle();
      const times = await this.#change(idleCores);
      await this.#instruct();
      await this.#comeBack('planned restart', () => this.#server.stop());
      if (effort.kills) await this.#comeBack('kill -9', () => this.#server.kill());
      return times;
    });
    await this.#store();
    this.#book.put('machine', 'CPU of other programs meanwhile', 'cores', others);
    return { figures: this.#book.figures, changes };
  }

  async #register(): Promise<void> {
    this.#book.put('idle', 'memory without agents', 'MB', this.#server.used().residentMb);
    const tokens = await this.#withClient(async (client) => {
      const make = async () => (await client.createToken({ account: '', ttlMs: TOKEN_MS, replace: '' }, this.#options)).token;
      return inParallel(this.#options.agents, make, this.#options.signal);
    });
    const used = this.#server.used();
    const begun = instant();
    const { callsMs, heldBack } = await this.#agents.register(this.#server.place, tokens);
    const seconds = (instant() - begun) / 1_000;
    const put = this.#putter('registration');
    put('agents let in', '/s', this.#options.agents / seconds);
    put('one call, p50', 'ms', quantile(callsMs, 0.5));
    put('one call, p99', 'ms', quantile(callsMs, 0.99));
    put('calls held back by the limit of 50 a second', '', heldBack);
    put('server CPU per agent', 'ms', ((this.#server.used().cpuSeconds - used.cpuSeconds) * 1_000) / this.#options.agents);
  }

  async #connect(): Promise<void> {
    const manifests = Array.from({ length: SERVICES }, (_, index) => serviceOf(index, 0));
    const revision = await this.#withClient((client) => this.#apply(client, manifests));
    const used = this.#server.used();
    const begun = instant();
    const started = this.#agents.start((this.#options.agents * 1_000) / START_PER_SECOND);
    await Promise.all([started, this.#back(FIRST, begun, revision)]);
    const cpu = this.#server.used().cpuSeconds - used.cpuSeconds;
    this.#putter(FIRST)('server CPU per agent', 'ms', (cpu * 1_000) / this.#options.agents);
  }

  /** @returns the server's CPU, cores */
  async #idle(): Promise<number> {
    const { agents, effort } = this.#options;
    const before = this.#server.used();
    const begun = instant();
    await sleep(effort.idleMs, undefined, this.#options);
    const seconds = (instant() - begun) / 1_000;
    const after = this.#server.used();
    const put = this.#putter('idle');
    put('memory with agents', 'MB', after.residentMb);
    const cores = (after.cpuSeconds - before.cpuSeconds) / seconds;
    put('server CPU', 'cores', cores);
    const beats = await this.#agents.beats();
    put('heartbeats', '/s', agents / 5);
    put('heartbeat to its answer, p50', 'ms', quantile(beats, 0.5));
    put('heartbeat to its answer, p99', 'ms', quantile(beats, 0.99));
    return cores;
  }

  /** Changes come at their time, whether or not the ones before have arrived everywhere. */
  async #change(idleCores: number): Promise<readonly ChangeTimes[]> {
    const { changes, changesPerSecond } = this.#options.effort;
    const before = this.#server.used();
    const begun = instant();
    const times = await this.#withClient(async (client) => {
      const underWay: Promise<ChangeTimes>[] = [];
      for (let change = 1; change <= changes; change += 1) {
        await sleep(Math.max(0, begun + (change * 1_000) / changesPerSecond - instant()), undefined, this.#options);
        underWay.push(this.#changeOnce(client, change));
      }
      return Promise.all(underWay);
    });
    const seconds = (instant() - begun) / 1_000;
    const used = this.#server.used();
    const cpu = used.cpuSeconds - before.cpuSeconds;
    const last = times.map(({ lastMs }) => lastMs);
    const put = this.#putter('changes');
    put('changes', '/s', changes / seconds);
    put('apply to the last agent, p50', 'ms', quantile(last, 0.5));
    put('apply to the last agent, p99', 'ms', quantile(last, 0.99));
    put(
      'apply to half of the agents, p50',
      'ms',
      quantile(
        times.map(({ halfMs }) => halfMs),
        0.5,
      ),
    );
    put(
      'apply to its answer, p50',
      'ms',
      quantile(
        times.map(({ answeredMs }) => answeredMs),
        0.5,
      ),
    );
    put('agents that a change did not reach within a minute', '', Math.max(...times.map(({ missed }) => missed)));
    put('server CPU', 'cores', cpu / seconds);
    put('server CPU per change, without idle', 'ms', ((cpu - idleCores * seconds) * 1_000) / changes);
    put('memory', 'MB', used.residentMb);
    if (this.#etcd !== undefined) put('memory of the three etcd members', 'MB', (await this.#etcd.used()).residentMb);
    return times;
  }

  async #changeOnce(client: GrpcAdminClient, change: number): Promise<ChangeTimes> {
    const begun = instant();
    const revision = await this.#apply(client, [serviceOf(change % SERVICES, change)]);
    const answeredMs = instant() - begun;
    const at = await this.#agents.arrivals(revision, CHANGE_MS);
    const { agents, store } = this.#options;
    const lastMs = at.length < agents ? CHANGE_MS : quantile(at, 1) - begun;
    return { agents, store, change, answeredMs, halfMs: quantile(at, 0.5) - begun, lastMs, missed: agents - at.length };
  }

  async #instruct(): Promise<void> {
    const before = this.#server.used();
    const begun = instant();
    const answered = await this.#withClient(async (client) => {
      const { nodes } = await client.listNodes(this.#options);
      const sentAt = new Map<string, number>();
      const results = new Results(client, sentAt, this.#options);
      const send = async (index: number) => {
        const node = nodes[index]?.node ?? '';
        sentAt.set(node, instant());
        await client.send({ node, type: 'GET_NODE_STATUS', json: '', tag: '', expiresMs: 0n }, this.#options);
      };
      const all = results.all(nodes.length);
      await inParallel(nodes.length, send, this.#options.signal);
      return all;
    });
    const put = this.#putter('an instruction to each agent');
    put('first one sent to last result', 's', (instant() - begun) / 1_000);
    put('one instruction to its result, p50', 'ms', quantile(answered, 0.5));
    put('one instruction to its result, p99', 'ms', quantile(answered, 0.99));
    const cpu = this.#server.used().cpuSeconds - before.cpuSeconds;
    put('server CPU per instruction', 'ms', (cpu * 1_000) / this.#options.agents);
  }

  async #comeBack(how: string, end: () => Promise<void>): Promise<void> {
    const begun = instant();
    await end();
    await this.#server.start();
    this.#putter(how)('until the server serves again', 's', (instant() - begun) / 1_000);
    const revision = await this.#withClient((client) => this.#apply(client, [serviceOf(0, instant() % 1_000)]));
    await this.#back(how, begun, revision);
    const used = this.#server.used();
    this.#putter(how)('server CPU per agent until then', 'ms', (used.cpuSeconds * 1_000) / this.#options.agents);
  }

  /** Until each agent has its link, and a view of the log that was made after the server was. */
  async #back(how: string, begun: number, revision: bigint): Promise<void> {
    const { agents, signal } = this.#options;
    const arrivals = this.#agents.arrivals(revision, GIVE_UP_MS);
    let linked = 0;
    let half: number | undefined;
    while (linked < agents) {
      await sleep(LOOK_MS, undefined, { signal });
      linked = await this.#agents.linked();
      if (linked >= agents / 2) half ??= instant() - begun;
      if (instant() - begun > GIVE_UP_MS) throw new Error(`${how}: ${linked} of ${agents} agents have a link`);
    }
    const put = this.#putter(how);
    put('half of the agents linked', 's', (half ?? 0) / 1_000);
    put('all agents linked', 's', (instant() - begun) / 1_000);
    const at = await arrivals;
    if (at.length < agents) throw new Error(`${how}: ${at.length} of ${agents} agents follow the log`);
    put('all agents with the newest state', 's', (quantile(at, 1) - begun) / 1_000);
  }

  async #store(): Promise<void> {
    await this.#agents.stop();
    await this.#server.stop();
    const put = this.#putter('at the end');
    put('audit.log', 'MB', await this.#server.fileMb('audit.log'));
    if (this.#etcd !== undefined) return put('data of one etcd member', 'MB', (await this.#etcd.used()).dataMb);
    const { kept, written } = this.#server.entries();
    put('control.db', 'MB', await this.#server.fileMb('control.db'));
    put('log.db', 'MB', await this.#server.fileMb('log.db'));
    put('entries that were written to the log', '', written);
    put('entries that it keeps', '', kept);
  }

  /** The revision that agents see the manifests at. */
  async #apply(client: GrpcAdminClient, manifests: readonly object[]): Promise<bigint> {
    const documents = manifests.map((value, number) => ({ file: 'bench', number, path: '', json: JSON.stringify(value) }));
    const request = { documents, source: 'bench', prune: false, dryRun: false, requestId: crypto.randomUUID() };
    const { problems, revision } = await client.apply(request, this.#options);
    if (problems.length > 0) throw new Error(JSON.stringify(problems));
    return revision;
  }

  async #withClient<T>(work: (client: GrpcAdminClient) => Promise<T>): Promise<T> {
    const client = this.#server.client();
    try {
      return await work(client);
    } finally {
      client.close();
    }
  }

  #putter(part: string) {
    return (name: string, unit: string, value: number) => this.#book.put(part, name, unit, value);
  }
}

/** Waits for the results of what is being sent. */
class Results {
  readonly #client: GrpcAdminClient;
  readonly #sentAt: ReadonlyMap<string, number>;
  readonly #signal: AbortSignal;

  constructor(client: GrpcAdminClient, sentAt: ReadonlyMap<string, number>, { signal }: { readonly signal: AbortSignal }) {
    this.#client = client;
    this.#sentAt = sentAt;
    this.#signal = signal;
  }

  /** Of each node, how long it took, milliseconds. */
  async all(count: number): Promise<readonly number[]> {
    const enough = new AbortController();
    const signal = AbortSignal.any([enough.signal, this.#signal, AbortSignal.timeout(GIVE_UP_MS)]);
    const took = new Map<string, number>();
    for await (const { instruction } of this.#client.watchInstructions({ node: '', tag: '' }, { signal })) {
      const sent = instruction === undefined ? undefined : this.#sentAt.get(instruction.node);
      if (instruction?.state !== InstructionState.DONE || sent === undefined || took.has(instruction.node)) continue;
      took.set(instruction.node, instant() - sent);
      if (took.size === count) enough.abort();
    }
    if (took.size < count) throw new Error(`${took.size} of ${count} agents have answered`);
    return [...took.values()];
  }
}

async function inParallel<T>(count: number, work: (index: number) => Promise<T>, signal: AbortSignal): Promise<readonly T[]> {
  const done: T[] = [];
  let next = 0;
  const some = async () => {
    while (next < count) {
      signal.throwIfAborted();
      const index = next;
      next += 1;
      done[index] = await work(index);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, some));
  return done;
}

/** Each `round` has other endpoints. */
function serviceOf(index: number, round: number): object {
  const endpoints = Array.from({ length: ENDPOINTS }, (_, number) => ({
    name: `e${number}`,
    address: `10.0.${index}.${number + 1}`,
    port: 10_000 + Math.floor(round),
  }));
  const spec = { ports: [{ name: 'http', port: 80 }], endpoints };
  return { apiVersion: 'holdfast/v1', kind: 'Service', metadata: { name: `s-${index}` }, spec };
}

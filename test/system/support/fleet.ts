import { randomBytes, randomUUID } from 'node:crypto';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type GetInstructionResponse,
  type Instruction,
  InstructionState,
} from '../../../src/adapters/generated/holdfast/admin/v1/fleet.js';
import { runCli, temporaryFolder } from './daemon.js';
import { FleetDaemon, until } from './fleet-daemon.js';
import { FleetEtcd } from './fleet-etcd.js';
import { FleetNetwork, type NetworkSpace } from './fleet-network.js';
import { FleetPeer } from './fleet-peer.js';

export const isFull = process.env.HOLDFAST_TEST_SIZE === 'full';

/** An agent and the node that it is. */
export interface FleetAgent {
  readonly nid: string;
  readonly daemon: FleetDaemon;
}

export interface FleetOptions {
  readonly agents?: number;
  /** Bodies by name: `@N` stands for what follows the dot in `append.17`. */
  readonly scripts?: Readonly<Record<string, string>>;
  /** Between agents and server. */
  readonly behindProxy?: boolean;
  /** Put before each agent's program. */
  readonly agentsWithin?: readonly string[];
  /** So many servers on an etcd of three members; without it, one on a store of its own. */
  readonly replicas?: number;
  /** Network of the overlay. */
  readonly overlay?: string;
  /** Virtual IP that every agent may have. */
  readonly vip?: string | undefined;
}

/** A server or several, their agents, and what serves their scripts: real processes in a network of their own, gone with its disposal. */
export class Fleet implements AsyncDisposable {
  readonly folder: string;
  readonly network: FleetNetwork;
  /** The first of them is `server`. */
  readonly servers: readonly FleetDaemon[];
  readonly etcd: FleetEtcd | undefined;
  readonly agents: FleetAgent[] = [];
  readonly installer: FleetPeer;
  readonly proxy: FleetPeer | undefined;
  readonly #agents: Pick<FleetOptions, 'agentsWithin' | 'vip'>;
  readonly #stack: AsyncDisposableStack;

  private constructor(parts: FleetParts, agents: Pick<FleetOptions, 'agentsWithin' | 'vip'>, stack: AsyncDisposableStack) {
    this.#agents = agents;
    this.folder = parts.folder;
    this.network = parts.network;
    this.servers = parts.servers;
    this.etcd = parts.etcd;
    this.installer = parts.installer;
    this.proxy = parts.proxy;
    this.#stack = stack;
  }

  /** Everything runs, and every agent has its link. */
  static async start(options: FleetOptions = {}): Promise<Fleet> {
    const { agents = 1, scripts = {}, behindProxy = false, agentsWithin = [], replicas, overlay, vip } = options;
    await using stack = new AsyncDisposableStack();
    const { path: folder } = stack.use(await temporaryFolder());
    const network = stack.use(await FleetNetwork.make());
    const etcd = replicas === undefined ? undefined : stack.use(await FleetEtcd.start(network.hub, join(folder, 'etcd')));
    const flags = overlay === undefined ? [] : ['--overlay-cidr', overlay];
    const servers =
      etcd === undefined
        ? [new FleetDaemon({ verb: 'server', space: network.hub, root: join(folder, 'server'), flags })]
        : await replicasOn(etcd, network, folder, replicas ?? 1);
    stack.defer(async () => void (await Promise.all(servers.map((server) => server.stop('SIGKILL')))));
    await mkdir(join(folder, 'scripts'));
    for (const [name, body] of Object.entries(scripts)) await writeFile(join(folder, 'scripts', name), body);
    const peer = async (kind: string, ...args: readonly (string | number)[]) => {
      const started = await FleetPeer.start(network.hub, kind, ...args);
      stack.defer(() => started.kill());
      return started;
    };
    const installer = await peer('installer', join(folder, 'scripts'));
    const proxy = behindProxy ? await peer('proxy', network.hub.address, 9192) : undefined;
    await startAll(servers);
    const fleet = new Fleet({ folder, network, servers, etcd, installer, proxy }, { agentsWithin, vip }, stack.move());
    try {
      for (let number = 0; number < agents; number++) await fleet.place();
      await Promise.all(fleet.agents.map(({ daemon }) => daemon.start()));
      await fleet.linked();
    } catch (error) {
      await fleet[Symbol.asyncDispose]();
      throw error;
    }
    return fleet;
  }

  get server(): FleetDaemon {
    return first(this.servers);
  }

  /** A peer in a namespace, until the fleet is gone. */
  async peer(space: NetworkSpace, kind: string, ...args: readonly (string | number)[]): Promise<FleetPeer> {
    const started = await FleetPeer.start(space, kind, ...args);
    this.#stack.defer(() => started.kill());
    return started;
  }

  /** An agent's daemon with the fleet's settings; it is killed with the fleet. */
  daemonAt(space: NetworkSpace, root: string, nodeName = space.name): FleetDaemon {
    const port = this.proxy?.port ?? 9192;
    const nodeward = this.servers.map((server) => `${server.space.address}:${port}`).join(',');
    const flags = [
      ...['--client-server-nodeward', nodeward],
      ...['--client-server-installer', `http://${this.network.hub.address}:${this.installer.port}`],
      // They all have the host name of this machine.
      ...['--node-name', nodeName, '--metrics-listen', 'off'],
      ...(this.#agents.vip === undefined ? [] : ['--vip-address', this.#agents.vip]),
    ];
    const daemon = new FleetDaemon({ verb: 'agent', space, root, flags, within: this.#agents.agentsWithin });
    this.#stack.defer(async () => void (await daemon.stop('SIGKILL')));
    return daemon;
  }

  /** One more machine, registered; its agent does not run yet. */
  async place(nodeName?: string): Promise<FleetAgent> {
    const space = await this.network.join();
    const root = join(this.folder, space.name);
    await mkdir(join(root, 'etc'), { recursive: true });
    await writeFile(join(root, 'etc/machine-id'), `${randomBytes(16).toString('hex')}\n`);
    const { token } = await this.server.ask((client, given) =>
      client.createToken({ account: '', ttlMs: 600_000n, replace: '' }, given),
    );
    const tokenFile = join(root, 'token');
    await writeFile(tokenFile, token);
    const from = [
      '--server',
      this.server.space.address,
      '--account',
      'default',
      '--ca',
      `${this.server.dataDir}/registration-ca.crt`,
    ];
    const args = ['register', ...from, '--token-file', tokenFile, '--root', root, '--data-dir', '/data', '-o', 'json'];
    const registered = await runCli(args, undefined, ['ip', 'netns', 'exec', space.name]);
    if (registered.code !== 0) throw new Error(`register ended with ${registered.code}: ${registered.stderr}`);
    const agent = { nid: JSON.parse(registered.stdout).nid, daemon: this.daemonAt(space, root, nodeName) };
    this.agents.push(agent);
    return agent;
  }

  /** Every agent has its link. */
  async linked(withinMs = 45_000): Promise<void> {
    const states = () =>
      this.server.ask(async (client, given) => (await client.listNodes(given)).nodes.map(({ state }) => state));
    await until(states, (all) => all.length >= this.agents.length && all.every((state) => state === 'online'), withinMs);
  }

  agent(number = 0): FleetAgent {
    const agent = this.agents[number];
    if (agent === undefined) throw new Error(`there is no agent ${number}`);
    return agent;
  }

  async send(nid: string, type: string, payload: object, tag = '', at = this.server): Promise<Instruction> {
    const request = { node: nid, type, json: JSON.stringify(payload), tag, expiresMs: 0n };
    const { instruction } = await at.ask((client, given) => client.send(request, given));
    if (instruction === undefined) throw new Error('the server answered without an instruction');
    return instruction;
  }

  /** Sends and waits for the result. */
  async result(nid: string, type: string, payload: object, tag?: string): Promise<Result> {
    const sent = await this.send(nid, type, payload, tag);
    return this.resultOf(nid, sent.tag);
  }

  /** Waits until it has ended. */
  async resultOf(nid: string, tag: string): Promise<Result> {
    return this.server.ask(async (client, given) => {
      for await (const { instruction } of client.watchInstructions({ node: nid, tag }, given)) {
        if (instruction !== undefined && hasEnded(instruction)) break;
      }
      return resultOf(await client.getInstruction({ node: nid, tag }, given));
    });
  }

  /** All of them, with their replies, when each has ended. */
  async allResults(withinMs: number): Promise<readonly Result[]> {
    const list = () =>
      this.server.ask(async (client, given) => (await client.listInstructions({ node: '' }, given)).instructions);
    await until(list, (all) => all.every(hasEnded), withinMs);
    return this.endedResults(this.server);
  }

  /** Those that have ended by now, as a server tells them, but for the tags that are not wanted. */
  async endedResults(at: FleetDaemon, but: ReadonlySet<string> = new Set()): Promise<readonly Result[]> {
    return at.ask(async (client, given) => {
      const { instructions } = await client.listInstructions({ node: '' }, given);
      const results: Result[] = [];
      for (const { node, tag } of instructions.filter((each) => hasEnded(each) && !but.has(each.tag)))
        results.push(resultOf(await client.getInstruction({ node, tag }, given)));
      return results;
    });
  }

  /** A service with port 80, unless `more` says otherwise. @throws Error when it is refused */
  async apply(name: string, endpoints: readonly object[], at = this.server, more: object = {}): Promise<void> {
    const spec = { ports: [{ name: 'tcp', port: 80 }], endpoints, ...more };
    const manifest = { apiVersion: 'holdfast/v1', kind: 'Service', metadata: { name }, spec };
    const documents = [{ file: 'test', number: 0, path: '', json: JSON.stringify(manifest) }];
    const request = { documents, source: 'test', prune: false, dryRun: false, requestId: randomUUID() };
    const { problems } = await at.ask((client, given) => client.apply(request, given));
    if (problems.length > 0) throw new Error(JSON.stringify(problems));
  }

  /** Some keys of a service's spec become others. */
  async patch(name: string, keys: object): Promise<void> {
    const selector = { kind: 'Service', namespace: 'default', name, labels: '' };
    const { objectsJson } = await this.server.ask((client, given) => client.get({ selector }, given));
    const { spec } = JSON.parse(objectsJson[0] ?? '{}');
    await this.apply(name, spec.endpoints, this.server, { ...spec, ...keys });
  }

  /** Names and addresses of all services, as a daemon knows them. */
  async services(daemon: FleetDaemon): Promise<ReadonlyMap<string, string>> {
    const selector = { kind: 'Service', namespace: 'default', name: '', labels: '' };
    const { objectsJson } = await daemon.ask((client, given) => client.get({ selector }, given));
    const items: readonly Listed[] = objectsJson.map((json) => JSON.parse(json));
    return new Map(items.map(({ metadata, status }) => [metadata.name, status.vip]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

type FleetParts = Pick<Fleet, 'folder' | 'network' | 'servers' | 'etcd' | 'installer' | 'proxy'>;

/** Each on a machine of its own; they share the key of the first, which has to have been started for that. */
async function replicasOn(etcd: FleetEtcd, network: FleetNetwork, folder: string, count: number): Promise<FleetDaemon[]> {
  const servers: FleetDaemon[] = [];
  for (let number = 0; number < count; number++) {
    const space = await network.join();
    const root = join(folder, `server-${number}`);
    await mkdir(join(root, 'data'), { recursive: true, mode: 0o700 });
    // They all have the host name of this machine.
    await writeFile(join(root, 'data/holdfast.yaml'), `nodeName: server-${number}\n`);
    servers.push(new FleetDaemon({ verb: 'server', space, root, flags: ['--server-etcd', etcd.urls] }));
  }
  return servers;
}

/** The first makes the key that the others need. */
async function startAll([one, ...others]: readonly FleetDaemon[]): Promise<void> {
  await one?.start();
  for (const other of others) {
    await copyFile(`${one?.dataDir}/sealing.key`, `${other.dataDir}/sealing.key`);
    await other.start();
  }
}

function first(servers: readonly FleetDaemon[]): FleetDaemon {
  const [server] = servers;
  if (server === undefined) throw new Error('the fleet has no server');
  return server;
}

interface Listed {
  readonly metadata: { readonly name: string };
  readonly status: { readonly vip: string };
}

export interface Result {
  readonly node: string;
  readonly tag: string;
  readonly state: InstructionState;
  readonly replyType: string;
  /** The reply's value, or the text of an error. */
  readonly reply: unknown;
}

const endStates = [InstructionState.DONE, InstructionState.UNKNOWN, InstructionState.EXPIRED, InstructionState.CANCELLED];

function hasEnded({ state }: Instruction): boolean {
  return endStates.includes(state);
}

function resultOf({ instruction, replyJsonB64 }: GetInstructionResponse): Result {
  if (instruction === undefined) throw new Error('the server answered without an instruction');
  const { node, tag, state, replyType } = instruction;
  const isText = replyType === 'ERROR' || replyType === '';
  return {
    node,
    tag,
    state,
    replyType,
    reply: isText ? replyJsonB64 : JSON.parse(Buffer.from(replyJsonB64, 'base64').toString()),
  };
}

import { createHash } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { DispatchService } from '../../src/app/dispatch/dispatch-service.js';
import { Dispatcher } from '../../src/app/dispatch/dispatcher.js';
import { FinishedSweep } from '../../src/app/dispatch/finished-sweep.js';
import { InstructionBodies } from '../../src/app/dispatch/instruction-bodies.js';
import { InstructionBook } from '../../src/app/dispatch/instruction-book.js';
import { Cordons } from '../../src/app/fleet/cordons.js';
import { FleetNodesService } from '../../src/app/fleet/fleet-nodes-service.js';
import { FleetSubsystem } from '../../src/app/fleet/fleet-subsystem.js';
import { NodeSessions } from '../../src/app/link/node-sessions.js';
import { PresenceBoard } from '../../src/app/link/presence-board.js';
import { ServerClocks } from '../../src/app/link/server-clocks.js';
import { BoundNodeNames } from '../../src/app/log/bound-node-names.js';
import { FleetOverlay } from '../../src/app/overlay/fleet-overlay.js';
import { PeerPushes } from '../../src/app/overlay/peer-pushes.js';
import { SessionRelay } from '../../src/app/session/session-relay.js';
import { FleetVips } from '../../src/app/vip/fleet-vips.js';
import { VipCandidates } from '../../src/app/vip/vip-candidates.js';
import { DEFAULT_EXPIRY_MS, WINDOW } from '../../src/domain/dispatch/model.js';
import { tag as asTag, type Tag } from '../../src/domain/instruction/model.js';
import type { Ipv4Range } from '../../src/domain/kernel/network.js';
import {
  type AgentFacts,
  aid,
  type Capability,
  HEARTBEAT_TYPE,
  type Nid,
  nid,
  registrationId,
  type ServerMessage,
} from '../../src/domain/link/model.js';
import type { Clock } from '../../src/ports/clock.js';
import type { SendCall } from '../../src/ports/driving/fleet.js';
import type { NodeStream, NodeStreams, PeerNode, StreamEnd } from '../../src/ports/driving/node-streams.js';
import type { ControlStore } from '../../src/ports/store/control-store.js';
import type { Sealer } from '../../src/ports/store/sealer.js';
import { FakeClock } from '../fakes/fake-clock.js';
import { FakeControlStore } from '../fakes/fake-control-store.js';
import { FakeLogger } from '../fakes/fake-logger.js';
import { FakeOrderedLog } from '../fakes/fake-ordered-log.js';
import { FakeRegistrations } from '../fakes/fake-registrations.js';
import { SmallCluster } from './small-cluster.js';

export const options = { signal: new AbortController().signal };
export const n1 = nid('n1');
export const n2 = nid('n2');

export function tagOf(text: string): Tag {
  const made = asTag(text);
  if (made === undefined) throw new Error(`not a tag: ${text}`);
  return made;
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Seals so that a test sees what was sealed under which name. */
const plainSealer: Sealer = {
  keyId: 'plain',
  seal: (name, text) => `sealed ${name}: ${text}`,
  open: (name, sealed) => {
    const mark = `sealed ${name}: `;
    if (!sealed.startsWith(mark)) throw new Error(`sealed under another name than ${name}`);
    return sealed.slice(mark.length);
  },
};

interface FleetParts {
  readonly server?: string;
  readonly registrations?: FakeRegistrations;
  readonly isReady?: () => boolean;
  readonly overlayRange?: Ipv4Range;
  readonly vipCandidates?: readonly string[];
}

let ids = 0;

/** One replica of a control plane in fake time, on a store that may have others. */
export async function fleetRig({
  store = new FakeControlStore(),
  clock = new FakeClock(),
  ...parts
}: FleetParts & { readonly store?: FakeControlStore; readonly clock?: FakeClock } = {}) {
  return { ...(await fleetOn(store, clock, parts)), store, clock };
}

/** The same on any store. */
export async function fleetOn(
  store: ControlStore,
  clock: Clock,
  {
    server = 's1',
    registrations = new FakeRegistrations(),
    isReady = () => true,
    overlayRange,
    vipCandidates = [],
  }: FleetParts = {},
) {
  const logger = new FakeLogger();
  const told: string[] = [];
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
  const newId = () => `id-${++ids}`;
  const common = { store, clock, logger };
  const clocks = new ServerClocks(clock, server);
  const presence = new PresenceBoard({ ...common, server, clocks });
  const cordons = new Cordons(common);
  const book = new InstructionBook(common);
  const bodies = new InstructionBodies({ store, sealer: plainSealer, sha256 });
  const heldBack = (node: Nid) => (cordons.has(node) ? 'the node to be uncordoned' : '');
  const dispatcher = new Dispatcher({ ...common, book, bodies, newId, heldBack });
  const facts = { fleet: 'f1', server, window: WINDOW, capabilities: new Set<Capability>(['redeliver', 'result-ack', 'window']) };
  const relay: SessionRelay = new SessionRelay({ server, registrations, presence, nodes: () => sessions, newId, clock });
  const vips: FleetVips = new FleetVips({
    ...common,
    candidates: new VipCandidates({
      candidates: vipCandidates,
      presence,
      registrations,
      isCordoned: (node) => cordons.has(node),
    }),
    instructions: {
      send: (call, given) => instructions.send(call, given),
      get: (node, tag, given) => instructions.get(node, tag, given),
    },
    book,
    events: { tell: (_, subject, message) => void told.push(`${subject} ${message}`) },
    random: () => 0,
  });
  const sessions = new NodeSessions({
    ...common,
    ...facts,
    presence,
    users: [dispatcher, relay, vips],
    newId,
    isReady,
    vip: (node) => vips.word(node),
  });
  const instructions = new DispatchService({ store, book, bodies, registrations, clock, newId, sessions, heldBack });
  const overlay = new FleetOverlay({ ...common, range: overlayRange });
  const pushes = new PeerPushes({ ...common, overlay, instructions, sessions, random: () => 0, sha256 });
  const cluster = new SmallCluster();
  const names = new BoundNodeNames(store);
  const log = new FakeOrderedLog();
  const nodes = new FleetNodesService({
    ...{ store, registrations, presence, sessions, cordons, book, overlay, clock, names, log },
    view: { state: cluster.state },
  });
  const sweep = new FinishedSweep({ ...common, book });
  const subsystem = new FleetSubsystem({
    presence,
    cordons,
    book,
    dispatcher,
    sessions,
    sweep,
    overlay,
    pushes,
    revocations: { onRevoked: () => () => {} },
    vips,
  });
  await subsystem.start();
  await subsystem.ready(options.signal);
  await settle();
  const stop = () => subsystem.stop();
  onTestFinished(stop);
  const send = (call: Partial<SendCall> = {}) =>
    instructions.send(
      { nid: n1, type: 'GET_NODE_STATUS', json: '', tag: undefined, expiresMs: DEFAULT_EXPIRY_MS, by: 'local:0', ...call },
      options,
    );
  const connect = (agent: Partial<ConnectOptions> = {}) => connectNode(sessions, agent);
  return {
    vips,
    told,
    logger,
    registrations,
    presence,
    clocks,
    cordons,
    book,
    bodies,
    dispatcher,
    cluster,
    log,
    names,
    sessions,
    relay,
    instructions,
    nodes,
    overlay,
    pushes,
    send,
    connect,
    stop,
  };
}

/** Everything that is ready to run has run. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 3; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

export interface ConnectOptions {
  readonly nid: Nid;
  readonly registration: string;
  readonly address: string;
  /** Undefined: an older agent. */
  readonly agent: AgentFacts | undefined;
  /** Is given the stream before it is opened. */
  readonly made: (stream: FakeNodeStream) => void;
}

export function agentFacts(facts: Partial<AgentFacts> = {}): AgentFacts {
  return {
    ...{ instance: 'i1', session: 1, boot: 'b1', hardware: 'h1', journal: { id: 'j1', counter: 1n } },
    capabilities: new Set(['journal', 'result-ack', 'cancel']),
    ...facts,
  };
}

/** A stream that a test holds the node's end of. */
export class FakeNodeStream implements NodeStream {
  readonly node: PeerNode;
  readonly agent: AgentFacts | undefined;
  readonly sent: ServerMessage[] = [];
  ended: StreamEnd | undefined;

  constructor(node: PeerNode, agent: AgentFacts | undefined) {
    this.node = node;
    this.agent = agent;
  }

  async send(message: ServerMessage): Promise<boolean> {
    if (this.ended !== undefined) return false;
    this.sent.push(message);
    return true;
  }

  end(reason: StreamEnd): void {
    this.ended ??= reason;
  }

  /** `TYPE tag`, one each, without heartbeats. */
  get told(): readonly string[] {
    return this.sent.filter(({ type }) => type !== HEARTBEAT_TYPE).map(({ type, tag }) => `${type} ${tag}`);
  }
}

async function connectNode(sessions: NodeStreams, connect: Partial<ConnectOptions>) {
  const { nid = n1, registration = 'r1', address = '192.0.2.1:4000', agent } = { agent: agentFacts(), ...connect };
  const identity = { role: 'node' as const, aid: aid('acme'), nid, registration: registrationId(registration) };
  const peer = { identity, serial: '1', notAfter: Date.UTC(2027, 0, 1), address };
  const stream = new FakeNodeStream(peer, agent);
  connect.made?.(stream);
  const { facts, handler } = await sessions.open(stream);
  await settle();
  const say = async (type: string, tag: string, jsonB64 = 'e30=') => {
    handler.received({ type, tag, jsonB64 });
    await settle();
  };
  const beat = (tag = 'beat', fields: object = {}) => say(HEARTBEAT_TYPE, tag, base64(JSON.stringify(fields)));
  const close = async () => {
    handler.closed();
    await settle();
  };
  return { stream, facts, say, beat, close };
}

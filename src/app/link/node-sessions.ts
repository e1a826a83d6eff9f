import { AgentError } from '../../domain/kernel/errors.js';
import type { Contest, ContestAnswer } from '../../domain/link/contest.js';
import {
  addChange,
  CLONE_MS,
  DUPLICATE_RETRY_MS,
  holdMs,
  isContested,
  judgeArrival,
  judgeClone,
  recentChanges,
  type StreamChanges,
  type StreamParty,
} from '../../domain/link/fence.js';
import { heartbeatAnswer, readHeartbeat, type VipWord } from '../../domain/link/heartbeat.js';
import { type Capabilities, HEARTBEAT_TYPE, type LinkMessage, type Nid, type ServerFacts } from '../../domain/link/model.js';
import { decodeStream, type StreamRecord, streamAgentOf, streamPrefix } from '../../domain/link/stream-record.js';
import type { Clock } from '../../ports/clock.js';
import type {
  NodeIdentity,
  NodeStream,
  NodeStreamHandler,
  NodeStreams,
  PeerNode,
  StreamEnd,
} from '../../ports/driving/node-streams.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore, StoreChange } from '../../ports/store/control-store.js';
import { PrefixView } from '../store/prefix-view.js';
import { CloneContests } from './clone-contests.js';
import type { NodeSession, NodeUser } from './node-session.js';
import { OpenSession } from './open-session.js';
import type { PresenceBoard, SeenNode } from './presence-board.js';
import { type KeptStream, StreamEpochs } from './stream-epochs.js';

/** Agents come back at 100 a second after a restart, and never all within less than this (engine.md I3). */
const LEAST_SPREAD_MS = 10_000;
const COME_BACK_PER_SECOND = 100;
/** An agent that is answered at all is one that is known. */
const HEALTHY = { isHealthy: true, message: '' };
/** On a stream that is not the current one nothing is said of who has what. */
const NOT_HERE = { ...HEALTHY, vip: 'unknown' } as const;
const IS_OLD: StreamEnd = { status: 'superseded', message: 'SUPERSEDED: this process has a newer stream' };
/** An agent gives a move to another connection so long. */
const DRAIN_MS = 20_000;
/** Another machine that was turned away tries again by then. */
const TROUBLE_MS = 2 * DUPLICATE_RETRY_MS;

export interface NodeSessionsParts {
  readonly store: ControlStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly presence: PresenceBoard;
  /** Id of the fleet. */
  readonly fleet: string;
  /** Id of this replica. */
  readonly server: string;
  readonly capabilities: Capabilities;
  /** Unanswered instructions that a node may have. */
  readonly window: number;
  /** Asked in this order whose a message is. */
  readonly users: readonly NodeUser[];
  readonly newId: () => string;
  /** Whether the users know what they must know before they see a stream: a result that nobody knows yet would be lost. */
  readonly isReady: () => boolean;
  /** Whether a node has the virtual IP, as far as it is known at this moment; undefined where nobody decides it. */
  readonly vip: (node: NodeIdentity) => VipWord | undefined;
}

/** What is counted, since the start. */
export interface SessionCounters {
  readonly opened: number;
  readonly heartbeats: number;
  /** Messages that were nobody's: replies to what nobody asked, above all of older agents. */
  readonly unclaimed: number;
  readonly superseded: number;
  readonly duplicates: number;
}

/** The streams of all nodes at this server: which one is current, and who may speak on it. */
export class NodeSessions implements NodeStreams {
  readonly #parts: NodeSessionsParts;
  readonly #epochs: StreamEpochs;
  readonly #contests: CloneContests;
  readonly #view: PrefixView;
  readonly #current = new Map<Nid, OpenSession>();
  /** Streams of one node are judged one after the other. */
  readonly #turns = new Map<Nid, Promise<unknown>>();
  readonly #changes = new Map<Nid, StreamChanges>();
  /** Until when two machines are said to have one node's certificate. */
  readonly #troubleUntil = new Map<Nid, number>();
  readonly #stop = new AbortController();
  #counters: SessionCounters = { opened: 0, heartbeats: 0, unclaimed: 0, superseded: 0, duplicates: 0 };

  constructor(parts: NodeSessionsParts) {
    this.#parts = parts;
    this.#epochs = new StreamEpochs(parts.store);
    this.#contests = new CloneContests({ ...parts, answer: (contest) => this.#answerFor(contest) });
    const changed = (changes: readonly StoreChange[]) => this.#epochsChanged(changes);
    this.#view = new PrefixView({ ...parts, prefix: streamPrefix, changed });
  }

  start(): void {
    this.#view.start();
    this.#contests.start();
  }

  /**
   * Every stream is ended as planned, so that its agent comes back within the spread, and none is let in any more. Before the server that
   * carries them stops: a stream that dies with its connection does not learn when to come back. Safe twice.
   */
  goodbye(): void {
    this.#stop.abort();
    const spread = this.#spreadMs();
    const sessions = [...this.#current.values()];
    for (const [index, session] of sessions.entries()) {
      const retryMs = Math.round((spread * (index + 1)) / sessions.length);
      session.end({ status: 'stopping', message: 'the server stops', retryMs });
      this.#closed(session);
    }
  }

  async stop(): Promise<void> {
    this.goodbye();
    await Promise.all([this.#view.stop(), this.#contests.stop()]);
  }

  get counters(): SessionCounters {
    return this.#counters;
  }

  /** Undefined when its stream is not at this server. */
  get(nid: Nid): NodeSession | undefined {
    return this.#current.get(nid);
  }

  /** Ends the streams of nodes that `concerns` names, as when their certificates are revoked. */
  endWhere(concerns: (node: PeerNode) => boolean, reason: StreamEnd): void {
    for (const session of this.#current.values()) {
      if (concerns(session.node)) session.end(reason);
    }
  }

  get size(): number {
    return this.#current.size;
  }

  headers(): Omit<ServerFacts, 'epoch'> {
    const { fleet, server, capabilities, window } = this.#parts;
    return { fleet, server, capabilities, spreadMs: this.#spreadMs(), window };
  }

  open(stream: NodeStream): Promise<{ readonly facts: ServerFacts; readonly handler: NodeStreamHandler }> {
    const { nid } = stream.node.identity;
    const before = this.#turns.get(nid) ?? Promise.resolve();
    const mine = before.then(
      () => this.#open(stream),
      () => this.#open(stream),
    );
    this.#turns.set(nid, mine);
    const done = () => {
      if (this.#turns.get(nid) === mine) this.#turns.delete(nid);
    };
    mine.then(done, done);
    return mine;
  }

  async #open(stream: NodeStream): Promise<{ readonly facts: ServerFacts; readonly handler: NodeStreamHandler }> {
    const { signal } = this.#stop;
    if (signal.aborted) throw new AgentError('store.unavailable', { problem: 'the server stops' });
    if (!this.#parts.isReady()) throw new AgentError('store.unavailable', { problem: 'the store has not been read yet' });
    const known = await this.#fence(stream);
    const { nid, registration } = stream.node.identity;
    const { clock, server, newId } = this.#parts;
    const claim = { server, stream: newId(), at: clock.now(), address: stream.node.address, agent: stream.agent };
    const { record, fence } = await this.#epochs.raise({ nid, registration, known }, claim, { signal });
    const session = new OpenSession({ stream, record, fence, holdMs: () => this.#holdMs(nid) });
    const handler = {
      received: (message: LinkMessage) => this.#received(session, message),
      closed: () => this.#closed(session),
    };
    this.#replace(session);
    return { facts: { ...this.headers(), epoch: record.epoch }, handler };
  }

  /** Resolves when the stream may become the current one, with what was read of the former one. @throws AgentError `link.refused` */
  async #fence(stream: NodeStream): Promise<KeptStream | undefined> {
    const newcomer = { agent: stream.agent, address: stream.node.address };
    const { nid, registration } = stream.node.identity;
    const present = this.#current.get(nid);
    if (present === undefined) return this.#fenceElsewhere(stream);
    // Whoever has registered anew has shown a token for it.
    if (present.identity.registration !== registration) return undefined;
    const arrival = judgeArrival(present.party, newcomer);
    if (arrival === 'is_old') throw refuse(stream, IS_OLD);
    if (arrival === 'takes_over' || !(await this.#goesOnBeating(present))) return undefined;
    const kept = await this.#epochs.read(nid, registration, this.#stop);
    if (judgeClone(kept.record?.hardware, present.party, newcomer) === 'newcomer') this.#duplicate(present, newcomer.address);
    else {
      this.#tellDuplicate(nid, newcomer.address, present.party.address);
      throw refuse(stream, duplicateOf(present.record));
    }
    return kept;
  }

  /** As `#fence`, when another replica has the node's stream, or had it last: that one is asked whether it lives. */
  async #fenceElsewhere(stream: NodeStream): Promise<KeptStream> {
    const { nid, registration } = stream.node.identity;
    const { presence, server, newId } = this.#parts;
    const known = await this.#epochs.read(nid, registration, this.#stop);
    const { record: kept } = known;
    if (kept === undefined || kept.server === server) return known;
    const newcomer = { agent: stream.agent, address: stream.node.address };
    this.#noteChange(nid, kept, newcomer);
    const arrival = judgeArrival(kept, newcomer);
    if (arrival === 'is_old') throw refuse(stream, IS_OLD);
    if (stream.agent === undefined || arrival === 'takes_over' || hasEnded(kept, presence.get(nid))) return known;
    const contest = { nid, registration, asked: kept.server, id: newId(), answer: undefined };
    const asked = { ...contest, newcomer: { agent: streamAgentOf(stream.agent), address: newcomer.address } };
    if (!(await this.#contests.goesOnBeating(asked, this.#stop))) return known;
    if (judgeClone(kept.hardware, kept, newcomer) === 'newcomer') return known;
    this.#countDuplicate(nid, newcomer.address, kept.address);
    throw refuse(stream, duplicateOf(kept));
  }

  /** Another replica has a newcomer for a node whose stream is here: both judge alike, and what concerns this stream is done here. */
  async #answerFor({ nid, registration, newcomer }: Contest): Promise<ContestAnswer | undefined> {
    const present = this.#current.get(nid);
    if (present === undefined || present.identity.registration !== registration) return 'gone';
    if (!(await this.#goesOnBeating(present))) return present.signal.aborted ? 'gone' : undefined;
    if (judgeClone(present.record.hardware, present.party, newcomer) === 'newcomer') this.#duplicate(present, newcomer.address);
    else this.#tellDuplicate(nid, newcomer.address, present.party.address);
    return 'beats';
  }

  /** Whether it says anything within the 7 s; one that ends is none. */
  async #goesOnBeating(present: OpenSession): Promise<boolean> {
    const timer = new AbortController();
    const overdue = this.#parts.clock.sleep(CLONE_MS, { signal: AbortSignal.any([timer.signal, this.#stop.signal]) });
    const silent = overdue.then(
      () => false,
      () => false,
    );
    try {
      return await Promise.race([silent, present.nextSign()]);
    } finally {
      timer.abort();
    }
  }

  #duplicate(present: OpenSession, other: string): void {
    this.#tellDuplicate(present.identity.nid, present.party.address, other);
    const message = `DUPLICATE_NODE: another machine at ${other} has this node's certificate and its registered hardware`;
    present.end({ status: 'duplicate', message, retryMs: DUPLICATE_RETRY_MS });
  }

  #tellDuplicate(nid: Nid, turnedAway: string, stays: string): void {
    this.#countDuplicate(nid, turnedAway, stays);
    this.#parts.presence.problem(nid, `DUPLICATE_NODE: ${turnedAway} was turned away, ${stays} stays`);
    this.#troubleUntil.set(nid, this.#parts.clock.monotonic() + TROUBLE_MS);
  }

  #countDuplicate(nid: Nid, turnedAway: string, stays: string): void {
    this.#count('duplicates');
    this.#parts.logger.error('two machines have the certificate of one node', { nid, turnedAway, stays });
  }

  #replace(session: OpenSession): void {
    const { nid } = session.identity;
    const former = this.#current.get(nid);
    if (former !== undefined) {
      this.#noteChange(nid, former.party, session.party);
      if (isMove(former, session)) void this.#drain(former, session.epoch);
      else this.#supersede(former, session.epoch);
    }
    this.#current.set(nid, session);
    this.#count('opened');
    this.#parts.presence.opened(session);
    for (const user of this.#parts.users) user.opened(session);
  }

  /** Older agents alone: of those that say who they are it is known. */
  #noteChange(nid: Nid, former: StreamParty, next: StreamParty): void {
    if (former.agent !== undefined && next.agent !== undefined) return;
    const now = this.#parts.clock.monotonic();
    const changes = addChange(this.#changes.get(nid) ?? [], next.address, now);
    this.#changes.set(nid, changes);
    if (isContested(changes)) this.#tellDuplicate(nid, former.address, next.address);
  }

  #holdMs(nid: Nid): number {
    const changes = this.#changes.get(nid);
    return changes === undefined ? 0 : holdMs(changes, this.#parts.clock.monotonic());
  }

  /** Its heartbeats are answered for a while; whatever else it says, it says again on the new one (engine.md B3). */
  async #drain(former: OpenSession, epoch: bigint): Promise<void> {
    const { clock, newId } = this.#parts;
    const jsonB64 = Buffer.from(JSON.stringify({ epoch: String(epoch) })).toString('base64');
    void former.send({ type: 'DRAINING', tag: newId(), jsonB64, epoch: former.epoch });
    this.#closed(former);
    await clock.sleep(DRAIN_MS, this.#stop).catch(() => {});
    former.end({ status: 'superseded', message: `SUPERSEDED epoch ${epoch}` });
  }

  #supersede(session: OpenSession, epoch: bigint): void {
    this.#count('superseded');
    session.end({ status: 'superseded', message: `SUPERSEDED epoch ${epoch}` });
    this.#closed(session);
  }

  #received(session: OpenSession, message: LinkMessage): void {
    if (session.signal.aborted) {
      if (message.type === HEARTBEAT_TYPE) void session.answer(heartbeatAnswer(NOT_HERE, message.tag));
    } else if (message.type === HEARTBEAT_TYPE) this.#beat(session, message);
    else if (!this.#parts.users.some((user) => user.received(session, message))) this.#count('unclaimed');
  }

  /** Answered before anything is looked at: an older agent gives up after 10 s, whatever the store does (engine.md C6). */
  #beat(session: OpenSession, { tag, jsonB64 }: LinkMessage): void {
    void session.send(heartbeatAnswer({ ...HEALTHY, vip: this.#parts.vip(session.identity) }, tag));
    session.sign();
    this.#count('heartbeats');
    const { nid } = session.identity;
    if (this.#parts.presence.beat(nid, readHeartbeat(jsonB64)))
      this.#parts.logger.error('the audit log of a node has lost its end, or was written anew', { nid });
    this.#recover(session);
  }

  /** What is over for long is no longer told. */
  #recover({ identity: { nid } }: OpenSession): void {
    const now = this.#parts.clock.monotonic();
    const changes = this.#changes.get(nid);
    if (changes !== undefined && recentChanges(changes, now).length === 0) this.#changes.delete(nid);
    if (now < (this.#troubleUntil.get(nid) ?? Number.POSITIVE_INFINITY)) return;
    this.#troubleUntil.delete(nid);
    this.#parts.presence.problem(nid, '');
  }

  #closed(session: OpenSession): void {
    if (!session.close()) return;
    if (this.#current.get(session.identity.nid) === session) this.#current.delete(session.identity.nid);
    this.#parts.presence.closed(session);
    for (const user of this.#parts.users) user.closed(session);
  }

  #epochsChanged(changes: readonly StoreChange[]): void {
    for (const { key, value } of changes) {
      const nid = key.slice(streamPrefix.length).split('/')[0] as Nid;
      const session = this.#current.get(nid);
      if (session === undefined || key !== session.fence.key) continue;
      const record: StreamRecord | undefined = value === undefined ? undefined : decodeStream(value);
      if (record === undefined || record.epoch <= session.epoch) continue;
      this.#noteChange(nid, session.party, record);
      this.#supersede(session, record.epoch);
    }
  }

  #count(counter: keyof SessionCounters): void {
    this.#counters = { ...this.#counters, [counter]: this.#counters[counter] + 1 };
  }

  #spreadMs(): number {
    return Math.max(LEAST_SPREAD_MS, Math.round((this.#current.size * 1_000) / COME_BACK_PER_SECOND));
  }
}

function duplicateOf({ address, at }: StreamRecord): StreamEnd {
  const message = `DUPLICATE_NODE: ${address} has been connected with this certificate since ${new Date(at).toISOString()}`;
  return { status: 'duplicate', message, retryMs: DUPLICATE_RETRY_MS };
}

/** As its own replica has written it: with the same clock, and after the stream was opened. */
function hasEnded({ server, at }: StreamRecord, presence: SeenNode | undefined): boolean {
  return presence?.connected === false && presence.server === server && presence.since >= at;
}

/** The transport tells the agent why. */
function refuse(stream: NodeStream, reason: StreamEnd): AgentError {
  stream.end(reason);
  return new AgentError('link.refused', { problem: reason.message });
}

/** A process that moves to another connection waits for the answer there before it lets go of this one. */
function isMove(former: OpenSession, session: OpenSession): boolean {
  return former.agent?.capabilities.has('journal') === true && former.agent.instance === session.agent?.instance;
}

import type { AuditHead } from '../../domain/audit/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { EpochFence } from '../../domain/link/epoch-fence.js';
import type { Heartbeat } from '../../domain/link/heartbeat.js';
import type { AgentFacts, Epoch, ServerFacts, ServerMessage } from '../../domain/link/model.js';
import { OwnTags } from '../../domain/link/own-tags.js';
import { addressOrder, type LostLink, planReconnect } from '../../domain/link/reconnect.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { ControlLink, LinkAddress, LinkEnd } from '../../ports/link/control-link.js';
import type { NodeRoles } from '../../ports/link/node-roles.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import { messageOf } from '../agent/managed-subsystem.js';
import type { Subsystem } from '../agent/subsystem.js';
import { type AnsweredBeat, Conversation, type LinkCounts } from './conversation.js';
import { linkProblems } from './link-problems.js';
import type { AnsweredHeartbeat, LinkSession, LinkUser } from './link-session.js';
import { RoleKeeper } from './role-keeper.js';

/** Of another connection that is to take the link over, to its first heartbeat's answer. */
const MOVE_MS = 20_000;
const NO_ADDRESS = 'no address of a control plane is configured';
const NO_LINK = 'there is no link to the control plane';

export interface LinkSubsystemParts {
  readonly link: ControlLink;
  /** Servers of one fleet; at least one. */
  readonly addresses: readonly LinkAddress[];
  /** What is said at each opening; the counter of streams is added. */
  readonly facts: () => Omit<AgentFacts, 'session'>;
  readonly roles: NodeRoles;
  /** Asked in this order whose a message is. */
  readonly users: readonly LinkUser[];
  readonly version: string;
  /** Said in heartbeats instead of the connection's own address. */
  readonly nodeIp: string | undefined;
  readonly auditHead: () => AuditHead | undefined;
  readonly newTag: () => string;
  readonly clock: Clock;
  /** Milliseconds since the machine started, counting while it sleeps. */
  readonly bootTime: () => number;
  /** From 0 up to, not with, 1. */
  readonly random: () => number;
  readonly logger: Logger;
}

/** The link as `status` shows it. Times are of the wall clock. */
export interface LinkState {
  readonly connected:
    | {
        readonly since: number;
        readonly address: LinkAddress;
        /** Undefined for an older server. */
        readonly server: ServerFacts | undefined;
        /** Server - us, milliseconds; undefined where the server does not say it. */
        readonly skewMs: number | undefined;
        /** An epoch that is higher than this server's: what it instructs is dropped. */
        readonly supersededBy: Epoch | undefined;
        /** On the monotonic clock. */
        readonly lastBeat: AnsweredBeat | undefined;
      }
    | undefined;
  /** Of the newest attempt or stream that ended badly. */
  readonly lastError: { readonly error: Error; readonly at: number } | undefined;
  /** Since when there is no link; undefined while there is one. */
  readonly lostSince: number | undefined;
  readonly nextAttemptAt: number | undefined;
  /** Streams that were tried: the number of the newest. */
  readonly streams: number;
  readonly dropped: Readonly<LinkCounts>;
}

interface Current {
  readonly conversation: Conversation;
  readonly index: number;
  readonly since: number;
}

/** Keeps one stream to the control plane, and lets its users speak through it. The node serves on without it. */
export class LinkSubsystem implements Subsystem, ProblemSource {
  readonly name = 'link';
  readonly #parts: LinkSubsystemParts;
  readonly #ownTags = new OwnTags();
  readonly #fence = new EpochFence();
  readonly #roles: RoleKeeper;
  readonly #counts: LinkCounts = { lateAnswers: 0, strayAnswers: 0, oldEpochs: 0, afterDraining: 0, unclaimed: 0 };
  /** The stream that its users have; at most one. */
  #current: Current | undefined;
  /** Whatever is open, also before its users know it. */
  readonly #open = new Set<Conversation>();
  #moving: Promise<void> | undefined;
  #streams = 0;
  #spreadMs = 0;
  #lastError: { readonly error: Error; readonly at: number } | undefined;
  #lostSince: number | undefined;
  #nextAttemptAt: number | undefined;
  #running: { readonly stop: AbortController; readonly done: Promise<void> } | undefined;

  constructor(parts: LinkSubsystemParts) {
    this.#parts = parts;
    this.#roles = new RoleKeeper(parts.roles, parts.clock);
  }

  async start(): Promise<void> {
    const stop = new AbortController();
    this.#lostSince = this.#parts.clock.now();
    // Known by the first heartbeat, unless the cluster is slower than the connection.
    this.#roles.refresh();
    this.#running = { stop, done: this.#keep(stop.signal) };
  }

  /** A node without a link is ready: it serves what it knows. */
  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.stop.abort();
    this.#roles.stop();
    for (const conversation of this.#open) conversation.close();
    await running?.done;
    await this.#parts.link.close();
  }

  /**
   * A question of our own on the current stream; its answer, of whatever type.
   * @throws AgentError `link.unreachable` without a link, or when it is lost meanwhile, `link.timed_out`; on abort with its reason
   */
  async ask(type: string, jsonB64: string, timeoutMs: number, options: CallOptions): Promise<ServerMessage> {
    const conversation = this.#current?.conversation;
    if (conversation === undefined) throw new AgentError('link.unreachable', { problem: NO_LINK });
    return conversation.ask(type, jsonB64, timeoutMs, options);
  }

  /** Whether this agent made the tag in the last 10 min: nothing that bears it is ever answered (C2). */
  isOwnTag(tag: string): boolean {
    return this.#ownTags.has(tag, this.#parts.clock.monotonic());
  }

  /**
   * Moves the link to another connection, made with the certificate that is on disk now. The old stream is kept until the new one's first
   * heartbeat is answered, and goes on when that fails.
   * @throws AgentError `link.*`, `certificate.*`; `link.unreachable` also when there is no link now
   */
  async moveOver(options: CallOptions): Promise<void> {
    const { link } = this.#parts;
    link.reloadCertificate();
    const current = this.#current;
    if (current === undefined) throw new AgentError('link.unreachable', { problem: NO_LINK });
    const moving = this.#move(current.index, options);
    this.#moving = moving;
    try {
      await moving;
    } finally {
      this.#moving = undefined;
    }
  }

  state(): LinkState {
    const { addresses, clock } = this.#parts;
    const [current, address] = [this.#current, addresses[this.#current?.index ?? -1]];
    const stream = current?.conversation.stream;
    return {
      connected:
        current === undefined || address === undefined
          ? undefined
          : {
              since: current.since,
              address,
              server: current.conversation.session?.server,
              skewMs: stream?.clockSkewMs,
              supersededBy: this.#supersededBy(current.conversation.session?.server),
              lastBeat: current.conversation.lastBeat,
            },
      lastError: this.#lastError,
      lostSince: current === undefined ? (this.#lostSince ?? clock.now()) : undefined,
      nextAttemptAt: this.#nextAttemptAt,
      streams: this.#streams,
      dropped: { ...this.#counts },
    };
  }

  problems(): readonly StatusProblem[] {
    return linkProblems(this.state(), this.#roles.failure(), this.#parts.clock);
  }

  async #keep(signal: AbortSignal): Promise<void> {
    const { clock, random, logger } = this.#parts;
    let failures = 0;
    let last: { readonly index: number; readonly what: 'stream' | 'connection' } | undefined;
    while (!signal.aborted) {
      const { lost, index, answered } = await this.#connect(last, signal);
      if (signal.aborted) return;
      // A server that lets streams begin and serves none is left for the next one.
      last = index === undefined ? undefined : { index, what: answered && lost.what !== 'connection' ? 'stream' : 'connection' };
      const plan = planReconnect(lost, failures, random());
      failures = plan.failures;
      this.#nextAttemptAt = clock.now() + plan.waitMs;
      const waitMs = Math.round(plan.waitMs);
      logger.warn('no link to the control plane; it is tried again', { error: this.#lastError?.error, waitMs });
      await clock.sleep(plan.waitMs, { signal }).catch(() => {});
      this.#nextAttemptAt = undefined;
    }
  }

  /** Tries each address once, and stays with the first that answers until that link is lost. */
  async #connect(
    last: { readonly index: number; readonly what: 'stream' | 'connection' } | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly lost: LostLink; readonly index: number | undefined; readonly answered: boolean }> {
    const { addresses, random } = this.#parts;
    if (addresses.length === 0) this.#failed(new AgentError('link.unreachable', { problem: NO_ADDRESS }));
    for (const index of addressOrder(addresses.length, last, random())) {
      if (signal.aborted) break;
      const conversation = await this.#tryOpen(index, { signal });
      if (conversation === undefined) continue;
      const lost = await this.#stay(conversation);
      return { lost, index, answered: conversation.openedAt !== undefined };
    }
    const lost: LostLink = { what: 'connection', upMs: 0, spreadMs: this.#spreadMs, retryMs: undefined };
    return { lost, index: undefined, answered: false };
  }

  /** Until no stream is left, however often the link moves to another meanwhile. */
  async #stay(first: Conversation): Promise<LostLink> {
    let conversation = first;
    for (;;) {
      const end = await conversation.ended;
      await this.#moving?.catch(() => {});
      const next = this.#current?.conversation;
      if (next === undefined || next === conversation) return this.#lost(conversation, end);
      conversation = next;
    }
  }

  #lost({ openedAt }: Conversation, { what, error, retryMs }: LinkEnd): LostLink {
    const { clock } = this.#parts;
    this.#lostSince = clock.now();
    if (error !== undefined) this.#failed(error);
    const isDuplicate = error instanceof AgentError && error.code === 'link.duplicate';
    const upMs = openedAt === undefined ? 0 : clock.monotonic() - openedAt;
    const kind = isDuplicate ? 'duplicate' : what === 'connection' ? 'connection' : 'stream';
    return { what: kind, upMs, spreadMs: this.#spreadMs, retryMs };
  }

  async #tryOpen(index: number, options: CallOptions): Promise<Conversation | undefined> {
    try {
      return await this.#converse(index, () => {}, options);
    } catch (error) {
      if (!options.signal.aborted) this.#failed(error instanceof Error ? error : new Error(messageOf(error)));
      return undefined;
    }
  }

  /** A stream whose users are told when it opens: from then on it is the current one. */
  async #converse(index: number, onOpened: () => void, options: CallOptions): Promise<Conversation> {
    const { link, addresses, facts, clock, bootTime, newTag } = this.#parts;
    const address = addresses[index];
    if (address === undefined) throw new AgentError('link.unreachable', { problem: NO_ADDRESS });
    const stream = await link.open(address, { ...facts(), session: ++this.#streams }, options);
    const conversation: Conversation = new Conversation({
      stream,
      clock,
      bootTime,
      newTag,
      ownTags: this.#ownTags,
      counts: this.#counts,
      beat: () => this.#beat(stream.localAddress()),
      isOld: (server, message) => this.#isOld(server, message),
      onOpened: () => {
        this.#opened({ conversation, index, since: clock.now() });
        onOpened();
      },
      onMessage: (session, message) => this.#received(session, message),
      onAnswered: (session, beat) => this.#answered(session, beat),
    });
    this.#open.add(conversation);
    void conversation.ended.then(() => this.#ended(conversation));
    conversation.start();
    // Stopped meanwhile: whoever stopped it did not see this stream.
    if (options.signal.aborted) conversation.close();
    return conversation;
  }

  async #move(index: number, { signal }: CallOptions): Promise<void> {
    const { clock } = this.#parts;
    const opened = Promise.withResolvers<void>();
    const conversation = await this.#converse(index, opened.resolve, { signal });
    const timer = new AbortController();
    const onAbort = () => opened.reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    const late = clock.sleep(MOVE_MS, { signal: timer.signal }).then(() => {
      throw new AgentError('link.timed_out', { problem: `the new stream was not answered within ${MOVE_MS / 1_000} s` });
    });
    const gone = conversation.ended.then(({ error }) => {
      throw error ?? new AgentError('link.unreachable', { problem: 'the new stream ended before it was answered' });
    });
    try {
      await Promise.race([opened.promise, late, gone]);
    } catch (error) {
      conversation.close();
      throw error;
    } finally {
      timer.abort();
      signal.removeEventListener('abort', onAbort);
    }
  }

  #opened(current: Current): void {
    const { users, logger, addresses } = this.#parts;
    const former = this.#current;
    if (former !== undefined) this.#close(former);
    this.#current = current;
    this.#lostSince = undefined;
    const { session } = current.conversation;
    if (session === undefined) return;
    const { server } = session;
    if (server !== undefined) {
      this.#spreadMs = server.spreadMs;
      this.#fence.admit(server.fleet, server.epoch);
    }
    const { host, port } = addresses[current.index] ?? { host: '', port: 0 };
    logger.info('linked to the control plane', { host, port, server: server?.server, epoch: server?.epoch });
    for (const user of users) this.#safely(() => user.opened(session));
  }

  #close({ conversation }: Current): void {
    const { session } = conversation;
    if (session !== undefined) for (const user of this.#parts.users) this.#safely(() => user.closed(session));
    conversation.close();
  }

  #ended(conversation: Conversation): void {
    this.#open.delete(conversation);
    const current = this.#current;
    if (current?.conversation !== conversation) return;
    this.#current = undefined;
    this.#close(current);
  }

  #received(session: LinkSession, message: ServerMessage): void {
    if (session !== this.#current?.conversation.session) return;
    for (const user of this.#parts.users) if (this.#safely(() => user.received(session, message)) === true) return;
    this.#counts.unclaimed++;
    this.#parts.logger.debug('nobody takes a message of the control plane', { type: message.type });
  }

  #answered(session: LinkSession, beat: AnsweredHeartbeat): void {
    if (session !== this.#current?.conversation.session) return;
    for (const user of this.#parts.users) this.#safely(() => user.answered?.(session, beat));
  }

  #isOld(server: ServerFacts | undefined, { epoch }: ServerMessage): boolean {
    // A message may leave out the epoch of its stream.
    return server !== undefined && !this.#fence.admit(server.fleet, epoch ?? server.epoch);
  }

  #supersededBy(server: ServerFacts | undefined): Epoch | undefined {
    const highest = server === undefined ? undefined : this.#fence.highest(server.fleet);
    return highest !== undefined && server !== undefined && server.epoch < highest ? highest : undefined;
  }

  #beat(localAddress: string): Heartbeat {
    const { version, nodeIp, auditHead, facts } = this.#parts;
    const { roles, known } = this.#roles.latest();
    this.#roles.refresh();
    return {
      externalIpAddress: nodeIp ?? localAddress,
      ...roles,
      version,
      rolesKnown: known,
      capabilities: this.#safely(() => facts().capabilities) ?? new Set(),
      auditHead: this.#safely(auditHead),
    };
  }

  #failed(error: Error): void {
    this.#lastError = { error, at: this.#parts.clock.now() };
  }

  /** A fault of one part is neither the link's nor another part's. */
  #safely<Result>(step: () => Result): Result | undefined {
    try {
      return step();
    } catch (error) {
      this.#parts.logger.error('a part that uses the link failed', { error });
      return undefined;
    }
  }
}

import { AgentError } from '../../domain/kernel/errors.js';
import { type Heartbeat, heartbeatMessage } from '../../domain/link/heartbeat.js';
import { isDead, LOOK_MS } from '../../domain/link/liveness.js';
import { HEARTBEAT_MS, LIVENESS_MS, type LinkMessage, type ServerFacts, type ServerMessage } from '../../domain/link/model.js';
import type { OwnTags } from '../../domain/link/own-tags.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { LinkEnd, LinkStream } from '../../ports/link/control-link.js';
import type { AnsweredHeartbeat, LinkSession } from './link-session.js';

/** Counted from when the transport took it. An answer that comes later is counted, and an answer all the same. */
const ANSWER_MS = 10_000;
/** Beats whose answers are waited for: those of a minute. */
const MOST_BEATS = 12;
/** A transport that has not taken so many beats is not given more. */
const MOST_UNWRITTEN = 3;
/** What a server may send before it has answered the first heartbeat: a window of instructions and their neighbours. */
const MOST_HELD = 256;
const NEVER = new AbortController().signal;

/** What was dropped, over all streams. */
export interface LinkCounts {
  lateAnswers: number;
  strayAnswers: number;
  oldEpochs: number;
  afterDraining: number;
  unclaimed: number;
}

export interface ConversationParts {
  readonly stream: LinkStream;
  readonly clock: Clock;
  /** Milliseconds since the machine started, counting while it sleeps. */
  readonly bootTime: () => number;
  readonly newTag: () => string;
  readonly ownTags: OwnTags;
  readonly counts: LinkCounts;
  /** What the next heartbeat says. */
  readonly beat: () => Heartbeat;
  /** Whether a message is of a stream that another has replaced. */
  readonly isOld: (server: ServerFacts | undefined, message: ServerMessage) => boolean;
  /** Once: the server is known and has answered the first heartbeat. Messages come after it. */
  readonly onOpened: (conversation: Conversation) => void;
  readonly onMessage: (session: LinkSession, message: ServerMessage) => void;
  /** Of each heartbeat that was answered. */
  readonly onAnswered: (session: LinkSession, beat: AnsweredHeartbeat) => void;
}

/** When the newest heartbeat that was answered was sent and answered, on the monotonic clock. */
export interface AnsweredBeat {
  readonly sentAt: number;
  readonly answeredAt: number;
}

interface Beat {
  readonly sentAt: number;
  readonly sentBootTime: number;
  /** Undefined while it waits behind a large reply. */
  writtenAt: number | undefined;
}

/** One stream from its opening to its end: heartbeats, liveness, questions of our own; all else it hands on in order. */
export class Conversation {
  readonly #parts: ConversationParts;
  readonly #over = new AbortController();
  readonly #ended = Promise.withResolvers<LinkEnd>();
  readonly #beats = new Map<string, Beat>();
  readonly #questions = new Map<string, (answer: ServerMessage) => void>();
  #held: ServerMessage[] | undefined = [];
  #server: ServerFacts | undefined;
  #session: LinkSession | undefined;
  #openedAt: number | undefined;
  #answered: AnsweredBeat | undefined;
  #draining = false;
  #closed = false;
  #failure: AgentError | undefined;
  #unwritten = 0;

  constructor(parts: ConversationParts) {
    this.#parts = parts;
  }

  /** Once; begins with a heartbeat. */
  start(): void {
    this.#run().then(this.#ended.resolve, this.#ended.reject);
  }

  /** Resolves with why it is over. */
  get ended(): Promise<LinkEnd> {
    return this.#ended.promise;
  }

  /** Undefined until it was opened. */
  get session(): LinkSession | undefined {
    return this.#session;
  }

  /** On the monotonic clock; undefined until it was opened. */
  get openedAt(): number | undefined {
    return this.#openedAt;
  }

  get lastBeat(): AnsweredBeat | undefined {
    return this.#answered;
  }

  get stream(): LinkStream {
    return this.#parts.stream;
  }

  /** Nothing comes out of it from now on. */
  close(): void {
    this.#closed = true;
    this.#parts.stream.close();
  }

  /** @throws AgentError `link.timed_out`, `link.unreachable` when the stream ends first; on abort with the signal's reason */
  async ask(type: string, jsonB64: string, timeoutMs: number, { signal }: CallOptions): Promise<ServerMessage> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<ServerMessage>();
    const tag = this.#ownTag();
    const timer = new AbortController();
    const onAbort = () => reject(signal.reason);
    const onOver = () => reject(new AgentError('link.unreachable', { problem: `the stream ended before ${type} was answered` }));
    signal.addEventListener('abort', onAbort, { once: true });
    this.#over.signal.addEventListener('abort', onOver, { once: true });
    this.#parts.clock.sleep(timeoutMs, { signal: timer.signal }).then(
      () => reject(new AgentError('link.timed_out', { problem: `${type} was not answered within ${timeoutMs} ms` })),
      () => {},
    );
    this.#questions.set(tag, resolve);
    try {
      if (this.#over.signal.aborted || !(await this.stream.send({ type, tag, jsonB64 }, { signal: NEVER }))) onOver();
      return await promise;
    } finally {
      this.#questions.delete(tag);
      timer.abort();
      signal.removeEventListener('abort', onAbort);
      this.#over.signal.removeEventListener('abort', onOver);
    }
  }

  async #run(): Promise<LinkEnd> {
    const { stream } = this.#parts;
    void this.#beatOn(this.#over.signal);
    void this.#watch(this.#over.signal);
    this.#server = await stream.server;
    for await (const message of stream.messages) this.#received(message);
    const end = await stream.ended;
    this.#over.abort();
    return this.#failure === undefined ? end : { ...end, what: 'connection', error: this.#failure };
  }

  /** They overlap: the next one goes out whether or not the last was answered (V2). */
  async #beatOn(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#unwritten < MOST_UNWRITTEN) this.#beatOnce();
      await this.#parts.clock.sleep(HEARTBEAT_MS, { signal }).catch(() => {});
    }
  }

  #beatOnce(): void {
    const { clock, bootTime, beat, stream } = this.#parts;
    const tag = this.#ownTag();
    const sent: Beat = { sentAt: clock.monotonic(), sentBootTime: bootTime(), writtenAt: undefined };
    this.#beats.set(tag, sent);
    const [oldest] = this.#beats.keys();
    if (this.#beats.size > MOST_BEATS && oldest !== undefined) this.#beats.delete(oldest);
    this.#unwritten++;
    const written = () => {
      this.#unwritten--;
      sent.writtenAt = clock.monotonic();
    };
    stream.send(heartbeatMessage(beat(), tag), { signal: NEVER }).then(written, written);
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { clock, stream } = this.#parts;
    let lastLookAt = clock.monotonic();
    while (!signal.aborted) {
      await clock.sleep(LOOK_MS, { signal }).catch(() => {});
      if (signal.aborted) return;
      const now = clock.monotonic();
      if (isDead({ now, lastLookAt, lastByteAt: stream.lastByteAt(), outstanding: this.#beats.size > 0 })) {
        return this.#fail(`nothing came for ${LIVENESS_MS / 1_000} s, not even an answer to a heartbeat`);
      }
      lastLookAt = now;
    }
  }

  #received(message: ServerMessage): void {
    const { ownTags, clock, counts, isOld } = this.#parts;
    if (this.#closed) return;
    const sent = this.#beats.get(message.tag);
    const question = this.#questions.get(message.tag);
    if (sent !== undefined) this.#beatAnswered(sent, message);
    else if (question !== undefined) question(message);
    else if (ownTags.has(message.tag, clock.monotonic())) counts.strayAnswers++;
    else if (isOld(this.#server, message)) counts.oldEpochs++;
    else if (message.type === 'DRAINING') this.#draining = true;
    else if (this.#draining) counts.afterDraining++;
    else this.#handOn(message);
  }

  #beatAnswered({ sentAt, sentBootTime, writtenAt }: Beat, answer: ServerMessage): void {
    const { clock, counts, onAnswered } = this.#parts;
    const answeredAt = clock.monotonic();
    if (answeredAt - (writtenAt ?? answeredAt) > ANSWER_MS) counts.lateAnswers++;
    if (this.#answered === undefined || sentAt > this.#answered.sentAt) this.#answered = { sentAt, answeredAt };
    // Those before it are not waited for any more; their answers are stray.
    for (const [tag, beat] of this.#beats) if (beat.sentAt <= sentAt) this.#beats.delete(tag);
    const session = this.#session ?? this.#begin(answeredAt);
    onAnswered(session, { sentAt: sentBootTime, answer });
  }

  #begin(now: number): LinkSession {
    const { onOpened, stream } = this.#parts;
    this.#openedAt = now;
    const session: LinkSession = {
      server: this.#server,
      localAddress: stream.localAddress(),
      send: (message: LinkMessage) => stream.send(message, { signal: NEVER }),
      sendBehind: (message: LinkMessage) => stream.send(message, { signal: NEVER, behind: true }),
      signal: this.#over.signal,
    };
    this.#session = session;
    onOpened(this);
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const message of held) this.#handOn(message);
    return session;
  }

  #handOn(message: ServerMessage): void {
    if (this.#session !== undefined && this.#held === undefined) this.#parts.onMessage(this.#session, message);
    else if ((this.#held?.length ?? 0) < MOST_HELD) this.#held?.push(message);
    else this.#fail(`the server sent ${MOST_HELD} messages before it answered a heartbeat`);
  }

  #fail(problem: string): void {
    this.#failure ??= new AgentError('link.unreachable', { problem });
    this.close();
  }

  #ownTag(): string {
    const tag = this.#parts.newTag();
    this.#parts.ownTags.add(tag, this.#parts.clock.monotonic());
    return tag;
  }
}

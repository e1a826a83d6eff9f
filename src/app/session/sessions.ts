import { tag } from '../../domain/instruction/model.js';
import { type InstructionPolicy, judgeInstruction } from '../../domain/instruction/policy.js';
import type { ServerMessage } from '../../domain/link/model.js';
import { closedFrame, OPEN_STREAM, serverFrame } from '../../domain/session/frames.js';
import { hostOf, MAX_INPUT_BYTES, MAX_SESSIONS, type SessionEnd, type SessionId } from '../../domain/session/model.js';
import type { ReadTarget } from '../../domain/session/schema.js';
import type { AuditLog } from '../../ports/audit/audit-log.js';
import type { Logger } from '../../ports/logger.js';
import type { ServiceDialer } from '../../ports/session/service-dialer.js';
import type { LinkSession, LinkUser } from '../link/link-session.js';
import { LiveSession } from './live-session.js';

export interface SessionsParts {
  readonly dialer: ServiceDialer;
  readonly audit: AuditLog;
  /** What happens while the audit log cannot be written. */
  readonly onAuditFailure: 'refuse' | 'continue';
  /** In force from the next session on. */
  readonly policy: () => InstructionPolicy;
  /** Hex. */
  readonly sha256: (text: string) => string;
  readonly logger: Logger;
}

/** What is counted, since the start. */
export interface SessionCounts {
  readonly opened: number;
  readonly refused: number;
  /** Frames of sessions that are not there. */
  readonly stray: number;
}

/** Who asked for a session, as its two lines in the audit log say it. */
interface Subject {
  readonly who: string;
  readonly tag: string;
  readonly type: string;
  readonly payloadDigest: string;
}

/**
 * Interactive sessions of the control plane with services of this node's cluster. They are beside the instructions: they take none of their
 * slots and are not journalled; each ends with the stream that it came on.
 */
export class Sessions implements LinkUser {
  readonly #parts: SessionsParts;
  readonly #live = new Map<SessionId, LiveSession>();
  #link: LinkSession | undefined;
  #counts: SessionCounts = { opened: 0, refused: 0, stray: 0 };

  constructor(parts: SessionsParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#live.size;
  }

  get counts(): SessionCounts {
    return this.#counts;
  }

  opened(link: LinkSession): void {
    this.#link = link;
  }

  received(link: LinkSession, message: ServerMessage): boolean {
    const frame = serverFrame(message);
    if (frame === undefined) return false;
    const id = tag(message.tag);
    if (id === undefined || link !== this.#link) this.#stray();
    else if (frame.frame === 'open') this.#open(link, id, frame.read, message);
    else {
      const session = this.#live.get(id);
      if (session === undefined) this.#stray();
      else if (frame.frame === 'close') session.close();
      else if (frame.frame === 'resize') {
        if (frame.size !== undefined) session.resize(frame.size);
      } else if (frame.bytes !== undefined) session.input(frame.bytes);
      else session.fail(`STREAM_DATA is no base64, or more than ${MAX_INPUT_BYTES} bytes`);
    }
    return true;
  }

  closed(link: LinkSession): void {
    if (this.#link !== link) return;
    this.#link = undefined;
    for (const session of [...this.#live.values()]) session.abandon();
  }

  #open(link: LinkSession, id: SessionId, read: ReadTarget, message: ServerMessage): void {
    const { dialer, policy } = this.#parts;
    const subject = this.#subjectOf(link, message, read);
    const verdict = judgeInstruction(policy(), OPEN_STREAM, undefined);
    const problem = this.#problem(id, read) ?? (verdict.allowed ? undefined : `DENIED: ${verdict.rule}`);
    if (!read.ok || problem !== undefined) {
      this.#counts = { ...this.#counts, refused: this.#counts.refused + 1 };
      void this.#record(subject, verdict.rule, 'decision', 'refused');
      void this.#record(subject, verdict.rule, 'outcome', 'refused');
      void link.sendBehind(closedFrame(id, { reason: problem ?? '', error: true }));
      return;
    }
    const session = new LiveSession({
      ...{ id, link, dialer, target: read.target },
      admitted: () => this.#admitted(subject, verdict.rule),
      onClosed: (ended, end) => this.#closed(ended, subject, verdict.rule, end),
    });
    this.#counts = { ...this.#counts, opened: this.#counts.opened + 1 };
    this.#live.set(id, session);
    session.start();
  }

  #problem(id: SessionId, read: ReadTarget): string | undefined {
    if (!read.ok) return `INVALID: OPEN_STREAM: ${read.problem}`;
    if (this.#live.has(id)) return 'DUPLICATE: a session of this id is open';
    return this.#live.size >= MAX_SESSIONS ? `TOO_MANY: ${MAX_SESSIONS} sessions are open` : undefined;
  }

  /** The decision is on the disk before anything is dialled (engine.md H1, H3). */
  async #admitted(subject: Subject, rule: string): Promise<string | undefined> {
    const failure = await this.#record(subject, rule, 'decision', 'allowed');
    return failure === undefined || this.#parts.onAuditFailure === 'continue' ? undefined : `NOT_AUDITED: ${failure}`;
  }

  /** Another session may have taken its id since. */
  #closed(session: LiveSession, subject: Subject, rule: string, { error, reason }: SessionEnd): void {
    if (this.#live.get(session.id) === session) this.#live.delete(session.id);
    this.#parts.logger.info('a session has ended', { tag: subject.tag, service: subject.type, reason, error });
    void this.#record(subject, rule, 'outcome', error ? 'failed' : 'done');
  }

  #subjectOf({ server }: LinkSession, { tag, jsonB64, epoch }: ServerMessage, read: ReadTarget): Subject {
    const who = server === undefined ? 'server:older' : `server:${server.server}@${epoch ?? server.epoch}`;
    const service = read.ok ? ` ${hostOf(read.target)}:${read.target.port}` : '';
    return { who, tag, type: `${OPEN_STREAM}${service}`, payloadDigest: this.#parts.sha256(jsonB64) };
  }

  /** Why it is not written; undefined when it is. */
  async #record(subject: Subject, rule: string, line: 'decision' | 'outcome', result: string): Promise<string | undefined> {
    try {
      await this.#parts.audit.append({ ...subject, rule, line, result }, { signal: NEVER });
      return undefined;
    } catch (error) {
      this.#parts.logger.warn('a line of the audit log is missing', { tag: subject.tag, line, error });
      return error instanceof Error ? error.message : String(error);
    }
  }

  #stray(): void {
    this.#counts = { ...this.#counts, stray: this.#counts.stray + 1 };
  }
}

const NEVER = new AbortController().signal;

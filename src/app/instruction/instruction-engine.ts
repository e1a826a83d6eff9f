import { isSecret, kindOf } from '../../domain/instruction/catalogue.js';
import type { Reading } from '../../domain/instruction/kinds/kind.js';
import {
  type Answer,
  errorAnswer,
  type InstructionKey,
  keyText,
  NO_CONTENT,
  type Tag,
  tag,
} from '../../domain/instruction/model.js';
import type { InstructionPolicy } from '../../domain/instruction/policy.js';
import type { ScriptSources } from '../../domain/instruction/script.js';
import { isForeignType, isReplyType, OwnTags } from '../../domain/instruction/unanswered.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Epoch, ServerMessage } from '../../domain/link/model.js';
import type { AuditLog } from '../../ports/audit/audit-log.js';
import type { Clock } from '../../ports/clock.js';
import type { InstructionMemory, InstructionSnapshot } from '../../ports/driving/instruction-memory.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { Journal, JournalChange, StoredReply } from '../../ports/instruction/journal.js';
import type { ServiceManager } from '../../ports/instruction/service-manager.js';
import type { TaskRunner } from '../../ports/instruction/task-runner.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import type { WebClient } from '../../ports/outbound/web-client.js';
import type { Subsystem } from '../agent/subsystem.js';
import type { LinkSession, LinkUser } from '../link/link-session.js';
import { AuditTrail, type OnAuditFailure } from './audit-trail.js';
import { type CapabilityEffects, Effects } from './effects.js';
import { encodeAnswer, replyBytes } from './encode.js';
import { Housekeeping } from './housekeeping.js';
import { Intake } from './intake.js';
import { decodePayload } from './payload.js';
import { RecentReads } from './reads.js';
import { Recovery } from './recovery.js';
import { readRequest } from './request.js';
import { Results, type UploadReply } from './results.js';
import { ScriptEffect } from './script-effect.js';
import { taskIdOf } from './task-id.js';
import { type Ended, type Item, type Records, Workbench } from './workbench.js';

/** For a result whose effect ends this process (engine.md A16b). */
const CONFIRM_MS = 5_000;
const MAX_CANCEL_BYTES = 4_096;

export interface InstructionEngineParts {
  readonly journal: Journal;
  readonly audit: AuditLog;
  readonly tasks: TaskRunner;
  readonly web: WebClient;
  readonly services: ServiceManager;
  /** Of replies over 256 KiB, to servers that take them so. */
  readonly upload: UploadReply;
  readonly clock: Clock;
  /** Milliseconds since the machine started, counting while it sleeps. */
  readonly bootTime: () => number;
  readonly logger: Logger;
  /** In force from the next instruction on. */
  readonly policy: () => InstructionPolicy;
  readonly onAuditFailure: OnAuditFailure;
  readonly nodeIsReady: () => boolean;
  /** Hex. */
  readonly sha256: (data: string | Uint8Array) => string;
  /** Boot id of the kernel. */
  readonly boot: string;
  /** SHA-256 of the root that servers are verified with: it stands for the fleet of those that do not name it. */
  readonly rootFingerprint: () => string;
  readonly sources: () => ScriptSources;
  /** The whole environment of a script. */
  readonly scriptEnv: Readonly<Record<string, string>>;
  readonly effects: CapabilityEffects;
  readonly reading: Reading;
}

/** From "a message arrived" to "its reply is confirmed": each instruction takes effect once. */
export class InstructionEngine implements LinkUser, Subsystem, ProblemSource, InstructionMemory {
  readonly name = 'instructions';
  readonly #parts: InstructionEngineParts;
  readonly #results: Results;
  readonly #workbench: Workbench;
  readonly #intake: Intake;
  readonly #recovery: Recovery;
  readonly #trail: AuditTrail;
  readonly #housekeeping: Housekeeping;
  readonly #reads = new RecentReads();
  readonly #ownTags = new OwnTags();
  readonly #epochs = new Map<string, Epoch>();
  readonly #counts = new Map<string, number>();
  readonly #stop = new AbortController();
  #current: { readonly session: LinkSession; readonly fleet: string } | undefined;
  #beginning: Promise<void> | undefined;
  #keeping: Promise<void> | undefined;
  #trouble: StatusProblem | undefined;

  constructor(parts: InstructionEngineParts) {
    const { journal, audit, tasks, web, services, clock, bootTime, logger, sha256, nodeIsReady, boot } = parts;
    const records: Records = {
      save: (item) => this.#save(item),
      finished: (item, ended) => this.#finished(item, ended),
    };
    const scripts = new ScriptEffect({ web, tasks, clock, sha256, sources: parts.sources, env: parts.scriptEnv });
    const effects = new Effects({ ...parts.effects, web, services, scripts, nodeIsReady });
    const shared = { journal, tasks, clock, bootTime, logger, records, effects, sha256, boot, reading: parts.reading };
    this.#parts = parts;
    this.#results = new Results({ ...shared, upload: parts.upload });
    this.#workbench = new Workbench(shared);
    this.#trail = new AuditTrail({ audit, logger, onFailure: parts.onAuditFailure });
    const both = { ...shared, results: this.#results, workbench: this.#workbench };
    this.#recovery = new Recovery(both);
    const recovered = () => this.#begun();
    this.#housekeeping = new Housekeeping({ ...both, recovered });
    this.#intake = new Intake({ ...both, trail: this.#trail, reads: this.#reads, recovered });
  }

  /** Without a journal it starts as well: reads are answered, what has effects is refused. @throws AgentError `journal.newer_schema`, `agent.data_dir_locked` */
  async start(): Promise<void> {
    try {
      await this.#begun();
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'journal.unavailable') throw error;
    }
    this.#keeping = this.#housekeeping.run(this.#stop.signal);
  }

  async ready(): Promise<void> {}

  /** Programs that run go on and are adopted by the next process. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#disconnect();
    await this.#intake.idle();
    await this.#workbench.stop();
    await this.#keeping;
    await this.#parts.journal.close();
  }

  opened(session: LinkSession): void {
    const { server } = session;
    const fleet = server?.fleet ?? this.#parts.rootFingerprint();
    this.#current = { session, fleet };
    if (server !== undefined) this.#noteEpoch(fleet, server.epoch);
    this.#results.opened(session, fleet);
    this.#intake.settle(fleet, server?.capabilities.has('redeliver') ?? false);
  }

  received(session: LinkSession, message: ServerMessage): boolean {
    if (isForeignType(message.type)) return false;
    const current = this.#current;
    if (current === undefined || current.session !== session) this.#count('stale');
    else this.#receive(current.session, current.fleet, message);
    return true;
  }

  closed(session: LinkSession): void {
    if (this.#current?.session === session) this.#disconnect();
  }

  /** A tag that this agent has made: what comes back under it is never answered. */
  ownTag(own: string): void {
    this.#ownTags.add(own, this.#parts.clock.monotonic());
  }

  problems(): readonly StatusProblem[] {
    return [...this.#parts.journal.problems(), ...(this.#trouble === undefined ? [] : [this.#trouble])];
  }

  snapshot(): InstructionSnapshot {
    const items = this.#workbench.list().map(({ item: { row }, waitsFor }) => ({ row, waitsFor }));
    const kept = this.#results.rows().map((row) => ({ row, waitsFor: undefined }));
    return {
      journal: this.#parts.journal.facts(),
      ...this.#workbench.counts,
      unconfirmed: this.#results.unconfirmed,
      counts: { ...Object.fromEntries(this.#counts), audit_missing: this.#trail.missing },
      instructions: [...items, ...kept].map(({ row, waitsFor }) => ({
        ...{ tag: row.tag, type: row.type, state: row.state, attempt: row.attempt, outcome: row.outcome },
        ...{ receivedAt: row.receivedAt, finishedAt: row.finishedAt, waitsFor },
      })),
    };
  }

  #disconnect(): void {
    this.#current = undefined;
    this.#results.closed();
  }

  #receive(session: LinkSession, fleet: string, message: ServerMessage): void {
    const own = tag(message.tag);
    const what = own === undefined ? 'bad_tag' : this.#classify(session, { fleet, tag: own }, message);
    this.#count(what);
    if (own === undefined || what !== 'received') return;
    const { clock, bootTime, policy, sha256, reading } = this.#parts;
    const key: InstructionKey = { fleet, tag: own };
    const epoch = message.epoch ?? session.server?.epoch;
    const who = session.server === undefined ? 'server:older' : `server:${session.server.server}@${epoch}`;
    const times = { receivedAt: clock.now(), receivedMonotonic: clock.monotonic(), receivedBootTime: bootTime() };
    const request = readRequest(message, { key, who, epoch, session, policy: policy(), sha256, reading, ...times });
    if (request !== undefined) this.#intake.accept(request);
    else this.#special(message, key, who);
  }

  /** `received`: an instruction; everything else is only counted, and never answered (engine.md B3, C1, C2). */
  #classify(session: LinkSession, key: InstructionKey, { type, epoch }: ServerMessage): string {
    if (type === 'RESULT_ACK') return this.#results.acked(key) ? 'acked' : 'ack_of_nothing';
    if (isReplyType(type) || this.#ownTags.has(key.tag, this.#parts.clock.monotonic())) return 'unanswered';
    return this.#isFenced(key.fleet, epoch ?? session.server?.epoch) ? 'fenced' : 'received';
  }

  /** What is in no catalogue: it is not journalled, since it has no effect of its own or may be had twice. */
  #special({ type, jsonB64 }: ServerMessage, key: InstructionKey, who: string): void {
    const subject = { who, tag: key.tag, type, payloadDigest: this.#parts.sha256(jsonB64) };
    const target = type === 'CANCEL' ? cancelTarget(jsonB64) : undefined;
    if (target === undefined) {
      const text = type === 'CANCEL' ? 'INVALID: CANCEL: expected {"tag": …}' : `UNKNOWN_TYPE: this agent knows no ${type}`;
      void this.#trail.decision(subject, 'catalogue', 'refused');
      void this.#trail.outcome(subject, 'catalogue', 'refused');
      this.#say(key, errorAnswer(text));
      return;
    }
    void this.#trail.decision(subject, 'catalogue', 'allowed');
    this.#intake.enqueue(async () => {
      await this.#workbench.cancel(keyText({ fleet: key.fleet, tag: target }));
      await this.#trail.outcome(subject, 'catalogue', 'done');
      this.#say(key, NO_CONTENT);
    });
  }

  #say(key: InstructionKey, answer: Answer): void {
    this.#results.say(key, encodeAnswer(answer));
  }

  /** Instructions of an older stream's server are not carried out (engine.md B3). */
  #isFenced(fleet: string, epoch: Epoch | undefined): boolean {
    if (epoch === undefined) return false;
    const highest = this.#epochs.get(fleet);
    if (highest !== undefined && epoch < highest) return true;
    this.#noteEpoch(fleet, epoch);
    return false;
  }

  #noteEpoch(fleet: string, epoch: Epoch): void {
    const highest = this.#epochs.get(fleet);
    if (highest !== undefined && epoch <= highest) return;
    this.#epochs.set(fleet, epoch);
    // With whatever is committed next to it; lost, it fences less.
    this.#parts.journal.commit([{ change: 'epoch', fleet, epoch }], { signal: NEVER }).catch((error: unknown) => {
      this.#parts.logger.warn('the epoch of the stream is not journalled', { error });
    });
  }

  async #save({ row }: Item): Promise<void> {
    await this.#parts.journal.commit([{ change: 'row', row }], { signal: NEVER });
  }

  /** The third commit, and the reply after it (engine.md A1, A3). */
  async #finished(item: Item, { outcome, result }: Ended): Promise<void> {
    const { row, rule, scheduling } = item;
    const said = encodeAnswer(result.answer);
    const prompt = kindOf(row.type)?.replyWithinMs;
    // What is of use at once or never is kept as silence: nobody gets it again (engine.md A18).
    const reply = prompt === undefined ? said : 'none';
    this.#count(`finished_${outcome}`);
    const key = { fleet: row.fleet, tag: row.tag };
    if (scheduling.repeat === 'read') {
      this.#reads.answered(keyText(key), said);
      void this.#trail.outcome(row, rule, outcome);
      this.#results.say(key, said, prompt === undefined ? undefined : item.received?.session);
      return;
    }
    const changes: readonly JournalChange[] = [
      { change: 'row', row },
      { change: 'payload', key, jsonB64: undefined },
      { change: 'reply', key, reply, secret: isSecret(row.type) },
    ];
    const [written] = await Promise.all([this.#commit(changes), this.#trail.outcome(row, rule, outcome)]);
    const sent = this.#results.add({ row, reply, bytes: replyBytes(reply), unwritten: written ? undefined : changes });
    if (prompt !== undefined) this.#sayPromptly(item, said, prompt);
    if (row.task !== undefined && !row.background) this.#forget(key);
    void this.#afterwards(row, sent, result.afterwards);
  }

  /** On the stream that asked, and in time: a late `ok` names a holder that the server has left (engine.md A8). */
  #sayPromptly({ row, received }: Item, reply: StoredReply, withinMs: number): void {
    if (received === undefined) return;
    const { session, at } = received;
    if (this.#parts.bootTime() - at <= withinMs) this.#results.say({ fleet: row.fleet, tag: row.tag }, reply, session);
  }

  /** False when it is kept in memory until there is room. */
  async #commit(changes: readonly JournalChange[]): Promise<boolean> {
    try {
      await this.#parts.journal.commit(changes, { signal: NEVER });
      return true;
    } catch (error) {
      this.#parts.logger.error('a result is not journalled', { error });
      return false;
    }
  }

  async #afterwards(row: Item['row'], sent: Promise<void>, then: Ended['result']['afterwards']): Promise<void> {
    const { logger, clock } = this.#parts;
    try {
      await sent;
    } catch (error) {
      logger.warn('a reply was not sent', { tag: row.tag, error });
    }
    if (then === undefined) return;
    try {
      await this.#results.confirmed(row, CONFIRM_MS, this.#stop.signal);
      await then({ signal: NEVER });
    } catch (error) {
      logger.error('what was promised in a reply failed', { tag: row.tag, type: row.type, error });
      const reason = `${row.type} was acknowledged and failed: ${error instanceof Error ? error.message : String(error)}`;
      const remedy = error instanceof AgentError ? error.remedy : 'look into the log of the daemon';
      this.#trouble = { subject: this.name, reason, since: clock.now(), remedy };
    }
  }

  /** One attempt for all who wait; the next one begins when it has failed. */
  #begun(): Promise<void> {
    this.#beginning ??= this.#begin().catch((error: unknown) => {
      this.#beginning = undefined;
      throw error;
    });
    return this.#beginning;
  }

  async #begin(): Promise<void> {
    const options = { signal: this.#stop.signal };
    const opened = await this.#parts.journal.open(options);
    for (const [fleet, epoch] of opened.epochs) {
      const seen = this.#epochs.get(fleet);
      if (seen === undefined || seen < epoch) this.#epochs.set(fleet, epoch);
    }
    this.#intake.restore(await this.#recovery.run(opened, options));
  }

  #forget(key: InstructionKey): void {
    const { tasks, sha256, logger } = this.#parts;
    tasks.forget(taskIdOf(key, sha256), { signal: NEVER }).catch((error: unknown) => {
      logger.debug('the folder of a task stays for now', { tag: key.tag, error });
    });
  }

  #count(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }
}

/** Whose end is asked for; undefined when the payload does not say. */
function cancelTarget(jsonB64: string): Tag | undefined {
  const decoded = decodePayload(jsonB64, { type: 'CANCEL', mayBeEmpty: false, maxPayloadBytes: MAX_CANCEL_BYTES });
  if ('problem' in decoded) return undefined;
  const { json } = decoded;
  if (typeof json !== 'object' || json === null || !('tag' in json) || typeof json.tag !== 'string') return undefined;
  return tag(json.tag);
}

const NEVER = new AbortController().signal;

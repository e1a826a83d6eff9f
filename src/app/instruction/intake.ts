import type { Work } from '../../domain/instruction/kinds/kind.js';
import { type Answer, errorAnswer, type InstructionKey, keyText, type RepeatClass } from '../../domain/instruction/model.js';
import { replay } from '../../domain/instruction/replay.js';
import { NOT_STARTED_TEXT } from '../../domain/instruction/restart.js';
import { finishedRow, type Row } from '../../domain/instruction/row.js';
import type { Clock } from '../../ports/clock.js';
import type { Journal, JournalChange, JournalEntry } from '../../ports/instruction/journal.js';
import type { Logger } from '../../ports/logger.js';
import { messageOf } from '../agent/managed-subsystem.js';
import type { AuditTrail } from './audit-trail.js';
import type { Effects } from './effects.js';
import { encodeAnswer, replyBytes } from './encode.js';
import { itemOf, neverRun, restoredItem, rowOf } from './items.js';
import type { RecentReads } from './reads.js';
import { isRead, isRefusal, type Refusal, type Request } from './request.js';
import { keyOf, type Results } from './results.js';
import { JOURNAL_UNAVAILABLE, type Records, type Workbench } from './workbench.js';

export interface IntakeParts {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly trail: AuditTrail;
  readonly reads: RecentReads;
  readonly results: Results;
  readonly workbench: Workbench;
  readonly records: Records;
  readonly effects: Effects;
  readonly boot: string;
  readonly sha256: (text: string) => string;
  /** Resolves when what an earlier process has left is known. @throws AgentError `journal.unavailable` */
  readonly recovered: () => Promise<void>;
}

type Entry = { readonly do: 'take'; readonly request: Request } | { readonly do: 'call'; readonly run: () => Promise<void> };

interface Known {
  readonly row: Row;
  readonly hasReply: boolean;
}

/** On their way into the journal: more than a slow disk leaves behind, and less than would fill the memory. */
export const MOST_ENTERING = 1_000;
const MOST_ENTERING_BYTES = 64 * 1024 * 1024;

/** Payloads are kept for those that may run once more. */
const REPEATABLE: ReadonlySet<RepeatClass> = new Set<RepeatClass>(['repeat', 'probe']);

/**
 * The way into the queue, in the order of arrival. Reads go in at once; of everything else those that wait together are looked up and made
 * durable together (engine.md A1, A2), with the lines of the audit log beside them (A3).
 */
export class Intake {
  readonly #parts: IntakeParts;
  #queue: Entry[] = [];
  #bytes = 0;
  #draining: Promise<void> | undefined;
  /** Of an earlier process, without effect: as good as never seen, but for the use of their tags (engine.md A6). */
  #unstarted = new Map<string, Row>();

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  /** What an earlier process had not begun. */
  restore(unstarted: ReadonlyMap<string, Row>): void {
    this.#unstarted = new Map(unstarted);
  }

  accept(request: Request): void {
    if (isRead(request)) this.#read(request);
    else if (this.#queue.length >= MOST_ENTERING || this.#bytes + request.jsonB64.length > MOST_ENTERING_BYTES) {
      const text = `QUEUE_FULL: the journal, ${this.#queue.length} waiting`;
      void this.#parts.trail.outcome(rowOf(request, this.#parts), request.rule, 'refused');
      this.#say(request.key, request.kind.failure(text));
    } else {
      this.#bytes += request.jsonB64.length;
      this.#enter({ do: 'take', request });
    }
  }

  /** After everything that has arrived so far. */
  enqueue(run: () => Promise<void>): void {
    this.#enter({ do: 'call', run });
  }

  /** Of those that were not begun: a server that delivers again will do so, another one is told (engine.md A6). */
  settle(fleet: string, redelivers: boolean): void {
    this.enqueue(async () => {
      await this.#parts.recovered();
      const rows = [...this.#unstarted.values()].filter((row) => row.fleet === fleet);
      if (redelivers) await this.#commit(rows.map((row) => ({ change: 'remove', key: keyOf(row) })));
      for (const row of rows) this.#unstarted.delete(keyText(row));
      if (!redelivers) for (const row of rows) await this.#refuse(row, NOT_STARTED_TEXT);
    });
  }

  /** Everything that has arrived has been taken in. */
  async idle(): Promise<void> {
    await this.#draining;
  }

  #enter(entry: Entry): void {
    this.#queue.push(entry);
    this.#draining ??= this.#drain();
  }

  async #drain(): Promise<void> {
    // What arrives in one turn of the event loop shares its commits.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#queue.length > 0) {
      const requests = this.#takeRequests();
      try {
        if (requests.length > 0) await this.#take(requests);
        else await this.#next()?.run();
      } catch (error) {
        this.#unavailable(requests, error);
      }
    }
    this.#draining = undefined;
  }

  #takeRequests(): readonly Request[] {
    const end = this.#queue.findIndex((entry) => entry.do === 'call');
    const taken = this.#queue.splice(0, end < 0 ? this.#queue.length : end);
    const requests = taken.flatMap((entry) => (entry.do === 'take' ? entry.request : []));
    for (const { jsonB64 } of requests) this.#bytes -= jsonB64.length;
    return requests;
  }

  #next(): { run(): Promise<void> } | undefined {
    const entry = this.#queue.shift();
    return entry?.do === 'call' ? entry : undefined;
  }

  #read(request: Request): void {
    const { reads, trail, workbench, effects } = this.#parts;
    const repeat = reads.enter(request);
    const row = rowOf(request, this.#parts);
    void trail.decision(row, request.rule, repeat.kind === 'new' ? decisionOf(request) : repeat.kind);
    if (repeat.kind === 'answer') this.#parts.results.say(request.key, repeat.reply);
    else if (repeat.kind === 'reused') this.#say(request.key, errorAnswer(reusedText(request)));
    else if (repeat.kind === 'new' && !isRefusal(request.work)) workbench.add(itemOf(request, request.work, row, effects));
    else if (repeat.kind === 'new' && isRefusal(request.work)) this.#refuseRead(request, request.work, row);
  }

  #refuseRead({ key, kind, rule }: Request, { text }: Refusal, row: Row): void {
    const answer = kind.failure(text);
    this.#parts.reads.answered(keyText(key), encodeAnswer(answer));
    void this.#parts.trail.outcome(row, rule, 'refused');
    this.#say(key, answer);
  }

  async #take(requests: readonly Request[]): Promise<void> {
    await this.#parts.recovered();
    const known = await this.#lookUp(requests);
    const fresh = new Map<string, { readonly request: Request; readonly row: Row }>();
    for (const [place, request] of requests.entries()) {
      const id = keyText(request.key);
      const twin = fresh.get(id);
      const entry = twin === undefined ? this.#known(id, request, known[place]) : { row: twin.row, hasReply: false };
      if (entry === undefined) fresh.set(id, { request, row: rowOf(request, this.#parts) });
      else this.#repeat(request, entry);
    }
    await this.#receive([...fresh.values()]);
  }

  async #lookUp(requests: readonly Request[]): Promise<readonly (JournalEntry | undefined)[]> {
    return this.#parts.journal.find(
      requests.map(({ key }) => key),
      { signal: NEVER },
    );
  }

  /** What memory knows of it goes before what the journal says: its last steps may still be on their way there. */
  #known(id: string, { digest }: Request, stored: JournalEntry | undefined): Known | undefined {
    if (this.#unstarted.get(id)?.digest === digest) {
      this.#unstarted.delete(id);
      return undefined;
    }
    const item = this.#parts.workbench.item(id);
    if (item !== undefined) return { row: item.row, hasReply: true };
    const kept = this.#parts.results.row(id);
    if (kept !== undefined) return { row: kept, hasReply: true };
    return stored;
  }

  #repeat(request: Request, { row, hasReply }: Known): void {
    const { trail, results } = this.#parts;
    const found = replay(row, request.digest, hasReply, (ms) => new Date(ms).toISOString());
    const subject = { ...row, who: request.who, payloadDigest: request.payloadDigest };
    void trail.decision(subject, found.kind === 'refuse' ? found.rule : 'repeat', found.kind);
    if (found.kind === 'answer') void results.again(keyText(request.key), request.receivedMonotonic);
    if (found.kind === 'refuse') this.#say(request.key, request.kind.failure(found.text));
  }

  /** The first commit; then each waits for its turn, in this order. */
  async #receive(fresh: readonly { readonly request: Request; readonly row: Row }[]): Promise<void> {
    if (fresh.length === 0) return;
    const { workbench, results, effects, clock } = this.#parts;
    const entering = fresh.map(({ request, row }) => ({ request, ...entered(request, row, clock.now()) }));
    const decisions = entering.map(({ request, row }) => this.#decide(request, row));
    try {
      await this.#commit(entering.flatMap(({ changes }) => changes));
    } catch (error) {
      await Promise.all(decisions);
      const requests = fresh.map(({ request }) => request);
      return this.#unavailable(requests, error);
    }
    const problems = await Promise.all(decisions);
    for (const [place, { request, row, reply }] of entering.entries()) {
      const problem = problems[place];
      if (reply !== undefined) void results.add({ row, reply, bytes: replyBytes(reply) });
      else if (problem !== undefined) void this.#refuse(row, `AUDIT_UNAVAILABLE: ${problem}; nothing was done`);
      else if (!isRefusal(request.work)) workbench.add(itemOf(request, request.work, row, effects));
    }
  }

  async #decide(request: Request, row: Row): Promise<string | undefined> {
    const { trail } = this.#parts;
    const decision = trail.decision(row, request.rule, decisionOf(request));
    if (isRefusal(request.work)) void trail.outcome(row, request.rule, 'refused');
    return decision;
  }

  async #refuse(row: Row, text: string): Promise<void> {
    const { records, clock } = this.#parts;
    const item = restoredItem(finishedRow(row, 'refused', clock.now()), neverRun);
    await records.finished(item, { outcome: 'refused', result: { answer: item.failure(text) } });
  }

  /** An answer that is in no journal: lost when its server is gone. */
  #say(key: InstructionKey, answer: Answer): void {
    this.#parts.results.say(key, encodeAnswer(answer));
  }

  #commit(changes: readonly JournalChange[]): Promise<void> {
    return changes.length === 0 ? Promise.resolve() : this.#parts.journal.commit(changes, { signal: NEVER });
  }

  /** Nothing of them is in the journal: each is told so, if it is there to hear it; but for what is done all the same (engine.md K). */
  #unavailable(requests: readonly Request[], error: unknown): void {
    const { logger, trail, workbench, effects } = this.#parts;
    logger.error('instructions are refused: the journal is not available', { instructions: requests.length, error });
    for (const request of requests) {
      if (request.kind.evenUnjournalled === true && !isRefusal(request.work)) {
        const work: Work = { ...request.work, repeat: 'read' };
        workbench.add(itemOf(request, work, rowOf(request, this.#parts), effects));
        continue;
      }
      void trail.outcome(rowOf(request, this.#parts), request.rule, 'refused');
      this.#say(request.key, request.kind.failure(`${JOURNAL_UNAVAILABLE}: ${messageOf(error)}; nothing was done`));
    }
  }
}

interface Entered {
  readonly row: Row;
  readonly changes: readonly JournalChange[];
  /** Of one that is refused at once. */
  readonly reply: ReturnType<typeof encodeAnswer> | undefined;
}

/** A refused one is finished in the same commit. */
function entered({ kind, work, key, jsonB64 }: Request, row: Row, now: number): Entered {
  if (isRefusal(work)) {
    const reply = encodeAnswer(kind.failure(work.text));
    const finished = finishedRow(row, 'refused', now);
    const changes: readonly JournalChange[] = [
      { change: 'row', row: finished },
      { change: 'reply', key, reply },
    ];
    return { row: finished, changes, reply };
  }
  const kept: readonly JournalChange[] = REPEATABLE.has(work.repeat)
    ? [{ change: 'payload', key, jsonB64, secret: kind.secret }]
    : [];
  return { row, changes: [{ change: 'row', row }, ...kept], reply: undefined };
}

function decisionOf({ work }: Request): string {
  return isRefusal(work) ? 'refused' : 'allowed';
}

function reusedText({ kind }: Request): string {
  return `TAG_REUSED: this tag was used for another ${kind.type} before; nothing was done`;
}

const NEVER = new AbortController().signal;

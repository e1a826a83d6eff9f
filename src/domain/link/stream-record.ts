import type { AgentFacts, Epoch, JournalFacts, Nid, RegistrationId } from './model.js';
import { epoch } from './model.js';

/** Keys without a lease: a counter that is gone would start again at 1 (engine.md B2). */
export const streamPrefix = 'epoch/';
export const streamKey = (nid: Nid, registration: RegistrationId) => `${streamPrefix}${nid}/${registration}`;

/** What tells streams of one node apart (engine.md B4). */
export type StreamAgent = Pick<AgentFacts, 'instance' | 'session' | 'boot' | 'hardware'>;

/** Who has the current stream of a registration. The next one raises the epoch. */
export interface StreamRecord {
  readonly epoch: Epoch;
  /** The replica that has it. */
  readonly server: string;
  /** Drawn for each stream, so that whoever lost the answer to a commit knows its own. */
  readonly stream: string;
  /** Wall clock, milliseconds. */
  readonly at: number;
  readonly address: string;
  /** Of the agent's process; undefined for an older agent. */
  readonly instance: string | undefined;
  /** What the agent's process has said of itself; undefined for an older agent, and in what an older server has written. */
  readonly agent: StreamAgent | undefined;
  /** That of the registration's first stream that said it. */
  readonly hardware: string | undefined;
  /** The newest that was announced (engine.md A12). */
  readonly journal: JournalFacts | undefined;
  /** What was delivered on earlier streams than this is not remembered by the node; 0 when it has never lost its journal. */
  readonly forgottenBefore: Epoch;
}

/** A stream that is to be the current one. */
export interface StreamClaim {
  readonly server: string;
  readonly stream: string;
  readonly at: number;
  readonly address: string;
  readonly agent: AgentFacts | undefined;
}

/**
 * The record that makes `claim` the current stream.
 * @param heard what the registration's heartbeats have said last, which is more than it announced when its stream was opened
 */
export function nextStream(
  former: StreamRecord | undefined,
  { agent, ...claim }: StreamClaim,
  heard?: JournalFacts,
): StreamRecord {
  const number = epoch((former?.epoch ?? 0n) + 1n);
  return {
    ...claim,
    epoch: number,
    forgottenBefore: memoryIsGone(former, agent, heard) ? number : (former?.forgottenBefore ?? epoch(0n)),
    instance: agent?.instance,
    agent: agent === undefined ? undefined : streamAgentOf(agent),
    hardware: former?.hardware ?? agent?.hardware,
    journal: agent === undefined ? former?.journal : announced(agent),
  };
}

/** The record when a heartbeat has shown on the stream itself that the memory is gone: what comes next begins without one. */
export function forgetfulStream(record: StreamRecord): StreamRecord {
  return { ...record, forgottenBefore: epoch(record.epoch + 1n) };
}

/** A node opens a stream a second at most: 2^32 of them take 136 years. */
const RESTORE_LEAP = 2n ** 32n;

/** The record in a store that was put back from a copy: above every epoch that the node can have seen since. */
export function restoredStream(record: StreamRecord): StreamRecord {
  return { ...record, epoch: epoch(record.epoch + RESTORE_LEAP) };
}

/**
 * Whether a node remembers nothing of what was delivered to it under the record's journal: the file was lost, or an older copy of it put
 * back (engine.md A12).
 */
export function memoryIsGone(
  former: StreamRecord | undefined,
  agent: AgentFacts | undefined,
  heard: JournalFacts | undefined,
): boolean {
  const now = agent === undefined ? undefined : announced(agent);
  if (former === undefined || now === undefined) return false;
  // A process opens its next stream while it beats on the former one, which may say more by then than it announces here.
  const isRestarted = agent?.instance !== former.instance;
  return isOlder(now, former.journal) || (isRestarted && isOlder(now, heard));
}

/** Whether `now` is of another journal than `kept`, or of an older copy of it. */
export function isOlder(now: JournalFacts, kept: JournalFacts | undefined): boolean {
  return kept !== undefined && (kept.id !== now.id || now.counter < kept.counter);
}

export function streamAgentOf({ instance, session, boot, hardware }: AgentFacts): StreamAgent {
  return { instance, session, boot, hardware };
}

function announced({ capabilities, journal }: AgentFacts): JournalFacts | undefined {
  return capabilities.has('journal') ? journal : undefined;
}

export function encodeStream({ epoch, journal, forgottenBefore, ...rest }: StreamRecord): string {
  const counter = journal === undefined ? undefined : String(journal.counter);
  const numbers = { epoch: String(epoch), forgottenBefore: String(forgottenBefore) };
  return JSON.stringify({ ...rest, ...numbers, journal: journal && { id: journal.id, counter } });
}

/** Of what `encodeStream` made. */
export function decodeStream(text: string): StreamRecord {
  const stored = JSON.parse(text) as Stored;
  const { journal } = stored;
  return {
    ...stored,
    epoch: epoch(BigInt(stored.epoch)),
    forgottenBefore: epoch(BigInt(stored.forgottenBefore)),
    instance: stored.instance,
    agent: stored.agent,
    hardware: stored.hardware,
    journal: journal && { id: journal.id, counter: BigInt(journal.counter) },
  };
}

type Stored = Omit<StreamRecord, 'epoch' | 'forgottenBefore' | 'journal'> & {
  readonly epoch: string;
  readonly forgottenBefore: string;
  readonly journal?: { readonly id: string; readonly counter: string };
};

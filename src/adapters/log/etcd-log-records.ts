import { z } from 'zod';
import { AgentError } from '../../domain/kernel/errors.js';
import { type EntryFacts, type EntryHead, type EntryRecord, parseEntry, readEntryFacts } from '../../domain/log/entry.js';
import {
  digest,
  type LogId,
  type LogKey,
  logId,
  logKey,
  type Revision,
  revision,
  type SnapshotItem,
} from '../../domain/log/model.js';
import { sha256 } from './sha256.js';

/** Where each part of one log stands. */
export class EtcdLogKeys {
  readonly head: string;
  readonly applied: string;
  readonly entries: string;
  readonly values: string;
  readonly stages: string;
  /** Ids that this log had before a rollback was accepted; absent where none was. */
  readonly former: string;

  /** `prefix`: `/holdfast/CLUSTER/log/`. */
  constructor(prefix: string) {
    this.head = `${prefix}head`;
    this.applied = `${prefix}applied`;
    this.entries = `${prefix}entry/`;
    this.values = `${prefix}kv/`;
    this.stages = `${prefix}stage/`;
    this.former = `${prefix}former`;
  }

  /** In the order of revisions. */
  entry(number: bigint): string {
    return `${this.entries}${String(number).padStart(20, '0')}`;
  }

  value(key: LogKey): string {
    return this.values + key;
  }

  stage(id: string): string {
    return `${this.stages}${id}/`;
  }

  chunk(id: string, index: number): string {
    return `${this.stage(id)}${String(index).padStart(4, '0')}`;
  }
}

/** What the head key says. */
export interface HeadRecord {
  readonly logId: LogId;
  readonly last: EntryHead;
  /** Oldest entry that is retained. */
  readonly minimum: Revision;
}

/** The values hold every entry up to `revision`, and the first `changes` changes of the one after it. */
export interface Applied {
  readonly revision: Revision;
  readonly changes: number;
}

/** Content that stands elsewhere, because it is too large for one transaction. */
export interface StageReference {
  readonly id: string;
  readonly chunks: number;
  readonly facts: EntryFacts;
  readonly digest: string;
  readonly size: number;
}

/** `batch` is the id of the proposal that wrote it: the same bytes may have been proposed by two (engine.md E7). */
export type StoredEntry =
  | { readonly batch: string; readonly text: string }
  | { readonly batch: string; readonly stage: StageReference };

const VERSION = 1;
const number = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform((text) => revision(BigInt(text)));
const headSchema = z.tuple([
  z.literal(VERSION),
  z.string().transform(logId),
  number,
  z.string().transform(digest),
  z.number(),
  number,
]);
const appliedSchema = z.tuple([number, z.int().min(0)]);
const formerSchema = z.array(z.string().transform(logId));
const stageSchema = z.object({
  id: z.string(),
  chunks: z.int().min(1),
  version: z.number(),
  revision: number,
  time: z.number(),
  previous: z.string().transform(digest),
  changes: z.number(),
  request: z.string().nullable(),
  digest: z.string().transform(digest),
  size: z.number(),
});

/** What the head says while a control plane is being put back: no server takes a part of it for the whole. */
const UNFINISHED = 'unfinished ';

export function encodeUnfinished(id: string): string {
  return UNFINISHED + id;
}

export function isUnfinished(head: string): boolean {
  return head.startsWith(UNFINISHED);
}

export function encodeHead({ logId, last, minimum }: HeadRecord): string {
  return JSON.stringify([VERSION, logId, String(last.revision), last.digest, last.time, String(minimum)]);
}

/** @throws AgentError `log.corrupt`, `log.newer_schema` */
export function decodeHead(text: string): HeadRecord {
  if (isUnfinished(text))
    throw new AgentError('log.corrupt', {
      problem: 'what is in etcd was put back from a backup, and not to its end',
      remedy: 'run the same `holdfast restore --backup FILE --etcd …` again',
    });
  const version = /^\[(\d{1,9}),/.exec(text)?.[1];
  if (Number(version) > VERSION)
    throw new AgentError('log.newer_schema', {
      problem: `the log in etcd is of version ${version}, this program knows ${VERSION}`,
    });
  const [, id, at, own, time, minimum] = decode(headSchema, text, 'head');
  return { logId: id, last: { revision: at, digest: own, time }, minimum };
}

export function encodeApplied({ revision, changes }: Applied): string {
  return JSON.stringify([String(revision), changes]);
}

/** @throws AgentError `log.corrupt` */
export function decodeApplied(text: string): Applied {
  const [at, changes] = decode(appliedSchema, text, 'applied');
  return { revision: at, changes };
}

export function encodeFormer(ids: readonly LogId[]): string {
  return JSON.stringify(ids);
}

/** @throws AgentError `log.corrupt` */
export function decodeFormer(text: string): readonly LogId[] {
  return decode(formerSchema, text, 'former');
}

export function encodeEntry(entry: StoredEntry): string {
  if ('text' in entry) return `i${entry.batch}\n${entry.text}`;
  const { id, chunks, facts, digest, size } = entry.stage;
  const reference = {
    ...{ id, chunks, digest, size, version: facts.version, revision: String(facts.revision), time: facts.time },
    ...{ previous: facts.previousDigest, changes: facts.changes, request: facts.requestId ?? null },
  };
  return `s${entry.batch}\n${JSON.stringify(reference)}`;
}

/** @throws AgentError `log.corrupt` */
export function decodeEntry(value: string): StoredEntry {
  const end = value.indexOf('\n');
  if (end < 0 || !/^[is]/.test(value)) throw corrupt('an entry is none');
  const [batch, rest] = [value.slice(1, end), value.slice(end + 1)];
  if (value.startsWith('i')) return { batch, text: rest };
  const { id, chunks, digest, size, version, revision, time, previous, changes, request } = decode(stageSchema, rest, 'entry');
  const facts = { version, revision, time, previousDigest: previous, changes, requestId: request ?? undefined };
  return { batch, stage: { id, chunks, digest, size, facts } };
}

/** @throws AgentError `log.corrupt` when the text is not that of entry `place`; `log.newer_schema` */
export function recordOf(text: string, place: Revision): EntryRecord {
  const entry = parseEntry(text, sha256(text));
  if (entry.revision !== place) throw corrupt(`entry ${place} says that it is ${entry.revision}`);
  return { entry, text, size: text.length };
}

/** What can be said of an entry without its changes. @throws as `recordOf` */
export function summaryOf(
  stored: StoredEntry,
  place: Revision,
): { readonly facts: EntryFacts; readonly digest: string; readonly size: number } {
  const summary =
    'text' in stored
      ? { facts: readEntryFacts(stored.text), digest: sha256(stored.text), size: stored.text.length }
      : stored.stage;
  if (summary.facts.revision !== place) throw corrupt(`entry ${place} says that it is ${summary.facts.revision}`);
  return summary;
}

/** Each value carries the revision of its change. */
export function encodeValue(at: Revision, value: string): string {
  return `${at} ${value}`;
}

/** @throws AgentError `log.corrupt` */
export function decodeValue(key: string, stored: string): SnapshotItem {
  const space = stored.indexOf(' ');
  if (!/^\d{1,20} /.test(stored)) throw corrupt(`the value of ${key} carries no revision`);
  return { key: logKey(key), value: stored.slice(space + 1), revision: revision(BigInt(stored.slice(0, space))) };
}

function decode<T>(schema: z.ZodType<T>, text: string, what: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw corrupt(`the ${what} record is none: ${text.slice(0, 80)}`, { cause });
  }
}

/** The remedy of the code is that of the embedded store. */
export function corrupt(problem: string, options?: { readonly cause: unknown }): AgentError {
  const remedy = 'restore etcd from its newest snapshot';
  return new AgentError('log.corrupt', { problem: `the log in etcd is damaged: ${problem}`, remedy }, options);
}

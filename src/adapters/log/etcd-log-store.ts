import { AgentError } from '../../domain/kernel/errors.js';
import type { EntryHead, EntryRecord } from '../../domain/log/entry.js';
import { utf8Length } from '../../domain/log/judge.js';
import {
  type Change,
  type Entry,
  type LogId,
  type LogKey,
  type Revision,
  revision,
  type SnapshotItem,
} from '../../domain/log/model.js';
import type { RetainedEntry } from '../../domain/log/retention.js';
import { RING_ENTRIES, RING_SIZE, type SizedEntry } from '../../domain/log/ring.js';
import { EMPTY_HEAD, type StoredState } from '../../domain/log/state.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { EtcdClient } from '../etcd/etcd-client.js';
import { deleteOp, endOf, exists, putOp, range, rangeOp, rangesOf, writtenAt } from '../etcd/etcd-messages.js';
import type { RangeResponse, RequestOp, TxnResponse } from '../generated/etcd/etcdserverpb/rpc.js';
import type { KeyValue } from '../generated/etcd/mvccpb/kv.js';
import {
  type Applied,
  corrupt,
  decodeApplied,
  decodeEntry,
  decodeFormer,
  decodeHead,
  decodeValue,
  EtcdLogKeys,
  encodeApplied,
  encodeEntry,
  encodeFormer,
  encodeHead,
  encodeValue,
  type HeadRecord,
  recordOf,
  type StageReference,
  type StoredEntry,
  summaryOf,
} from './etcd-log-records.js';
import { sha256 } from './sha256.js';

/** Entries of one answer: at most 1 MiB each, and the receive limit is 80 MiB. */
const TAIL_ENTRIES = 64;
/** Of an entry that is written in one transaction (engine.md E4). */
const INLINE_CHANGES = 100;
const INLINE_BYTES = 1024 * 1024;
/** Of one transaction; etcd refuses 128 operations and 1.5 MiB by default. */
const TXN_OPERATIONS = 124;
const TXN_BYTES = 1_400_000;
const CHUNK_BYTES = 512 * 1024;
/** Of changes that are brought into the values at one time. */
const APPLY_CHANGES = 100;
const LOAD_ATTEMPTS = 10;

export interface TailEntry {
  readonly record: EntryRecord;
  readonly batch: string;
  readonly stage: string | undefined;
}

/** The end of the log from some entry on, as of one moment. */
export interface Tail {
  readonly head: HeadRecord;
  /** etcd's revision of the head key: what the next proposal compares. */
  readonly version: bigint;
  readonly applied: Applied;
  /** The first of them; more when they do not reach the head. */
  readonly entries: readonly TailEntry[];
}

export interface LoadedLog extends Pick<Tail, 'head' | 'version' | 'applied'> {
  readonly state: StoredState;
  /** Which retained entry needs which stage. */
  readonly stages: ReadonlyMap<string, Revision>;
}

/** Drafted entries that are written together. */
export interface EtcdBatch {
  readonly id: string;
  readonly logId: LogId;
  readonly previous: EntryHead;
  /** As in `Tail`, when `previous` was the head. */
  readonly version: bigint;
  readonly applied: Applied;
  readonly records: readonly EntryRecord[];
  readonly minimum: Revision;
}

export type EtcdCommit =
  | { readonly outcome: 'committed'; readonly tail: Tail }
  /** Somebody else was first, or this was not the first attempt; from the batch's first revision on. */
  | { readonly outcome: 'overtaken'; readonly tail: Tail };

/** The log's keys in etcd, and the transactions on them (engine.md E1, E4, E5). Every read is linearisable. */
export class EtcdLogStore {
  readonly #client: EtcdClient;
  readonly #keys: EtcdLogKeys;

  constructor(client: EtcdClient, prefix: string) {
    this.#client = client;
    this.#keys = new EtcdLogKeys(prefix);
  }

  /** What a watch has to look at, to be told of each commit. */
  get headKey(): string {
    return this.#keys.head;
  }

  /** Makes the log with this id unless there is one. @throws AgentError `store.unavailable`, `store.outcome_unknown` */
  async create(id: LogId, options: CallOptions): Promise<void> {
    const head = encodeHead({ logId: id, last: EMPTY_HEAD, minimum: revision(1n) });
    const applied = encodeApplied({ revision: EMPTY_HEAD.revision, changes: 0 });
    const success = [putOp(this.#keys.head, head), putOp(this.#keys.applied, applied)];
    await this.#client.txn({ compare: [writtenAt(this.#keys.head, 0n)], success, failure: [] }, options);
  }

  /** Ids that this log had before rollbacks were accepted. @throws AgentError `store.unavailable`, `log.corrupt` */
  async former(options: CallOptions): Promise<readonly LogId[]> {
    const [kv] = (await this.#client.range(range(this.#keys.former), options))?.kvs ?? [];
    return kv === undefined ? [] : decodeFormer(kv.value.toString());
  }

  /**
   * Gives the log another id, unless its head has changed since it was read at `version`: no cursor of before leads on. Machines that
   * have seen it under one of `former` take it as it is.
   * @returns whether it was done
   * @throws AgentError `store.unavailable`, `store.outcome_unknown`
   */
  async rename(
    { head, version }: Pick<Tail, 'head' | 'version'>,
    id: LogId,
    former: readonly LogId[],
    options: CallOptions,
  ): Promise<boolean> {
    const success = [putOp(this.#keys.head, encodeHead({ ...head, logId: id })), putOp(this.#keys.former, encodeFormer(former))];
    const { succeeded } = await this.#client.txn(
      { compare: [writtenAt(this.#keys.head, version)], success, failure: [] },
      options,
    );
    return succeeded;
  }

  /**
   * Everything, as of one of etcd's revisions.
   * @throws AgentError `store.unavailable`, `log.corrupt`, `log.newer_schema`
   */
  async load(options: CallOptions): Promise<LoadedLog> {
    for (let attempt = 0; attempt < LOAD_ATTEMPTS; attempt += 1) {
      const loaded = await this.#load(options);
      if (loaded !== undefined) return loaded;
    }
    throw new AgentError('store.unavailable', { problem: 'etcd: compacted faster than a snapshot is read' });
  }

  /** The end of the log from `first` on. @throws AgentError `store.unavailable`, `log.corrupt`, `log.newer_schema` */
  async tail(first: Revision, options: CallOptions): Promise<Tail> {
    const response = await this.#client.read({ compare: [], success: this.#tailOps(first), failure: [] }, options);
    return this.#tailOf(response, options);
  }

  /** Entries of a batch that are too large for one transaction, put where the commit refers to them. */
  async stage({ id, records }: Pick<EtcdBatch, 'id' | 'records'>, options: CallOptions): Promise<readonly StoredEntry[]> {
    let inline = 0;
    const stored: StoredEntry[] = [];
    for (const { entry, text } of records) {
      const bytes = Buffer.byteLength(text);
      const fits = entry.changes.length <= INLINE_CHANGES && bytes <= INLINE_BYTES && inline + bytes <= TXN_BYTES;
      if (fits) inline += bytes;
      stored.push({
        batch: id,
        ...(fits ? { text } : { stage: await this.#stage(`${id}-${entry.revision}`, entry, text, options) }),
      });
    }
    return stored;
  }

  /**
   * One transaction, which does nothing unless the head is still the one that the batch follows. Repeated with the same arguments it does
   * it once (engine.md E7).
   * @throws AgentError `store.unavailable` (this attempt certainly did nothing), `store.outcome_unknown`, `store.too_large`
   */
  async commit(
    batch: EtcdBatch,
    stored: readonly StoredEntry[],
    options: CallOptions & { readonly withinMs?: number },
  ): Promise<EtcdCommit> {
    const { logId, previous, records, minimum } = batch;
    const last = records.at(-1)?.entry ?? previous;
    const head = { logId, last, minimum };
    const values = this.#valueOps(batch, stored);
    const applied = values === undefined ? batch.applied : { revision: last.revision, changes: 0 };
    const success = [
      putOp(this.#keys.head, encodeHead(head)),
      ...records.map(({ entry }, i) => putOp(this.#keys.entry(entry.revision), encodeEntry(at(stored, i)))),
      ...(values ?? []),
      ...(values === undefined ? [] : [putOp(this.#keys.applied, encodeApplied(applied))]),
      deleteOp(this.#keys.entry(0n), Buffer.from(this.#keys.entry(minimum))),
    ];
    const stages = stored.flatMap((entry) => ('stage' in entry ? [exists(this.#keys.chunk(entry.stage.id, 0))] : []));
    const compare = [writtenAt(this.#keys.head, batch.version), ...stages];
    const failure = this.#tailOps(revision(previous.revision + 1n));
    const response = await this.#client.txn({ compare, success, failure }, options);
    if (!response.succeeded) return { outcome: 'overtaken', tail: await this.#tailOf(response, options) };
    const entries = records.map((record, i) => ({ record, batch: batch.id, stage: stageOf(at(stored, i)) }));
    return { outcome: 'committed', tail: { head, version: response.header?.revision ?? 0n, applied, entries } };
  }

  /** Some entries from `first` on. @throws AgentError `log.corrupt`, `store.unavailable` */
  async read(first: Revision, options: CallOptions): Promise<readonly Entry[]> {
    return (await this.records(first, options)).map(({ entry }) => entry);
  }

  /** As `read`, with their texts. */
  async records(first: Revision, options: CallOptions): Promise<readonly EntryRecord[]> {
    const end = endOf(this.#keys.entries);
    const found = await this.#client.range(range(this.#keys.entry(first), { end, limit: TAIL_ENTRIES }), options);
    return (await this.#entries(found, options)).map(({ record }) => record);
  }

  /**
   * Brings one more part of `entry`, which follows `applied.revision`, into the values. Undefined: another replica was first.
   * @throws AgentError `store.unavailable`, `store.outcome_unknown`
   */
  async apply(entry: Entry, { applied, version }: AppliedPlace, options: CallOptions): Promise<AppliedPlace | undefined> {
    const part: Change[] = [];
    let bytes = 0;
    for (const change of entry.changes.slice(applied.changes, applied.changes + APPLY_CHANGES)) {
      bytes += change.key.length + utf8Length(change.value ?? '');
      if (part.length > 0 && bytes > INLINE_BYTES) break;
      part.push(change);
    }
    const done = applied.changes + part.length;
    const next = done < entry.changes.length ? { ...applied, changes: done } : { revision: entry.revision, changes: 0 };
    const success = [
      ...part.map((change) => this.#valueOp(change, entry.revision)),
      putOp(this.#keys.applied, encodeApplied(next)),
    ];
    const compare = [writtenAt(this.#keys.applied, version)];
    const { succeeded, header } = await this.#client.txn({ compare, success, failure: [] }, options);
    return succeeded ? { applied: next, version: header?.revision ?? 0n } : undefined;
  }

  /** @throws AgentError `store.unavailable`, `log.corrupt` */
  async applied(options: CallOptions): Promise<AppliedPlace> {
    const [kv] = (await this.#client.range(range(this.#keys.applied), options))?.kvs ?? [];
    if (kv === undefined) throw missing('applied');
    return { applied: decodeApplied(kv.value.toString()), version: kv.modRevision };
  }

  /** Ids of all stages that there are. */
  async stages(options: CallOptions): Promise<ReadonlySet<string>> {
    const listed = await this.#client.list(this.#keys.stages, { ...options, keysOnly: true });
    return new Set(listed?.kvs.map(({ key }) => key.toString().slice(this.#keys.stages.length).replace(/\/.*$/, '')));
  }

  /** Unless the head has changed since it was written at `version`. */
  async dropStage(id: string, version: bigint, options: CallOptions): Promise<void> {
    const prefix = this.#keys.stage(id);
    const success = [deleteOp(prefix, endOf(prefix))];
    await this.#client.txn({ compare: [writtenAt(this.#keys.head, version)], success, failure: [] }, options);
  }

  /** The values as operations of the same transaction; undefined when they have to follow later. */
  #valueOps({ applied, previous, records }: EtcdBatch, stored: readonly StoredEntry[]): readonly RequestOp[] | undefined {
    if (applied.revision !== previous.revision || applied.changes > 0) return undefined;
    if (stored.some((entry) => 'stage' in entry)) return undefined;
    const newest = new Map<LogKey, RequestOp>();
    let bytes = stored.reduce((sum, entry) => sum + ('text' in entry ? Buffer.byteLength(entry.text) : 0), 0);
    for (const { entry } of records) {
      for (const change of entry.changes) {
        bytes += change.key.length + utf8Length(change.value ?? '');
        newest.set(change.key, this.#valueOp(change, entry.revision));
      }
    }
    return records.length + newest.size <= TXN_OPERATIONS && bytes <= TXN_BYTES ? [...newest.values()] : undefined;
  }

  #valueOp({ key, value }: Change, place: Revision): RequestOp {
    return value === null ? deleteOp(this.#keys.value(key)) : putOp(this.#keys.value(key), encodeValue(place, value));
  }

  async #stage(id: string, entry: Entry, text: string, options: CallOptions): Promise<StageReference> {
    const bytes = Buffer.from(text);
    const chunks = Math.ceil(bytes.length / CHUNK_BYTES);
    for (let index = 0; index < chunks; index += 1) {
      const chunk = bytes.subarray(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES);
      await this.#client.txn({ compare: [], success: [putOp(this.#keys.chunk(id, index), chunk)], failure: [] }, options);
    }
    const { version, revision, time, previousDigest, requestId } = entry;
    const facts = { version, revision, time, previousDigest, requestId, changes: entry.changes.length };
    return { id, chunks, digest: entry.digest, size: text.length, facts };
  }

  #tailOps(first: Revision): RequestOp[] {
    const entries = range(this.#keys.entry(first), { end: endOf(this.#keys.entries), limit: TAIL_ENTRIES });
    return [range(this.#keys.head), range(this.#keys.applied), entries].map(rangeOp);
  }

  async #tailOf(response: TxnResponse, options: CallOptions): Promise<Tail> {
    const [head, applied, entries] = rangesOf(response);
    return { ...this.#place(head, applied), entries: await this.#entries(entries, options) };
  }

  #place(heads: RangeResponse | undefined, applieds: RangeResponse | undefined): Omit<Tail, 'entries'> {
    const [[head], [applied]] = [heads?.kvs ?? [], applieds?.kvs ?? []];
    if (head === undefined) throw this.#none();
    // First: one that is unfinished says what is to be done.
    const decoded = decodeHead(head.value.toString());
    if (applied === undefined) throw this.#none();
    return {
      head: decoded,
      version: head.modRevision,
      applied: decodeApplied(applied.value.toString()),
    };
  }

  async #entries(found: RangeResponse | undefined, options: CallOptions): Promise<readonly TailEntry[]> {
    const entries: TailEntry[] = [];
    for (const kv of found?.kvs ?? []) {
      const stored = decodeEntry(kv.value.toString());
      entries.push({ record: await this.#record(kv, stored, options), batch: stored.batch, stage: stageOf(stored) });
    }
    return entries;
  }

  async #record(kv: KeyValue, stored: StoredEntry, options: CallOptions): Promise<EntryRecord> {
    return recordOf('text' in stored ? stored.text : await this.#staged(stored.stage, options), this.#placeOf(kv));
  }

  async #staged({ id, chunks, digest }: StageReference, options: CallOptions): Promise<string> {
    const listed = await this.#client.list(this.#keys.stage(id), options);
    const text = Buffer.concat(listed?.kvs.map(({ value }) => value) ?? []).toString();
    if (listed?.kvs.length !== chunks || sha256(text) !== digest) throw missing(`stage ${id}`);
    return text;
  }

  #none(): AgentError {
    return new AgentError('log.rolled_back', { problem: `etcd holds no log at ${this.#keys.head}, but there was one` });
  }

  #placeOf({ key }: KeyValue): Revision {
    return revision(BigInt(key.toString().slice(this.#keys.entries.length)));
  }

  async #load(options: CallOptions): Promise<LoadedLog | undefined> {
    const now = await this.#client.read({ compare: [], success: this.#tailOps(revision(0n)).slice(0, 2), failure: [] }, options);
    const [heads, applieds] = rangesOf(now);
    const place = this.#place(heads, applieds);
    const fixed = { ...options, revision: now.header?.revision ?? 0n };
    const values = await this.#client.list(this.#keys.values, fixed);
    const stored = await this.#client.list(this.#keys.entries, fixed);
    if (values === undefined || stored === undefined) return undefined;
    const entries = stored.kvs.map((kv) => ({ kv, stored: decodeEntry(kv.value.toString()) }));
    const items = new Map<LogKey, SnapshotItem>();
    for (const { key, value } of values.kvs) {
      const item = decodeValue(key.toString().slice(this.#keys.values.length), value.toString());
      items.set(item.key, item);
    }
    for (const { kv, stored } of entries) {
      if (this.#placeOf(kv) > place.applied.revision) fold(items, (await this.#record(kv, stored, options)).entry);
    }
    const { logId, last, minimum } = place.head;
    const { retained, newest } = await this.#retained(entries, place.head, options);
    const stages = new Map(
      entries.flatMap(({ kv, stored }) => ('stage' in stored ? [[stored.stage.id, this.#placeOf(kv)] as const] : [])),
    );
    return { ...place, stages, state: { logId, last, minimum, items: items.values(), retained, newest } };
  }

  /** Checked: every retained entry is there, and names the one before it. */
  async #retained(
    entries: readonly { readonly kv: KeyValue; readonly stored: StoredEntry }[],
    { last, minimum }: HeadRecord,
    options: CallOptions,
  ): Promise<{ readonly retained: readonly RetainedEntry[]; readonly newest: readonly SizedEntry[] }> {
    const summaries = entries.map(({ kv, stored }) => summaryOf(stored, this.#placeOf(kv)));
    let expected: bigint = minimum;
    let previous: string | undefined;
    for (const { facts, digest } of summaries) {
      if (facts.revision !== expected) throw missing(`entry ${expected}`);
      if (previous !== undefined && facts.previousDigest !== previous) throw missing(`the predecessor of entry ${expected}`);
      previous = digest;
      expected += 1n;
    }
    if (expected !== last.revision + 1n || (previous ?? last.digest) !== last.digest) throw missing(`entry ${expected}`);
    const newest: SizedEntry[] = [];
    let size = 0;
    for (const { kv, stored } of entries.toReversed()) {
      size += summaryOf(stored, this.#placeOf(kv)).size;
      if (newest.length > 0 && (size > RING_SIZE || newest.length >= RING_ENTRIES)) break;
      newest.push(await this.#record(kv, stored, options));
    }
    const retained = summaries.map(({ facts: { time, changes, requestId }, size }) => ({ time, changes, requestId, size }));
    return { retained, newest: newest.reverse() };
  }
}

/** Where the values are, and etcd's revision of that record. */
export interface AppliedPlace {
  readonly applied: Applied;
  readonly version: bigint;
}

function stageOf(stored: StoredEntry): string | undefined {
  return 'stage' in stored ? stored.stage.id : undefined;
}

function fold(items: Map<LogKey, SnapshotItem>, { revision, changes }: Entry): void {
  for (const { key, value } of changes) {
    if (value === null) items.delete(key);
    else items.set(key, { key, value, revision });
  }
}

function at(stored: readonly StoredEntry[], index: number): StoredEntry {
  const entry = stored[index];
  if (entry === undefined) throw new RangeError('an entry was not stored');
  return entry;
}

function missing(what: string): AgentError {
  return corrupt(`${what} is missing or another`);
}

import { randomUUID } from 'node:crypto';
import { AgentError } from '../../domain/kernel/errors.js';
import type { EntryRecord } from '../../domain/log/entry.js';
import { type Revision, revision } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { EtcdClient } from '../etcd/etcd-client.js';
import { deleteOp, endOf, putOp, range, writtenAt } from '../etcd/etcd-messages.js';
import type { RequestOp } from '../generated/etcd/etcdserverpb/rpc.js';
import {
  decodeHead,
  EtcdLogKeys,
  encodeApplied,
  encodeEntry,
  encodeHead,
  encodeUnfinished,
  encodeValue,
  type HeadRecord,
  isUnfinished,
} from './etcd-log-records.js';
import { EtcdLogStore } from './etcd-log-store.js';
import type { WholeLog } from './sqlite-whole-log.js';

const READ_ATTEMPTS = 10;
/** A transaction takes 128 operations and 1.5 MiB by default. */
const TXN_OPERATIONS = 100;
const TXN_BYTES = 1024 * 1024;
const WRITE_ATTEMPTS = 10;

/**
 * All of a log that control planes share, while they go on writing: the values as of one of etcd's revisions, and the entries up to
 * there, which do not change any more (engine.md E5).
 * @throws AgentError `store.unavailable`, `log.corrupt`, `log.newer_schema`
 */
export async function readEtcdLog(store: EtcdLogStore, options: CallOptions): Promise<WholeLog> {
  for (let attempt = 0; attempt < READ_ATTEMPTS; attempt += 1) {
    const { state } = await store.load(options);
    const entries = await entriesUpTo(store, state.minimum, state.last.revision, options);
    if (entries === undefined) continue;
    const { logId, last } = state;
    return { logId, last, minimum: entries[0]?.entry.revision ?? state.minimum, items: [...state.items], entries };
  }
  throw new AgentError('store.unavailable', { problem: 'etcd: entries go faster than they are read' });
}

/** Those that are still there, without a gap; undefined when retention has overtaken the reader. */
async function entriesUpTo(
  store: EtcdLogStore,
  minimum: Revision,
  last: Revision,
  options: CallOptions,
): Promise<readonly EntryRecord[] | undefined> {
  const entries: EntryRecord[] = [];
  for (let next: bigint = minimum; next <= last; ) {
    const page = await store.records(revision(next), options);
    const [first] = page;
    if (first === undefined || (entries.length > 0 && first.entry.revision !== next)) return undefined;
    const wanted = page.filter(({ entry }) => entry.revision <= last);
    if (wanted.length === 0) return undefined;
    for (const record of wanted) entries.push(record);
    next = (wanted.at(-1)?.entry.revision ?? last) + 1n;
  }
  return entries;
}

/** What stands where a control plane is to be put. */
export type Found =
  | { readonly kind: 'nothing' | 'unfinished'; readonly version: bigint }
  /** `head` is undefined when there are keys, but no log. */
  | { readonly kind: 'log'; readonly version: bigint; readonly head: HeadRecord | undefined };

export interface EtcdPlace {
  readonly client: EtcdClient;
  /** `/holdfast/CLUSTER/`. */
  readonly prefix: string;
}

/**
 * Puts a whole control plane into etcd. No server can take a part of it for the whole: until the last transaction the head says that it is
 * unfinished, and everything is compared with that, so that two at once do not mix.
 */
export class EtcdReplacement {
  readonly #place: EtcdPlace;
  readonly #keys: EtcdLogKeys;

  constructor(place: EtcdPlace) {
    this.#place = place;
    this.#keys = new EtcdLogKeys(`${place.prefix}log/`);
  }

  /** @throws AgentError `store.unavailable`, `log.corrupt`, `log.newer_schema` */
  async look(options: CallOptions): Promise<Found> {
    const { client, prefix } = this.#place;
    const [head] = (await client.range(range(this.#keys.head), options))?.kvs ?? [];
    if (head === undefined) {
      const any = await client.range(range(prefix, { end: endOf(prefix), limit: 1, keysOnly: true }), options);
      const isEmpty = any?.kvs.length === 0;
      return isEmpty ? { kind: 'nothing', version: 0n } : { kind: 'log', version: 0n, head: undefined };
    }
    const [text, version] = [head.value.toString(), head.modRevision];
    return isUnfinished(text) ? { kind: 'unfinished', version } : { kind: 'log', version, head: decodeHead(text) };
  }

  /**
   * In the place of what was found. `rows` of the control plane's own state, those first that a server would make where it finds none.
   * @throws AgentError `backup.overtaken` when somebody else has written there meanwhile, `store.unavailable`, `store.too_large`; running it
   * again then finds it unfinished
   */
  async write(
    { version: found }: Found,
    log: WholeLog,
    rows: readonly { readonly key: string; readonly value: string }[],
    options: CallOptions,
  ): Promise<void> {
    const { applied, entries, values, stages } = this.#keys;
    const store = `${this.#place.prefix}store/`;
    const unfinished = encodeUnfinished(randomUUID());
    const emptied = [entries, values, stages, store].map((prefix) => deleteOp(prefix, endOf(prefix)));
    const version = await this.#head(found, unfinished, [deleteOp(applied), ...emptied], options);
    const state = rows.map(({ key, value }) => sized(`${store}${key}`, value));
    await this.#all(state, version, options);
    const items = log.items.map(({ key, value, revision }) => sized(this.#keys.value(key), encodeValue(revision, value)));
    await this.#all(items, version, options);
    await this.#all(await this.#entries(log, options), version, options);
    const { logId, last, minimum } = log;
    const end = putOp(applied, encodeApplied({ revision: last.revision, changes: 0 }));
    await this.#head(version, encodeHead({ logId, last, minimum }), [end], options);
  }

  /** Too large ones are put where their entry refers to them, as servers do it. */
  async #entries({ entries }: WholeLog, options: CallOptions): Promise<readonly Sized[]> {
    const store = new EtcdLogStore(this.#place.client, `${this.#place.prefix}log/`);
    const all: Sized[] = [];
    for (const record of entries) {
      const [stored] = await store.stage({ id: randomUUID(), records: [record] }, options);
      if (stored !== undefined) all.push(sized(this.#keys.entry(record.entry.revision), encodeEntry(stored)));
    }
    return all;
  }

  async #all(puts: readonly Sized[], version: bigint, options: CallOptions): Promise<void> {
    const part: RequestOp[] = [];
    let bytes = 0;
    const flush = async () => {
      const success = part.splice(0);
      bytes = 0;
      if (success.length > 0 && !(await this.#txn(version, success, options)).succeeded) throw overtaken();
    };
    for (const each of puts) {
      if (part.length >= TXN_OPERATIONS || bytes + each.bytes > TXN_BYTES) await flush();
      part.push(each.op);
      bytes += each.bytes;
    }
    await flush();
  }

  /** The head with this text, which nobody else writes; gives its version. */
  async #head(version: bigint, text: string, others: readonly RequestOp[], options: CallOptions): Promise<bigint> {
    const done = await this.#txn(version, [putOp(this.#keys.head, text), ...others], options);
    if (done.succeeded) return done.header?.revision ?? 0n;
    const [now] = (await this.#place.client.range(range(this.#keys.head), options))?.kvs ?? [];
    if (now?.value.toString() !== text) throw overtaken();
    return now.modRevision;
  }

  /** Repeated where its outcome is unknown: with the same comparison it does the same. */
  async #txn(version: bigint, success: readonly RequestOp[], options: CallOptions) {
    const request = { compare: [writtenAt(this.#keys.head, version)], success: [...success], failure: [] };
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#place.client.txn(request, options);
      } catch (error) {
        const mayRepeat = error instanceof AgentError && error.kind === 'unavailable' && attempt < WRITE_ATTEMPTS;
        if (!mayRepeat) throw error;
      }
    }
  }
}

interface Sized {
  readonly op: RequestOp;
  readonly bytes: number;
}

function sized(key: string, value: string): Sized {
  return { op: putOp(key, value), bytes: key.length + Buffer.byteLength(value) };
}

function overtaken(): AgentError {
  return new AgentError('backup.overtaken', { problem: 'somebody else has written there at the same time' });
}

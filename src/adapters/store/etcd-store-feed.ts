import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StoreChange } from '../../ports/store/control-store.js';
import type { EtcdClient, Listed } from '../etcd/etcd-client.js';
import { range } from '../etcd/etcd-messages.js';
import type { WatchAnswer } from '../etcd/etcd-watch.js';
import { type Event, Event_EventType } from '../generated/etcd/mvccpb/kv.js';
import type { StoreWatchers } from './store-watchers.js';

/** After a failure. */
const RETRY_MS = 200;

interface FeedParts {
  readonly client: EtcdClient;
  readonly prefix: string;
  readonly clock: Clock;
  readonly watchers: StoreWatchers;
  /** Of each attempt that failed; undefined once it goes on. */
  readonly report: (problem: string | undefined) => void;
}

/**
 * Every change of the prefix, told to all watchers once and in order. It knows which keys there are, without their values: about 200 bytes
 * each, so that after a compaction a listing tells what was removed meanwhile.
 */
export class EtcdStoreFeed {
  readonly #parts: FeedParts;
  /** Keys that some watcher may hold. */
  readonly #known = new Set<string>();
  /** Everything up to this one of etcd's revisions has been told. */
  #told = 0n;
  /** The newest that anybody here has been shown, told or not. */
  #seen = 0n;

  constructor(parts: FeedParts) {
    this.#parts = parts;
  }

  /** From what is there now. @throws AgentError `store.unavailable` */
  async start(options: CallOptions): Promise<void> {
    const { kvs, revision } = await this.#listed(options);
    for (const { key } of kvs) this.#known.add(this.#keyOf(key));
    this.#told = revision;
    this.#seen = revision;
  }

  /** A commit was answered with `revision`. */
  saw(revision: bigint): void {
    if (revision > this.#seen) this.#seen = revision;
  }

  /** A watcher begins with this, of which the feed may be behind: it is told when one of these keys is gone. */
  shown({ kvs, revision }: Listed): void {
    this.saw(revision);
    for (const { key } of kvs) this.#known.add(this.#keyOf(key));
  }

  /** Until abort. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#check({ signal });
        await this.#follow({ signal });
      } catch (error) {
        if (signal.aborted) return;
        this.#parts.report(error instanceof Error ? error.message : String(error));
        await this.#parts.clock.sleep(RETRY_MS, { signal }).catch(() => {});
      }
    }
  }

  /** A store that was restored has gone back, and would be waited for in silence (engine.md E3). */
  async #check(options: CallOptions): Promise<void> {
    const { client, prefix, watchers } = this.#parts;
    const header = (await client.range(range(prefix), options))?.header;
    if (header === undefined || header.revision >= this.#seen) return;
    watchers.end(`etcd has gone back from revision ${this.#seen} to ${header.revision}: it was restored`);
    this.#known.clear();
    await this.start(options);
  }

  async #follow({ signal }: CallOptions): Promise<void> {
    const { client, prefix } = this.#parts;
    for await (const answer of client.watch({ prefix, revision: this.#told + 1n }, { signal }))
      await this.#take(answer, { signal });
  }

  async #take(answer: WatchAnswer, options: CallOptions): Promise<void> {
    switch (answer.kind) {
      case 'created':
        return this.#parts.report(undefined);
      case 'events':
        return this.#tell(answer.events);
      case 'compacted':
        return this.#catchUp(options);
    }
  }

  /** One call for each commit. */
  #tell(events: readonly Event[]): void {
    let commit: StoreChange[] = [];
    for (const { type, kv } of events) {
      if (kv === undefined) continue;
      const key = this.#keyOf(kv.key);
      if (commit.length > 0 && kv.modRevision !== this.#told) {
        this.#parts.watchers.changed(commit);
        commit = [];
      }
      const removed = type === Event_EventType.DELETE;
      if (removed) this.#known.delete(key);
      else this.#known.add(key);
      commit.push({ key, value: removed ? undefined : kv.value.toString(), version: kv.modRevision });
      this.#told = kv.modRevision;
    }
    if (commit.length > 0) this.#parts.watchers.changed(commit);
    this.saw(this.#told);
  }

  /** What is there now against what was known: what came, what changed, and what is gone. */
  async #catchUp(options: CallOptions): Promise<void> {
    const { kvs, revision } = await this.#listed(options);
    const present = new Set(kvs.map((kv) => this.#keyOf(kv.key)));
    const changes: StoreChange[] = [];
    for (const key of this.#known) {
      if (!present.has(key)) changes.push({ key, value: undefined, version: revision });
    }
    for (const { key } of changes) this.#known.delete(key);
    for (const kv of kvs) {
      const [key, version] = [this.#keyOf(kv.key), kv.modRevision];
      if (version > this.#told) changes.push({ key, value: kv.value.toString(), version });
      this.#known.add(key);
    }
    this.#told = revision;
    this.saw(revision);
    // By versions, so that a watcher that began later is told only what is new to it.
    const versions = Map.groupBy(changes, ({ version }) => version);
    for (const version of [...versions.keys()].sort((a, b) => (a < b ? -1 : 1)))
      this.#parts.watchers.changed(versions.get(version) ?? []);
  }

  async #listed(options: CallOptions): Promise<Listed> {
    const { client, prefix } = this.#parts;
    const listed = await client.list(prefix, options);
    if (listed === undefined) throw new AgentError('store.unavailable', { problem: 'etcd: compacted while it was read' });
    return listed;
  }

  #keyOf(key: Buffer): string {
    return key.toString().slice(this.#parts.prefix.length);
  }
}

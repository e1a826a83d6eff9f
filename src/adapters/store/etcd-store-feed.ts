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
  readonly #known = new Map<string, bigint>();
  /** Everything up to this one of etcd's revisions has been told. */
  #told = 0n;

  constructor(parts: FeedParts) {
    this.#parts = parts;
  }

  /** From what is there now. @throws AgentError `store.unavailable` */
  async start(options: CallOptions): Promise<void> {
    const { kvs, revision } = await this.#listed(options);
    for (const { key, modRevision } of kvs) this.#known.set(this.#keyOf(key), modRevision);
    this.#told = revision;
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
    if (header === undefined || header.revision >= this.#told) return;
    watchers.end(`etcd has gone back from revision ${this.#told} to ${header.revision}: it was restored`);
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
      else this.#known.set(key, kv.modRevision);
      commit.push({ key, value: removed ? undefined : kv.value.toString(), version: kv.modRevision });
      this.#told = kv.modRevision;
    }
    if (commit.length > 0) this.#parts.watchers.changed(commit);
  }

  /** What is there now against what was known: what came, what changed, and what is gone. */
  async #catchUp(options: CallOptions): Promise<void> {
    const { kvs, revision } = await this.#listed(options);
    const present = new Map(kvs.map((kv) => [this.#keyOf(kv.key), kv]));
    const changes: StoreChange[] = [];
    for (const key of this.#known.keys()) {
      if (!present.has(key)) changes.push({ key, value: undefined, version: revision });
    }
    for (const { key } of changes) this.#known.delete(key);
    for (const [key, { value, modRevision }] of present) {
      if (this.#known.get(key) !== modRevision) changes.push({ key, value: value.toString(), version: modRevision });
      this.#known.set(key, modRevision);
    }
    changes.sort((a, b) => (a.version < b.version ? -1 : a.version > b.version ? 1 : 0));
    this.#told = revision;
    this.#parts.watchers.changed(changes);
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

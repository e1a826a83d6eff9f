import { joined } from '../../domain/dataplane/kernel-elements.js';
import type { RuleBatch, RulePlan } from '../../domain/dataplane/ruleset.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { FilterDump, FilterFacts, FilterSet, ForeignChain, PacketFilter } from '../../ports/dataplane/packet-filter.js';
import type { Addon } from './addon.js';
import type { NftChanges, NftObject, NftOperation, NftSocket, NftWatcher } from './nft-addon.js';
import { concerning, filterFailed, hookName, tableName } from './nft-names.js';

/** Of the family inet. */
const TABLE = 'holdfast';
const INET = 1;

/** NFT_TABLE_F_OWNER and NFT_TABLE_F_PERSIST of linux/netfilter/nf_tables.h: changed by the socket alone that made it, and there when it is gone. */
const OWNER = 0x2;
const PERSIST = 0x4;

/** Above it a listener would make the load seven times as long (native/core/nft_watcher.h). */
const LARGE_BYTES = 64 * 1024;

/** NF_DROP of linux/netfilter.h. */
const DROP = 0;

export interface NftPacketFilterOptions {
  /** Whether the table is to be ours alone, where the kernel can do that. */
  readonly owner: boolean;
}

/** Over netlink, by one socket that owns the table. Calls block for as long as the kernel takes: 0.25 s for 30,000 services at once. */
export class NftPacketFilter implements PacketFilter {
  readonly #addon: Pick<Addon, 'NftSocket' | 'NftWatcher'>;
  readonly #wantsOwner: boolean;
  #socket: NftSocket | undefined;
  #watcher: NftWatcher | undefined;
  #onForeign = () => {};
  /** Of the table that `replace` makes. */
  #flags = 0;

  constructor(addon: Pick<Addon, 'NftSocket' | 'NftWatcher'>, { owner }: NftPacketFilterOptions) {
    this.#addon = addon;
    this.#wantsOwner = owner;
  }

  async open(onForeign: () => void, { signal }: CallOptions): Promise<FilterFacts> {
    signal.throwIfAborted();
    this.#onForeign = onForeign;
    const socket = this.#open();
    const { adopted } = this.#take(socket);
    this.#watcher ??= new this.#addon.NftWatcher(socket.port(), (changes) => this.#onChange(changes));
    return { owned: this.#flags !== 0, adopted };
  }

  async apply(plan: RulePlan, { signal }: CallOptions): Promise<void> {
    const made = plan.filter((batch) => batch.length > 0);
    const size = made.reduce((sum, batch) => sum + bytesOf(batch), 0);
    const batches = made.map((batch) => batch.map((operation): NftOperation => ({ ...operation, table: TABLE })));
    this.#watched(size, batches.length, () => {
      for (const batch of batches) {
        signal.throwIfAborted();
        this.#commit(batch);
      }
    });
  }

  async replace(batch: RuleBatch, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    const table: NftOperation = { kind: 'table', table: TABLE, ...(this.#flags === 0 ? {} : { flags: this.#flags }) };
    const former: readonly NftOperation[] = this.#table(this.#needed()) === undefined ? [] : [{ kind: 'remove', table: TABLE }];
    const operations = batch.map((operation): NftOperation => ({ ...operation, table: TABLE }));
    this.#watched(bytesOf(batch), 1, () => this.#commit([...former, table, ...operations]));
  }

  async dump({ signal }: CallOptions): Promise<FilterDump> {
    signal.throwIfAborted();
    const socket = this.#needed();
    return this.#asked('the table', () => {
      if (this.#table(socket) === undefined) return { chains: [], rules: new Map(), sets: [] };
      const rules = new Map<string, number>();
      for (const { chain = '' } of socket.dump('rule', TABLE)) rules.set(chain, (rules.get(chain) ?? 0) + 1);
      return {
        chains: socket.dump('chain', TABLE).flatMap(({ chain }) => chain ?? []),
        rules,
        sets: socket.dump('set', TABLE).flatMap(({ set }) => (set === undefined ? [] : [this.#elements(socket, set)])),
      };
    });
  }

  async foreignChains({ signal }: CallOptions): Promise<readonly ForeignChain[]> {
    signal.throwIfAborted();
    const socket = this.#needed();
    return this.#asked('the chains', () => socket.dump('chain').flatMap((object) => foreign(object) ?? []));
  }

  async close(): Promise<void> {
    this.#watcher?.close();
    this.#socket?.close();
    this.#watcher = this.#socket = undefined;
  }

  async remove({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    const socket = this.#open();
    if (this.#asked('the table', () => this.#table(socket)) !== undefined) this.#commit([{ kind: 'remove', table: TABLE }]);
    await this.close();
  }

  #open(): NftSocket {
    this.#socket ??= this.#asked('nf_tables', () => new this.#addon.NftSocket());
    return this.#socket;
  }

  #needed(): NftSocket {
    if (this.#socket === undefined) throw new AgentError('dataplane.filter_failed', { problem: 'it is not open' });
    return this.#socket;
  }

  /** What stands there with the wrong flags gives way when its successor is complete: in `replace`. */
  #take(socket: NftSocket): { readonly adopted: boolean } {
    const former = this.#asked('the table', () => this.#table(socket));
    // The kernel takes the flag of the owner away when that ends.
    const wasOwned = former !== undefined && (former.flags & (OWNER | PERSIST)) !== 0;
    if (wasOwned && former.owner !== undefined && former.owner !== 0) {
      const problem =
        former.owner === socket.port() ? undefined : `another process owns the table ${TABLE} (netlink port ${former.owner})`;
      if (problem !== undefined) throw new AgentError('dataplane.filter_failed', { problem });
    }
    if (former !== undefined && wasOwned === this.#wantsOwner) {
      this.#flags = wasOwned ? OWNER | PERSIST : 0;
      if (wasOwned) this.#commit([{ kind: 'table', table: TABLE, flags: this.#flags }]);
      return { adopted: true };
    }
    this.#flags = this.#wantsOwner && this.#asked('the table', () => socket.knowsFlags(OWNER | PERSIST)) ? OWNER | PERSIST : 0;
    if (former === undefined)
      this.#commit([{ kind: 'table', table: TABLE, ...(this.#flags === 0 ? {} : { flags: this.#flags }) }]);
    return { adopted: former !== undefined && !wasOwned && this.#flags === 0 };
  }

  #table(socket: NftSocket): NftObject | undefined {
    return socket.dump('table').find(({ family, table }) => family === INET && table === TABLE);
  }

  #elements(socket: NftSocket, set: string): FilterSet {
    const parts = socket.dump('element', TABLE, set).flatMap(({ key, data }) => [key, data].filter((part) => part !== undefined));
    return { set, packed: joined(parts) };
  }

  #commit(operations: readonly NftOperation[]): void {
    const socket = this.#needed();
    try {
      socket.apply(operations);
    } catch (error) {
      throw filterFailed(concerning(operations, error), error);
    }
  }

  /** Nobody listens while much is loaded; what others did meanwhile is seen by the generation, which grows by one with each batch. */
  #watched(bytes: number, batches: number, commit: () => void): void {
    if (bytes < LARGE_BYTES || this.#watcher === undefined) {
      commit();
      return;
    }
    const socket = this.#needed();
    const before = socket.generation();
    this.#watcher.pause();
    try {
      commit();
    } finally {
      this.#watcher.resume();
      if (socket.generation() !== (before + batches) >>> 0) this.#onForeign();
    }
  }

  #asked<T>(what: string, ask: () => T): T {
    try {
      return ask();
    } catch (error) {
      if (error instanceof AgentError) throw error;
      throw filterFailed(what, error);
    }
  }

  #onChange({ tables, overrun }: NftChanges): void {
    if (overrun || tables.some(({ family, table }) => family === INET && table === TABLE)) this.#onForeign();
  }
}

function bytesOf(batch: RuleBatch): number {
  return batch.reduce((sum, operation) => sum + ('packed' in operation ? operation.packed.length : 0), 0);
}

function foreign({ family, table, chain, hook, priority, policy }: NftObject): ForeignChain | undefined {
  if (chain === undefined || hook === undefined || (family === INET && table === TABLE)) return undefined;
  return {
    table: tableName(family, table),
    chain,
    hook: hookName(family, hook),
    priority: priority ?? 0,
    policy: policy === DROP ? 'drop' : 'accept',
  };
}

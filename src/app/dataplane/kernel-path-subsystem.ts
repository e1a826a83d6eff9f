import { L4Compiler } from '../../domain/dataplane/compile.js';
import { targetKey } from '../../domain/dataplane/kernel-flows.js';
import type { FilterMarks } from '../../domain/dataplane/kernel-model.js';
import type { L4Listener, ListenerId } from '../../domain/dataplane/model.js';
import type { NodeName } from '../../domain/identity/model.js';
import { ipv4Range } from '../../domain/kernel/network.js';
import { type Revision, ZERO_REVISION } from '../../domain/log/model.js';
import type { Severity } from '../../domain/outbox/model.js';
import { nameOf, type QualifiedName } from '../../domain/resource/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Conntrack } from '../../ports/dataplane/conntrack.js';
import type { PacketFilter } from '../../ports/dataplane/packet-filter.js';
import type { Sysctls } from '../../ports/dataplane/sysctls.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import type { Outbox } from '../../ports/outbox/outbox.js';
import { messageOf } from '../agent/managed-subsystem.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import { RevisionWaiters } from '../agent/revision-waiters.js';
import type { Subsystem } from '../agent/subsystem.js';
import { FlowKeeper } from './flow-keeper.js';
import { KernelSurroundings } from './kernel-surroundings.js';
import { KernelTable } from './kernel-table.js';
import type { PathMoves } from './path-moves.js';

/** Nobody says when a sysctl or the chains of others change. */
const LOOK_AGAIN_MS = 30_000;
/** A table that is not ours alone is to stand again within 1 s, also after the second time in a row. */
const FIRST_BACKOFF_MS = 200;
/** A share that is further off is named. */
const TOLERANCE = 0.03;
const MOST_NAMED = 5;

const NEVER = new AbortController().signal;

export interface KernelPathParts {
  readonly nodeId: NodeName;
  readonly view: StateView;
  readonly filter: PacketFilter;
  readonly conntrack: Conntrack;
  readonly sysctls: Sysctls;
  readonly moves: PathMoves;
  readonly marks: FilterMarks;
  readonly manageSysctls: boolean;
  /** Whether the table was to be ours alone. */
  readonly wantsOwner: boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  readonly outbox: Outbox;
}

export interface KernelPathFigures {
  readonly services: number;
  readonly slots: number;
  readonly commits: number;
  readonly seconds: number;
  readonly repairs: number;
  readonly draining: number;
}

/** Makes the kernel carry what the log says: compiles what changed into rules, and takes running flows along. */
export class KernelPathSubsystem implements Subsystem, ProblemSource {
  readonly name = 'kernel-path';
  readonly #parts: KernelPathParts;
  readonly #compiler: L4Compiler;
  readonly #surroundings: KernelSurroundings;
  readonly #flows: FlowKeeper;
  readonly #loop: ReconcileLoop;
  readonly #waiters = new RevisionWaiters();
  readonly #dirty = new Set<QualifiedName>();
  /** What the kernel has not confirmed, and what it goes on carrying until the proxy does. */
  readonly #owed = new Set<ListenerId>();
  /** As the kernel has confirmed it. */
  readonly #carried = new Map<ListenerId, L4Listener>();
  readonly #byTarget = new Map<string, L4Listener>();
  readonly #proxied = new Map<ListenerId, L4Listener>();
  #table: KernelTable | undefined;
  #lookedAt: number | undefined;
  #applied: Revision | undefined;
  #unsubscribe: () => void = () => {};
  #commits = 0;
  #seconds = 0;
  #repairs = 0;

  constructor(parts: KernelPathParts) {
    const { clock, conntrack, filter, logger, marks, random } = parts;
    this.#parts = parts;
    this.#compiler = new L4Compiler(parts.nodeId, true);
    this.#surroundings = new KernelSurroundings({ ...parts, filter, now: () => clock.now() });
    this.#flows = new FlowKeeper({
      ...{ conntrack, clock, random, logger },
      ...{ carriedMark: marks.ours, cutMark: marks.cut, untrackedMark: marks.injected },
      carried: (target) => this.#byTarget.get(target),
      drained: (id, endpoint, cut) =>
        this.#report('info', `service ${id}`, `endpoint ${endpoint} drained; connections cut: ${cut}`),
    });
    this.#loop = new ReconcileLoop({
      ...{ name: this.name, run: (signal) => this.#reconcile({ signal }), clock, random, logger },
      ...{ leastGapMs: 0, greatestGapMs: LOOK_AGAIN_MS, firstBackoffMs: FIRST_BACKOFF_MS },
    });
  }

  async start(): Promise<void> {
    const { moves, view } = this.#parts;
    moves.join('kernel', () => this.#loop.markDirty());
    this.#unsubscribe = view.onChange(({ services }) => {
      for (const service of services) this.#dirty.add(service);
      this.#loop.markDirty();
    });
    for (const { resource } of view.state.all()) if (resource.kind === 'Service') this.#dirty.add(nameOf(resource));
    this.#loop.start();
  }

  /** Serves when the kernel has acknowledged the view's present state. */
  async ready(signal: AbortSignal): Promise<void> {
    await this.#parts.view.reached(ZERO_REVISION, { signal });
    await this.settled(this.#parts.view.state.revision, { signal });
  }

  /** The table stays: connections go on, and new ones find their endpoints, while there is no agent. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#loop.stop();
    await this.#flows.stop();
    await this.#parts.filter.close();
    this.#table = undefined;
  }

  /** Of a service port that rules carry, as the kernel has it; undefined: they do not. */
  carries(id: ListenerId): L4Listener | undefined {
    return this.#carried.get(id);
  }

  /** Whether it is to. */
  isFor(id: ListenerId): boolean {
    return this.#compiler.table.get(id)?.path === 'kernel';
  }

  async settled(revision: Revision, options: CallOptions): Promise<void> {
    options.signal.throwIfAborted();
    if (this.#applied === undefined || this.#applied < revision) await this.#waiters.wait(revision, options);
  }

  figures(): KernelPathFigures {
    const size = this.#table?.compiler.size ?? { services: 0, slots: 0 };
    const { length: draining } = this.#flows.draining();
    return { ...size, draining, commits: this.#commits, seconds: this.#seconds, repairs: this.#repairs };
  }

  problems(): readonly StatusProblem[] {
    return [...this.#failures(), ...this.#surroundings.problems(), ...this.#limits()];
  }

  #failures(): readonly StatusProblem[] {
    const remedy = 'it is tried again by itself; see the log of the daemon';
    return [this.#loop.status(), this.#flows.status()].flatMap(({ error }) => {
      if (error === undefined) return [];
      const reason = `the rules could not be applied (${error.failures} times in a row): ${messageOf(error.error)}`;
      return [{ subject: 'kernel path', reason, since: error.since, remedy }];
    });
  }

  #limits(): readonly StatusProblem[] {
    const problems: StatusProblem[] = [];
    // By hashing shares are what they come to.
    const rounded = (this.#table?.rounded(TOLERANCE) ?? []).filter((id) => !this.#isHashed(id));
    if (this.#parts.wantsOwner && this.#table?.facts?.owned === false) {
      const reason = 'this kernel cannot keep the rules from others: who flushes them resets running connections';
      problems.push({
        subject: 'kernel path',
        reason,
        since: undefined,
        remedy: 'Linux 6.9 or later; or dataplane.tableOwner: off',
      });
    }
    if (rounded.length > 0) {
      const named = rounded.slice(0, MOST_NAMED).join(', ');
      const reason = `shares of ${rounded.length} service ports are more than 3 % off their weights: ${named}`;
      const remedy =
        'use weights with a smaller sum, at best up to 64 when divided by what all have in common; or dataPath: proxy';
      problems.push({ subject: 'kernel path', reason, since: undefined, remedy });
    }
    return problems;
  }

  #isHashed(id: ListenerId): boolean {
    const listener = this.#carried.get(id);
    return listener?.algorithm === 'source-hash' || (listener?.affinityMs ?? 0) > 0;
  }

  async #reconcile(options: CallOptions): Promise<void> {
    const { clock, view } = this.#parts;
    const { revision, vipRange } = view.state;
    const range = vipRange === undefined ? undefined : ipv4Range(vipRange);
    if (view.state.cursor === undefined) return;
    // A control plane without services has no range for them.
    if (range === undefined) return this.#reached(revision);
    const startedAt = clock.monotonic();
    this.#table ??= new KernelTable(this.#parts.filter, { range, marks: this.#parts.marks });
    const table = this.#table;
    this.#compile();
    if (table.known) await this.#change(table, options);
    else await this.#take(table, options);
    this.#seconds += (clock.monotonic() - startedAt) / 1000;
    this.#reached(revision);
    await this.#look(options);
  }

  #reached(revision: Revision): void {
    this.#applied = revision;
    this.#waiters.reached(revision);
  }

  #compile(): void {
    const { view } = this.#parts;
    const { upsert, remove } = this.#compiler.update(view.state, [...this.#dirty], view.fresh());
    this.#dirty.clear();
    for (const { id } of upsert) this.#owed.add(id);
    for (const id of remove) this.#owed.add(id);
  }

  /** All of it, by what differs from what the kernel has. */
  async #take(table: KernelTable, options: CallOptions): Promise<void> {
    const isFirst = table.facts === undefined;
    const kernel = new Map<ListenerId, L4Listener>();
    const proxied = new Map<ListenerId, L4Listener>();
    for (const [id, listener] of this.#compiler.table) {
      const kept = this.#kept(id);
      if (listener.path === 'kernel') kernel.set(id, listener);
      else proxied.set(id, listener);
      if (kept !== undefined) kernel.set(id, kept);
      if (this.#parts.moves.since('proxy', id) !== undefined) proxied.set(id, listener);
    }
    const outcome = await table.take(kernel, proxied.values(), () => this.#onForeign(table), options);
    const gone = [...this.#carried.keys()].filter((id) => !kernel.has(id));
    this.#confirm([...kernel.values()], gone);
    this.#proxied.clear();
    for (const [id, listener] of proxied) this.#proxied.set(id, listener);
    this.#settleOwed();
    if (outcome !== 'same') this.#commits++;
    if (isFirst) this.#flows.start();
    else if (outcome !== 'same') this.#tellRepair();
  }

  async #change(table: KernelTable, options: CallOptions): Promise<void> {
    const upsert: L4Listener[] = [];
    const remove: ListenerId[] = [];
    const proxied: L4Listener[] = [];
    const unproxied: L4Listener[] = [];
    for (const id of this.#owed) {
      const listener = this.#compiler.table.get(id);
      if (listener?.path === 'kernel') upsert.push(listener);
      else if (this.#carried.has(id) && this.#kept(id) === undefined) remove.push(id);
      const [former, next] = [this.#proxied.get(id), this.#answeredByProxy(id, listener)];
      if (next !== undefined && !(former !== undefined && targetKey(former) === targetKey(next))) proxied.push(next);
      if (former !== undefined && !(next !== undefined && targetKey(former) === targetKey(next))) unproxied.push(former);
    }
    if (upsert.length + remove.length + proxied.length + unproxied.length > 0) {
      await table.change({ kernel: { upsert, remove }, proxied, unproxied }, options);
      this.#commits++;
    }
    for (const { id } of unproxied) this.#proxied.delete(id);
    for (const listener of proxied) this.#proxied.set(listener.id, listener);
    this.#confirm(upsert, remove);
    this.#settleOwed();
  }

  /** What the kernel goes on carrying although the proxy is to: until that stands. */
  #kept(id: ListenerId): L4Listener | undefined {
    const isProxys = this.#compiler.table.get(id)?.path === 'proxy';
    return isProxys && this.#parts.moves.since('proxy', id) === undefined ? this.#carried.get(id) : undefined;
  }

  /** Also while it still answers what the kernel is to carry. */
  #answeredByProxy(id: ListenerId, listener: L4Listener | undefined): L4Listener | undefined {
    if (listener?.path === 'kernel')
      return this.#parts.moves.since('proxy', id) === undefined ? undefined : this.#proxied.get(id);
    return listener;
  }

  #settleOwed(): void {
    for (const id of this.#owed) {
      const leaves = this.#compiler.table.get(id)?.path === 'kernel' && this.#proxied.has(id);
      if (this.#kept(id) === undefined && !leaves) this.#owed.delete(id);
    }
  }

  /** The kernel has acknowledged it. */
  #confirm(upsert: readonly L4Listener[], remove: readonly ListenerId[]): void {
    const { clock, moves } = this.#parts;
    for (const listener of upsert) this.#replace(listener.id, listener);
    for (const id of remove) this.#replace(id, undefined);
    moves.letGo('kernel', remove);
    moves.took(
      'kernel',
      upsert.map(({ id }) => id),
      clock.monotonic(),
    );
  }

  #replace(id: ListenerId, after: L4Listener | undefined): void {
    const before = this.#carried.get(id);
    if (before === after) return;
    if (before !== undefined && this.#byTarget.get(targetKey(before)) === before) this.#byTarget.delete(targetKey(before));
    if (after === undefined) this.#carried.delete(id);
    else {
      this.#carried.set(id, after);
      this.#byTarget.set(targetKey(after), after);
    }
    this.#flows.changed(before, after, this.#compiler.table.get(id)?.path === 'proxy');
  }

  #onForeign(table: KernelTable): void {
    table.doubt();
    this.#loop.retryNow();
  }

  #tellRepair(): void {
    this.#repairs++;
    this.#report('warning', 'kernel path', 'the rules of services had been changed by somebody else; they stand again');
  }

  async #look(options: CallOptions): Promise<void> {
    const now = this.#parts.clock.monotonic();
    if (this.#lookedAt !== undefined && now - this.#lookedAt < LOOK_AGAIN_MS) return;
    const reset = await this.#surroundings.look(options);
    this.#lookedAt = now;
    for (const { name, value } of reset) {
      this.#report('warning', 'kernel path', `somebody had set ${name} back; it is ${value} again`);
    }
  }

  #report(severity: Severity, subject: string, message: string): void {
    const { clock, logger, outbox } = this.#parts;
    logger[severity === 'warning' ? 'warn' : 'info'](message, { subject });
    const event = { time: clock.now(), kind: 'event' as const, stream: 'agent', severity, message, labels: { subject } };
    outbox.append(event, { signal: NEVER }).catch(() => {});
  }
}

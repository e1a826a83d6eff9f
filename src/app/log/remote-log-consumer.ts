import { AgentError } from '../../domain/kernel/errors.js';
import { PendingItems } from '../../domain/log/filter.js';
import {
  type Cursor,
  type Entry,
  type LogFrame,
  type LogKey,
  logId,
  type Revision,
  type Snapshot,
  ZERO_DIGEST,
  ZERO_REVISION,
} from '../../domain/log/model.js';
import { confirmsLog, holdBack } from '../../domain/log/removal-guard.js';
import { nameOf, type QualifiedName, refOf, resourceKey } from '../../domain/resource/model.js';
import { ClusterState, type Touched } from '../../domain/resource/state.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { Resync, ResyncOutcome } from '../../ports/driving/resync.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import { messageOf } from '../agent/managed-subsystem.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import { RevisionWaiters } from '../agent/revision-waiters.js';
import type { Subsystem } from '../agent/subsystem.js';
import { ViewFreshness, type ViewFreshnessParts } from './view-freshness.js';
import type { ViewKeeper } from './view-keeper.js';

/** A stream that ends makes room for others: thousands of nodes may have lost theirs in the same moment (engine.md I3). */
const SPREAD_MS = 1_000;
/** The loop runs for as long as the stream does; this is only what its configuration needs. */
const LOOK_AGAIN_MS = 60_000;

export interface RemoteLogConsumerParts extends ViewFreshnessParts {
  /** Of the control plane. */
  readonly log: OrderedLog;
  readonly keeper: ViewKeeper;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
}

/** A state that is not used before somebody confirms it (engine.md J4). */
interface Held {
  readonly reason: string;
  readonly since: number;
  /** Whether the server has said that it is another log than ours. */
  readonly changed: boolean;
  readonly items: PendingItems;
  cursor: Cursor;
  time: number;
}

/** Stands for the log that an older control plane has not. */
const NO_LOG: Snapshot = { cursor: { logId: logId('none'), revision: ZERO_REVISION, digest: ZERO_DIGEST }, time: 0, items: [] };

/** Why a snapshot is needed. `changed`: the server does not know our cursor. */
type Due = 'changed' | 'compacted' | 'asked';

/**
 * The view of an agent that follows a control plane's log: the stored one at once, then everything since, a snapshot when entries do not
 * lead on. It serves for as long as it must without the control plane.
 */
export class RemoteLogConsumer implements Subsystem, StateView, ProblemSource, Resync {
  readonly name = 'log-consumer';
  readonly state = new ClusterState();
  readonly #parts: RemoteLogConsumerParts;
  readonly #loop: ReconcileLoop;
  readonly #freshness: ViewFreshness;
  readonly #listeners = new Set<(touched: Touched) => void>();
  /** Whether the control plane has said that it has no log. */
  #isAbsent = false;
  readonly #waiters = new RevisionWaiters();
  readonly #resyncs = new Set<(outcome: ResyncOutcome) => void>();
  #held: Held | undefined;
  #due: Due | undefined;
  #accepting = false;
  /** The head that the server named when the stream began. */
  #announced: Revision = ZERO_REVISION;
  #frames = 0;
  #snapshots = 0;
  /** Why the last stream led nowhere, and since when none has. */
  #failure: { readonly error: unknown; readonly since: number } | undefined;
  #session: AbortController | undefined;

  constructor(parts: RemoteLogConsumerParts) {
    const { clock, random, logger } = parts;
    this.#parts = parts;
    this.#freshness = new ViewFreshness(parts, () => this.#turned());
    this.#loop = new ReconcileLoop({
      ...{ name: this.name, run: (signal: AbortSignal) => this.#run(signal), clock, random, logger },
      leastGapMs: 0,
      greatestGapMs: LOOK_AGAIN_MS,
    });
  }

  async start(signal: AbortSignal): Promise<void> {
    const view = await this.#parts.keeper.start(() => this.#ask('asked'), { signal });
    const restored = view !== undefined && this.#restore(view);
    this.#freshness.start(restored ? view.currentAt : undefined);
    this.#loop.start();
  }

  /** When there is a view, stored or new; or the control plane says that it has no log, as an older one does. */
  async ready(signal: AbortSignal): Promise<void> {
    await this.reached(ZERO_REVISION, { signal });
  }

  async stop(signal: AbortSignal): Promise<void> {
    await this.#freshness.stop();
    await this.#loop.stop();
    await this.#parts.keeper.stop({ signal });
  }

  /** A control plane can be reached again: it is asked at once. */
  reachable(): void {
    if (this.#failure !== undefined) this.#loop.retryNow();
  }

  fresh(): boolean {
    return this.#freshness.fresh;
  }

  /** Of a log that there is none of nothing is out of date. */
  ageMs(): number | undefined {
    return this.#isAbsent ? 0 : this.#freshness.ageMs();
  }

  /** How long a view that nobody confirms counts as the present state, milliseconds; within a second. */
  setStaleAfter(ms: number): void {
    this.#freshness.setStaleAfter(ms);
  }

  async reached(revision: Revision, options: CallOptions): Promise<void> {
    options.signal.throwIfAborted();
    if (this.state.cursor === undefined || this.state.revision < revision) await this.#waiters.wait(revision, options);
  }

  onChange(listener: (touched: Touched) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async resync({ accept }: { readonly accept: boolean }, { signal }: CallOptions): Promise<ResyncOutcome> {
    signal.throwIfAborted();
    if (accept && this.#held !== undefined) {
      this.#release(this.#held);
      return { outcome: 'applied', revision: this.state.revision };
    }
    const { promise, resolve, reject } = Promise.withResolvers<ResyncOutcome>();
    const onAbort = () => reject(signal.reason);
    this.#resyncs.add(resolve);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#accepting ||= accept;
    this.#ask('asked');
    try {
      return await promise;
    } finally {
      this.#resyncs.delete(resolve);
      signal.removeEventListener('abort', onAbort);
    }
  }

  problems(): readonly StatusProblem[] {
    const held = this.#held;
    const problems = [...this.#unfollowed(), ...this.#parts.keeper.problems()];
    if (held === undefined) return problems;
    const reason = `MASS_REMOVAL_HELD: ${held.reason}; the former state goes on serving`;
    const remedy = 'look at the control plane; if the new state is meant, run `holdfast resync --accept`';
    return [{ subject: 'log', reason, since: held.since, remedy }, ...problems];
  }

  /** The link has a problem of its own where no server answers; a server may also answer there and refuse here. */
  #unfollowed(): readonly StatusProblem[] {
    if (this.#failure === undefined) return [];
    const { error, since } = this.#failure;
    const isOurs = error instanceof AgentError;
    const reason = `changes do not arrive: ${isOurs ? (error.facts.problem ?? error.message) : messageOf(error)}`;
    const remedy = isOurs ? error.remedy : 'see the log of the daemon; it is tried again by itself';
    return [{ subject: 'log', reason, since, remedy }];
  }

  /** Since the start: frames and snapshots that were read. */
  counts() {
    return { frames: this.#frames, snapshots: this.#snapshots, held: this.#held !== undefined };
  }

  /** The stored view, if it can be read. */
  #restore(view: Snapshot): boolean {
    try {
      this.#changed(this.state.replace(view));
      return true;
    } catch (error) {
      this.#parts.logger.warn('the stored view cannot be used', { error });
      return false;
    }
  }

  /** A snapshot is taken next, in place of what is under way. */
  #ask(due: Due): void {
    this.#due ??= due;
    this.#session?.abort();
    this.#loop.markDirty();
  }

  /** One stream, from its beginning to its end. Whether it is tried again at once or with back-off depends on whether it led anywhere. */
  async #run(signal: AbortSignal): Promise<void> {
    const session = new AbortController();
    const end = () => session.abort();
    signal.addEventListener('abort', end, { once: true });
    this.#session = session;
    const before = this.#frames;
    try {
      await this.#follow(session.signal);
    } catch (error) {
      if (session.signal.aborted) return;
      if (error instanceof AgentError && error.code === 'log.not_offered') return await this.#waitForOne(session.signal);
      this.#isAbsent = false;
      this.#due ??= dueOf(error);
      if (this.#frames === before) {
        this.#failure = { error, since: this.#failure?.since ?? this.#parts.clock.now() };
        throw error;
      }
      this.#parts.logger.warn('the stream of the log has ended; trying again', { error });
      await this.#parts.clock.sleep(this.#parts.random() * SPREAD_MS, { signal }).catch(() => {});
    } finally {
      signal.removeEventListener('abort', end);
      this.#session = undefined;
      this.#freshness.lost();
      this.#loop.markDirty();
    }
  }

  /** An older control plane has no log: the node carries no services then, and all else goes on. */
  async #waitForOne(signal: AbortSignal): Promise<void> {
    if (!this.#isAbsent) this.#parts.logger.info('the control plane has no log: this node carries no services');
    this.#isAbsent = true;
    this.#failure = undefined;
    // Then what there is to know is known: nothing.
    if (this.state.cursor === undefined) this.#changed(this.state.replace(NO_LOG));
    this.#due ??= 'asked';
    await this.#parts.clock.sleep(LOOK_AGAIN_MS, { signal }).catch(() => {});
  }

  async #follow(signal: AbortSignal): Promise<void> {
    if (this.#due !== undefined || this.#place === undefined) await this.#takeSnapshot(signal);
    try {
      await this.#watch(signal);
    } catch (error) {
      const due = dueOf(error);
      if (due === undefined || signal.aborted) throw error;
      this.#parts.logger.info('taking another snapshot of the log', { error });
      this.#due = due;
      await this.#takeSnapshot(signal);
      await this.#watch(signal);
    }
  }

  /** Where the next frame has to follow on. */
  get #place(): Cursor | undefined {
    return this.#held?.cursor ?? this.state.cursor;
  }

  async #takeSnapshot(signal: AbortSignal): Promise<void> {
    const due = this.#due;
    const snapshot = await this.#parts.log.snapshot('', { signal });
    this.#snapshots += 1;
    const served = { cursor: this.state.cursor, services: this.#services() };
    // What is asked for again is still of a log that the server has called another.
    const changed = due === 'changed' || this.#held?.changed === true;
    const reason = this.#accepting ? undefined : holdBack(served, { ...snapshot, changed });
    if (reason === undefined) this.#apply(snapshot);
    else this.#hold(snapshot, reason, changed);
    if (this.#due === due) this.#due = undefined;
    this.#accepting = false;
  }

  #apply(snapshot: Snapshot): void {
    const touched = this.state.replace(snapshot);
    this.#held = undefined;
    this.#parts.keeper.replaced(snapshot, this.#freshness.currentAt());
    this.#changed(touched);
    this.#tell({ outcome: 'applied', revision: this.state.revision });
  }

  #hold({ cursor, time, items }: Snapshot, reason: string, changed: boolean): void {
    const { clock, logger } = this.#parts;
    const since = this.#held?.since ?? clock.now();
    this.#held = { reason, since, changed, items: new PendingItems(items), cursor, time };
    logger.warn('MASS_REMOVAL_HELD: a new state of the log is held back', { reason });
    this.#tell({ outcome: 'held', reason });
  }

  #tell(outcome: ResyncOutcome): void {
    for (const resolve of this.#resyncs) resolve(outcome);
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const place = this.#place;
    if (place === undefined) return;
    const { log } = this.#parts;
    this.#announced = (await log.head({ signal })).revision;
    for await (const frame of log.watch(place, { signal })) {
      this.#take(frame);
      this.#frames += 1;
      this.#failure = undefined;
      this.#isAbsent = false;
    }
  }

  /** @throws AgentError `log.compacted` when the frame does not follow on */
  #take(frame: LogFrame): void {
    if (frame.previous !== this.#place?.revision) {
      throw new AgentError('log.compacted', {
        problem: `a frame after ${frame.previous} does not follow ${this.#place?.revision}`,
      });
    }
    if (this.#held !== undefined) this.#takeHeld(this.#held, frame);
    else this.#takeCurrent(frame);
  }

  #takeCurrent(frame: LogFrame): void {
    const { keeper } = this.#parts;
    const ageMs = frame.kind === 'bookmark' ? frame.ageMs : 0;
    let touched: Touched | undefined;
    if (frame.kind === 'entry') touched = this.state.fold(frame.entry, frame.previous);
    else this.state.pass(frame.previous, frame.revision, frame.digest);
    const reachedHead = this.state.revision >= this.#announced;
    this.#freshness.sign({ bookmark: frame.kind === 'bookmark', ageMs, reachedHead });
    const { cursor } = this.state;
    if (cursor !== undefined && frame.kind === 'entry') keeper.changed(frame.entry, cursor, this.#freshness.currentAt());
    if (cursor !== undefined && frame.kind === 'bookmark') keeper.passed(cursor, this.#freshness.currentAt());
    if (touched === undefined) this.#waiters.reached(this.state.revision);
    else this.#changed(touched);
  }

  #takeHeld(held: Held, frame: LogFrame): void {
    const place: Pick<Entry, 'revision' | 'digest'> = frame.kind === 'entry' ? frame.entry : frame;
    held.cursor = { logId: held.cursor.logId, revision: place.revision, digest: place.digest };
    if (frame.kind === 'bookmark') return;
    held.time = frame.entry.time;
    held.items.fold(frame.entry);
    if (confirmsLog(frame.entry)) this.#release(held);
  }

  /** Takes over what was held back. */
  #release({ cursor, time, items }: Held): void {
    this.#parts.logger.info('the state that was held back is taken over', { revision: cursor.revision });
    this.#apply({ cursor, time, items: items.items() });
  }

  #services(): readonly LogKey[] {
    return [...this.state.all()].flatMap(({ resource }) => (resource.kind === 'Service' ? [resourceKey(refOf(resource))] : []));
  }

  #turned(): void {
    const { logger } = this.#parts;
    if (this.fresh()) logger.info('the view of the log is current');
    else
      logger.warn('the view of the log is stale: services with onStale: refuse take no new connections', { ageMs: this.ageMs() });
    const services = this.#refusing();
    if (services.size > 0) this.#notify({ services, changes: [], health: new Set() });
  }

  #refusing(): ReadonlySet<QualifiedName> {
    const names = [...this.state.all()].flatMap(({ resource }) =>
      resource.kind === 'Service' && resource.spec.onStale === 'refuse' ? [nameOf(resource)] : [],
    );
    return new Set(names);
  }

  #changed(touched: Touched): void {
    this.#notify(touched);
    this.#waiters.reached(this.state.revision);
  }

  #notify(touched: Touched): void {
    for (const listener of this.#listeners) {
      try {
        listener(touched);
      } catch (error) {
        this.#parts.logger.error('a reader of the log failed', { error });
      }
    }
  }
}

/** Undefined when a snapshot would not help. */
function dueOf(error: unknown): Due | undefined {
  if (!(error instanceof AgentError)) return error instanceof RangeError ? 'compacted' : undefined;
  if (error.code === 'log.changed') return 'changed';
  return error.code === 'log.compacted' || error.code === 'log.slow' ? 'compacted' : undefined;
}

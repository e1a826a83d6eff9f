import { L4Compiler, splitListenerId } from '../../domain/dataplane/compile.js';
import type { L4Delta, L4Listener, ListenerId } from '../../domain/dataplane/model.js';
import type { NodeName } from '../../domain/identity/model.js';
import { type Revision, ZERO_REVISION } from '../../domain/log/model.js';
import type { Severity } from '../../domain/outbox/model.js';
import { nameOf, type QualifiedName } from '../../domain/resource/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type {
  BindFailure,
  DataPlane,
  DataPlaneEvent,
  ListenerSpec,
  ListeningSocket,
  ListenResult,
} from '../../ports/dataplane/data-plane.js';
import type { ListenPortMemory } from '../../ports/dataplane/listen-port-memory.js';
import type { ListenerState, ListenerStatus } from '../../ports/dataplane/listener-status.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import type { Outbox } from '../../ports/outbox/outbox.js';
import { messageOf } from '../agent/managed-subsystem.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import { RevisionWaiters } from '../agent/revision-waiters.js';
import type { Subsystem } from '../agent/subsystem.js';
import { LeavingListeners } from './leaving-listeners.js';
import { ListenerBook } from './listener-book.js';
import type { PathMoves } from './path-moves.js';

/** A taken port is looked at again after this, doubling to the most: its holder may be gone in a second or in a week. */
const RETRY_LEAST_MS = 1_000;
const RETRY_MOST_MS = 60_000;
/** Events say when to look; this is for one that was missed. */
const LOOK_AGAIN_MS = 30_000;
/** A second daemon on the addresses of the first moves all of its listeners at once, for one reason. */
const MOST_MOVES_TOLD = 20;
/** Running connections of a node that stops have this long. */
const STOP_GRACE_MS = 5_000;

/** For a user without the privilege it is how dev mode works. */
const moved = {
  taken: ['warning', 'is taken by another program'],
  denied: ['info', 'is not allowed to this user'],
} as const;

/** A listener that stands elsewhere than its service says, as its own port could not be had. */
interface Move {
  readonly listener: L4Listener;
  readonly port: number;
  readonly why: BindFailure;
}

const NEVER = new AbortController().signal;

export interface L4SubsystemParts {
  readonly nodeId: NodeName;
  readonly view: StateView;
  readonly dataPlane: DataPlane;
  readonly memory: ListenPortMemory;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  /** Whether a listener may have another port than its service's. */
  readonly mayMovePorts: boolean;
  /** How long a dial of an endpoint may take before the next is tried, milliseconds. */
  readonly connectTimeoutMs: number;
  readonly outbox: Outbox;
  /** Whether this node's kernel carries services, so that some are not the data plane's. */
  readonly kernel: boolean;
  readonly moves: PathMoves;
  /** Of the process before this one. */
  readonly inherited?: readonly ListeningSocket[] | undefined;
}

/** Makes the data plane carry what the log says: compiles what changed and applies the difference. */
export class L4Subsystem implements Subsystem, ListenerStatus, ProblemSource {
  readonly name = 'dataplane';
  readonly #parts: L4SubsystemParts;
  readonly #compiler: L4Compiler;
  readonly #dirty = new Set<QualifiedName>();
  /** What the data plane has not confirmed: a run that failed in the middle leaves it to the next. */
  readonly #owed = new Set<ListenerId>();
  readonly #book: ListenerBook;
  readonly #leaving: LeavingListeners;
  readonly #loop: ReconcileLoop;
  readonly #waiters = new RevisionWaiters();
  #connectTimeoutMs: number;
  #applied: Revision | undefined;
  #unsubscribe: (() => void) | undefined;
  #retry: { readonly timer: AbortController; readonly delayMs: number; due: boolean } | undefined;
  /** Every listener is applied again at the next run, whether it changed or not. */
  #allDue = false;
  #keeps = false;
  #saved: ReadonlyMap<ListenerId, number> = new Map();
  #runs = 0;
  #seconds = 0;

  constructor(parts: L4SubsystemParts) {
    this.#parts = parts;
    this.#compiler = new L4Compiler(parts.nodeId, parts.kernel, 'proxy');
    this.#leaving = new LeavingListeners(parts);
    this.#connectTimeoutMs = parts.connectTimeoutMs;
    this.#book = new ListenerBook(parts.mayMovePorts, parts.clock);
    this.#loop = new ReconcileLoop({
      name: this.name,
      run: (signal) => this.#reconcile({ signal }),
      clock: parts.clock,
      random: parts.random,
      logger: parts.logger,
      leastGapMs: 0,
      greatestGapMs: LOOK_AGAIN_MS,
    });
  }

  async start(signal: AbortSignal): Promise<void> {
    const { dataPlane, inherited, memory, moves, view } = this.#parts;
    moves.join('proxy', () => this.#loop.markDirty());
    this.#saved = await memory.load({ signal });
    this.#book.remember(this.#saved);
    dataPlane.start((event) => this.#onEvent(event), inherited);
    this.#unsubscribe = view.onChange(({ services }) => {
      for (const service of services) this.#dirty.add(service);
      this.#loop.markDirty();
    });
    for (const { resource } of view.state.all()) if (resource.kind === 'Service') this.#dirty.add(nameOf(resource));
    this.#loop.start();
  }

  /** Serves when the view's present state is applied. */
  async ready(signal: AbortSignal): Promise<void> {
    await this.#parts.view.reached(ZERO_REVISION, { signal });
    await this.settled(this.#parts.view.state.revision, { signal });
  }

  async stop(signal: AbortSignal): Promise<void> {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#cancelRetry();
    await this.#loop.stop();
    await this.#remember(signal);
    if (this.#keeps) this.#parts.dataPlane.leave();
    else await this.#parts.dataPlane.stop(STOP_GRACE_MS);
    this.#book.clear();
  }

  /** `stop` leaves the data plane as it is, for whoever comes after. */
  keepTraffic(): void {
    this.#keeps = true;
  }

  /** For every dial from now on. */
  setConnectTimeout(ms: number): void {
    this.#connectTimeoutMs = ms;
    this.#allDue = true;
    this.#loop.markDirty();
  }

  stateOf(id: ListenerId): ListenerState {
    return this.#book.stateOf(id);
  }

  failed() {
    return this.#book.failed();
  }

  /** Of the data plane as a whole; single listeners are in `failed`. */
  problems(): readonly StatusProblem[] {
    const { error } = this.#loop.status();
    if (error === undefined) return [];
    const reason = `the tables could not be applied (${error.failures} times in a row): ${messageOf(error.error)}`;
    return [
      { subject: 'dataplane', reason, since: error.since, remedy: 'it is tried again by itself; see the log of the daemon' },
    ];
  }

  /** How often the data plane was brought up to the log, and how long that took in all. */
  reconciles() {
    return { runs: this.#runs, seconds: this.#seconds };
  }

  async settled(revision: Revision, options: CallOptions): Promise<void> {
    options.signal.throwIfAborted();
    if (this.#applied === undefined || this.#applied < revision) await this.#waiters.wait(revision, options);
  }

  async #reconcile(options: CallOptions): Promise<void> {
    const { view, clock } = this.#parts;
    if (view.state.cursor === undefined) return;
    const startedAt = clock.monotonic();
    const { revision } = view.state;
    this.#compile();
    const { upsert, remove } = this.#owedDelta();
    const failedBefore = new Set(this.#book.failed().keys());
    await this.#keepConnections(remove, options);
    this.#book.forget(remove);
    await this.#apply(upsert, remove, options);
    this.#passOn(
      upsert.map(({ id }) => id),
      remove,
    );
    this.#runs++;
    this.#seconds += (clock.monotonic() - startedAt) / 1000;
    if (this.#applied === undefined) {
      this.#forgetAbsent();
      this.#parts.dataPlane.dropInherited();
    }
    this.#applied = revision;
    this.#waiters.reached(revision);
    this.#scheduleRetry([...this.#book.failed().keys()].some((id) => !failedBefore.has(id)));
    await this.#remember(options.signal);
  }

  /** What is owed to the data plane: what changed, what is due once more, and what the last run did not get done. */
  #compile(): void {
    const { dataPlane, view } = this.#parts;
    const former = [...this.#dirty].flatMap((name) => this.#compiler.of(name));
    const { upsert, remove, elsewhere = [] } = this.#compiler.update(view.state, [...this.#dirty], view.fresh());
    this.#leaving.note(this.#dirty, former, elsewhere);
    this.#dirty.clear();
    for (const { id } of upsert) this.#owed.add(id);
    for (const id of remove) this.#owed.add(id);
    if (this.#retry?.due === true) for (const id of this.#book.failed().keys()) this.#owed.add(id);
    if (this.#allDue) for (const id of this.#compiler.table.keys()) this.#owed.add(id);
    this.#allDue = false;
    if (this.#applied !== undefined) return;
    // A data plane that was left and is taken up again has listeners of services that have gone meanwhile.
    for (const { id } of dataPlane.stats()) if (!this.#compiler.table.has(id)) this.#owed.add(id);
  }

  /** Ports that are remembered of listeners which were deleted while nobody looked. */
  #forgetAbsent(): void {
    this.#book.forget([...this.#book.moved().keys()].filter((id) => !this.#compiler.table.has(id)));
  }

  /** Each listener on the first of its candidate ports that can be had. */
  async #apply(listeners: readonly L4Listener[], remove: readonly ListenerId[], options: CallOptions): Promise<void> {
    let pending = listeners.map((listener) => ({ listener, ports: this.#book.candidates(listener) }));
    let removing = remove;
    const refused = new Map<ListenerId, BindFailure>();
    const moves: Move[] = [];
    while (pending.length > 0 || removing.length > 0) {
      const upsert = pending.map(({ listener, ports }) => this.#specOf(listener, ports[0] ?? listener.port));
      const results = await this.#parts.dataPlane.apply({ upsert, remove: removing }, options);
      removing = [];
      const next: typeof pending = [];
      for (const [index, result] of results.entries()) {
        const tried = pending[index];
        if (tried === undefined) continue;
        const { listener } = tried;
        const [port, ...rest] = tried.ports;
        if (!result.listening && mayMove(result) && rest.length > 0) {
          if (port === listener.port) refused.set(listener.id, result.reason);
          next.push({ listener, ports: rest });
          continue;
        }
        this.#note(listener, result);
        const why = refused.get(listener.id);
        if (result.listening && why !== undefined) moves.push({ listener, port: result.port, why });
      }
      pending = next;
    }
    this.#tellMoves(moves);
  }

  /** Once for each choice: a port that was chosen before and can be had again is not news. */
  #tellMoves(moves: readonly Move[]): void {
    for (const { listener, port, why } of moves.slice(0, MOST_MOVES_TOLD)) {
      const [severity, reason] = why === 'address_in_use' ? moved.taken : moved.denied;
      this.#report(severity, subjectOf(listener.id), `port ${listener.port} ${reason}: listens on ${port} instead`);
    }
    const more = moves.length - MOST_MOVES_TOLD;
    if (more <= 0) return;
    this.#report('warning', 'dataplane', `${more} more service ports listen on another port; see \`holdfast get services -A\``);
  }

  #specOf({ port: _, ...listener }: L4Listener, listenPort: number): ListenerSpec {
    return { ...listener, listenPort, connectTimeoutMs: this.#connectTimeoutMs };
  }

  #note(listener: L4Listener, result: ListenResult): void {
    const before = this.#book.stateOf(listener.id);
    this.#book.note(listener, result);
    const subject = subjectOf(listener.id);
    const state = this.#book.stateOf(listener.id);
    if (state.state === 'failed' && (before.state !== 'failed' || before.reason !== state.reason)) {
      this.#report('warning', subject, `cannot listen: ${state.reason}`);
    }
    if (state.state === 'listening' && before.state === 'failed') {
      this.#report('info', subject, `listens on port ${state.port} again`);
    }
  }

  #owedDelta(): L4Delta {
    const upsert: L4Listener[] = [];
    const remove: ListenerId[] = [];
    for (const id of this.#owed) {
      const listener = this.#compiler.table.get(id);
      if (listener !== undefined) upsert.push(listener);
      else if (this.#leaving.waitMs(id) === 0) remove.push(id);
    }
    return { upsert, remove };
  }

  /** The connections of a listener that closes as the kernel has taken its port over have no deadline. */
  async #keepConnections(remove: readonly ListenerId[], options: CallOptions): Promise<void> {
    const upsert = this.#leaving.closing(remove).flatMap((listener) => {
      const stands = this.#book.stateOf(listener.id);
      return stands.state === 'listening' ? [this.#specOf(listener, stands.port)] : [];
    });
    if (upsert.length > 0) await this.#parts.dataPlane.apply({ upsert, remove: [] }, options);
  }

  /** To the kernel: what stands here now, and what does not any more. What has to stay for a while is looked at again then. */
  #passOn(applied: readonly ListenerId[], removed: readonly ListenerId[]): void {
    const { clock, moves } = this.#parts;
    for (const id of [...applied, ...removed]) this.#owed.delete(id);
    this.#leaving.forget(removed);
    moves.letGo('proxy', removed);
    const stands = applied.filter((id) => this.#book.stateOf(id).state === 'listening');
    moves.took('proxy', stands, clock.monotonic());
    const waits = [...this.#owed].map((id) => this.#leaving.waitMs(id) ?? Number.POSITIVE_INFINITY);
    const next = Math.min(...waits, LOOK_AGAIN_MS);
    if (waits.length === 0 || next === LOOK_AGAIN_MS) return;
    clock.sleep(next, { signal: NEVER }).then(
      () => this.#loop.markDirty(),
      () => {},
    );
  }

  /** A new failure begins with the least delay, whatever others have come to; only a run that retried doubles it. */
  #scheduleRetry(newFailure: boolean): void {
    const former = this.#retry;
    if (this.#book.failed().size === 0) {
      this.#cancelRetry();
      return;
    }
    if (former !== undefined && !former.due && !newFailure) return;
    former?.timer.abort();
    const delayMs = former === undefined || newFailure ? RETRY_LEAST_MS : Math.min(former.delayMs * 2, RETRY_MOST_MS);
    const retry = { timer: new AbortController(), delayMs, due: false };
    this.#retry = retry;
    this.#parts.clock.sleep(delayMs, { signal: retry.timer.signal }).then(
      () => {
        retry.due = true;
        this.#loop.markDirty();
      },
      () => {},
    );
  }

  #cancelRetry(): void {
    this.#retry?.timer.abort();
    this.#retry = undefined;
  }

  async #remember(signal: AbortSignal): Promise<void> {
    const { memory, mayMovePorts, logger } = this.#parts;
    const moved = new Map(this.#book.moved());
    if (!mayMovePorts || sameEntries(moved, this.#saved)) return;
    try {
      await memory.save(moved, { signal });
      this.#saved = moved;
    } catch (error) {
      if (!signal.aborted) logger.warn('the chosen ports could not be remembered', { error });
    }
  }

  #report(severity: Severity, subject: string, message: string): void {
    const { outbox, logger, clock } = this.#parts;
    logger[severity === 'warning' ? 'warn' : 'info'](message, { subject });
    const event = { time: clock.now(), kind: 'event' as const, stream: 'agent', severity, message, labels: { subject } };
    // The memory outbox takes it at once; one that cannot says so in its statistics.
    outbox.append(event, { signal: NEVER }).catch(() => {});
  }

  #onEvent(event: DataPlaneEvent): void {
    switch (event.type) {
      case 'drained': {
        this.#report('info', subjectOf(event.id), `endpoint ${event.endpoint} drained; connections cut: ${event.closed}`);
        break;
      }
      case 'ejected':
        this.#report(
          'warning',
          subjectOf(event.id),
          `endpoint ${event.endpoint} is ejected for a while: its dials failed several times in a row`,
        );
        break;
      case 'returned':
        this.#report('info', subjectOf(event.id), `endpoint ${event.endpoint} gets connections again`);
        break;
      case 'accept_paused':
        this.#report('warning', 'dataplane', `accepting pauses: ${event.detail}`);
        break;
    }
  }
}

function mayMove(result: Extract<ListenResult, { listening: false }>): boolean {
  return result.reason === 'address_in_use' || result.reason === 'permission_denied';
}

function sameEntries<K, V>(a: ReadonlyMap<K, V>, b: ReadonlyMap<K, V>): boolean {
  return a.size === b.size && [...a].every(([key, value]) => b.get(key) === value);
}

function subjectOf(id: ListenerId): string {
  const { service, port } = splitListenerId(id);
  return `service ${service} port ${port}`;
}

import { L4Compiler, splitListenerId } from '../../domain/dataplane/compile.js';
import { movedPorts } from '../../domain/dataplane/listen-port.js';
import type { L4Delta, L4Listener, ListenerId } from '../../domain/dataplane/model.js';
import type { NodeName } from '../../domain/identity/model.js';
import type { Revision } from '../../domain/log/model.js';
import type { Severity } from '../../domain/outbox/model.js';
import type { QualifiedName } from '../../domain/resource/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { DataPlane, DataPlaneEvent, ListenerSpec, ListenResult } from '../../ports/dataplane/data-plane.js';
import type { ListenPortMemory } from '../../ports/dataplane/listen-port-memory.js';
import type { ListenerState, ListenerStatus } from '../../ports/dataplane/listener-status.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { Logger } from '../../ports/logger.js';
import type { Outbox } from '../../ports/outbox/outbox.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { Subsystem } from '../agent/subsystem.js';
import { ListenerBook } from './listener-book.js';

/** A taken port is looked at again after this, doubling to the most: its holder may be gone in a second or in a week. */
const RETRY_LEAST_MS = 1_000;
const RETRY_MOST_MS = 60_000;
/** Events say when to look; this is for one that was missed. */
const LOOK_AGAIN_MS = 30_000;
/** Running connections of a node that stops have this long. */
const STOP_GRACE_MS = 5_000;

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
}

/** Makes the data plane carry what the log says: compiles what changed and applies the difference. */
export class L4Subsystem implements Subsystem, ListenerStatus {
  readonly name = 'dataplane';
  readonly #parts: L4SubsystemParts;
  readonly #compiler: L4Compiler;
  readonly #dirty = new Set<QualifiedName>();
  /** What the data plane has not confirmed: a run that failed in the middle leaves it to the next. */
  readonly #owed = new Set<ListenerId>();
  readonly #book: ListenerBook;
  readonly #loop: ReconcileLoop;
  readonly #waiters = new Set<{ readonly revision: Revision; readonly resolve: () => void }>();
  #applied: Revision | undefined;
  #running: { readonly stop: AbortController; readonly unsubscribe: () => void } | undefined;
  #retry: { readonly timer: AbortController; readonly delayMs: number } | undefined;
  #retryDue = false;
  #runs = 0;
  #seconds = 0;

  constructor(parts: L4SubsystemParts) {
    this.#parts = parts;
    this.#compiler = new L4Compiler(parts.nodeId);
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
    const { dataPlane, memory, view } = this.#parts;
    this.#book.remember(await memory.load({ signal }));
    dataPlane.start((event) => this.#onEvent(event));
    const unsubscribe = view.onChange(({ services }) => {
      for (const service of services) this.#dirty.add(service);
      this.#loop.markDirty();
    });
    this.#running = { stop: new AbortController(), unsubscribe };
    for (const { resource } of view.state.all()) {
      if (resource.kind === 'Service')
        this.#dirty.add(`${resource.metadata.namespace}/${resource.metadata.name}` as QualifiedName);
    }
    this.#loop.markDirty();
    this.#loop.start();
  }

  /** Serves when the view's present state is applied. */
  async ready(signal: AbortSignal): Promise<void> {
    await this.#parts.view.reached(0n as Revision, { signal });
    await this.settled(this.#parts.view.state.revision, { signal });
  }

  async stop(signal: AbortSignal): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.unsubscribe();
    running?.stop.abort();
    this.#retry?.timer.abort();
    await this.#loop.stop();
    if (running !== undefined) await this.#remember(signal);
    await this.#parts.dataPlane.stop(STOP_GRACE_MS);
    this.#book.clear();
  }

  stateOf(id: ListenerId): ListenerState {
    return this.#book.stateOf(id);
  }

  failed() {
    return this.#book.failed();
  }

  /** How often the data plane was brought up to the log, and how long that took in all. */
  reconciles() {
    return { runs: this.#runs, seconds: this.#seconds };
  }

  async settled(revision: Revision, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#applied !== undefined && this.#applied >= revision) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { revision, resolve };
    const onAbort = () => reject(signal.reason);
    this.#waiters.add(waiter);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await promise;
    } finally {
      this.#waiters.delete(waiter);
      signal.removeEventListener('abort', onAbort);
    }
  }

  async #reconcile(options: CallOptions): Promise<void> {
    const { view, clock } = this.#parts;
    if (view.state.cursor === undefined) return;
    const startedAt = clock.monotonic();
    const { revision } = view.state;
    const services = [...this.#dirty];
    this.#dirty.clear();
    const delta = this.#compiler.update(view.state, services);
    const retried = this.#retryDue;
    this.#retryDue = false;
    for (const id of [...delta.upsert.map((listener) => listener.id), ...delta.remove]) this.#owed.add(id);
    if (retried) for (const id of this.#book.failed().keys()) this.#owed.add(id);
    const { upsert, remove } = this.#owedDelta();
    this.#book.forget(remove);
    const moved = await this.#apply(upsert, remove, options);
    this.#owed.clear();
    this.#runs++;
    this.#seconds += (clock.monotonic() - startedAt) / 1000;
    this.#reached(revision);
    this.#scheduleRetry(retried);
    if (moved || remove.length > 0) await this.#remember(options.signal);
  }

  /** Each listener on the first of its candidate ports that can be had. */
  async #apply(listeners: readonly L4Listener[], remove: readonly ListenerId[], options: CallOptions): Promise<boolean> {
    let moved = false;
    let pending = listeners.map((listener) => ({ listener, ports: this.#book.candidates(listener) }));
    let removing = remove;
    while (pending.length > 0 || removing.length > 0) {
      const upsert = pending.map(({ listener, ports }) => this.#specOf(listener, ports[0] ?? listener.port));
      const results = await this.#parts.dataPlane.apply({ upsert, remove: removing }, options);
      removing = [];
      const next: typeof pending = [];
      for (const [index, result] of results.entries()) {
        const tried = pending[index];
        if (tried === undefined) continue;
        const [, ...rest] = tried.ports;
        if (!result.listening && mayMove(result) && rest.length > 0) next.push({ listener: tried.listener, ports: rest });
        else moved = this.#note(tried.listener, result) || moved;
      }
      pending = next;
    }
    return moved;
  }

  #specOf({ port: _, ...listener }: L4Listener, listenPort: number): ListenerSpec {
    return { ...listener, listenPort, connectTimeoutMs: this.#parts.connectTimeoutMs };
  }

  /** Whether the port is one to remember. */
  #note(listener: L4Listener, result: ListenResult): boolean {
    const before = this.#book.stateOf(listener.id).state;
    this.#book.note(listener, result);
    const subject = subjectOf(listener.id);
    const state = this.#book.stateOf(listener.id);
    if (state.state === 'failed' && before !== 'failed') this.#report('warning', subject, `cannot listen: ${state.reason}`);
    if (state.state === 'listening' && before === 'failed') this.#report('info', subject, `listens on port ${state.port} again`);
    return result.listening && result.port !== listener.port && before !== 'listening';
  }

  #owedDelta(): L4Delta {
    const upsert: L4Listener[] = [];
    const remove: ListenerId[] = [];
    for (const id of this.#owed) {
      const listener = this.#compiler.table.get(id);
      if (listener === undefined) remove.push(id);
      else upsert.push(listener);
    }
    return { upsert, remove };
  }

  #scheduleRetry(retried: boolean): void {
    const { clock } = this.#parts;
    if (this.#book.failed().size === 0) {
      this.#retry?.timer.abort();
      this.#retry = undefined;
      return;
    }
    if (this.#retry !== undefined && !retried) return;
    const delayMs = this.#retry === undefined ? RETRY_LEAST_MS : Math.min(this.#retry.delayMs * 2, RETRY_MOST_MS);
    const timer = new AbortController();
    this.#retry = { timer, delayMs };
    clock.sleep(delayMs, { signal: timer.signal }).then(
      () => {
        this.#retryDue = true;
        this.#loop.markDirty();
      },
      () => {},
    );
  }

  async #remember(signal: AbortSignal): Promise<void> {
    const { memory, mayMovePorts, logger } = this.#parts;
    if (!mayMovePorts) return;
    try {
      await memory.save(movedPorts(this.#book.ports(), this.#compiler.table), { signal });
    } catch (error) {
      if (!signal.aborted) logger.warn('the chosen ports could not be remembered', { error });
    }
  }

  #reached(revision: Revision): void {
    this.#applied = revision;
    for (const waiter of this.#waiters) if (revision >= waiter.revision) waiter.resolve();
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
        const cut = event.closed === 0 ? 'no connection had to be cut' : `${event.closed} connections were cut at the deadline`;
        this.#report('info', subjectOf(event.id), `endpoint ${event.endpoint} drained; ${cut}`);
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

function subjectOf(id: ListenerId): string {
  const { service, port } = splitListenerId(id);
  return `service ${service} port ${port}`;
}

import { FLAPPING, healthKey, type Verdict } from '../../domain/dataplane/health.js';
import { type HealthTarget, type Host, healthTargets, planHealth } from '../../domain/dataplane/health-targets.js';
import { type LogKey, ZERO_REVISION } from '../../domain/log/model.js';
import type { Severity } from '../../domain/outbox/model.js';
import type { QualifiedName } from '../../domain/resource/model.js';
import { serviceOf, type Touched } from '../../domain/resource/state.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { HealthProber } from '../../ports/dataplane/health-prober.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import type { Outbox } from '../../ports/outbox/outbox.js';
import { messageOf } from '../agent/managed-subsystem.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { Subsystem } from '../agent/subsystem.js';
import { HealthChecks } from './health-checks.js';
import { healthProblems } from './health-problems.js';

/** One proposal takes what turned in this time: at most ten a second, of the twenty that a node may make (engine.md E17). */
const TICK_MS = 100;
/** Keys of one proposal; the next tick takes the rest. */
const MOST_KEYS = 1_000;
/** Events say when to look; this is for one that was missed. */
const LOOK_AGAIN_MS = 30_000;

const NEVER = new AbortController().signal;

export interface HealthSubsystemParts {
  readonly host: Host;
  readonly log: OrderedLog;
  readonly view: StateView;
  readonly prober: HealthProber;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  readonly outbox: Outbox;
}

/** Checks the endpoints that this node hosts and says in the log what becomes of them. */
export class HealthSubsystem implements Subsystem, ProblemSource {
  readonly name = 'health';
  readonly #parts: HealthSubsystemParts;
  readonly #checks: HealthChecks;
  readonly #loop: ReconcileLoop;
  readonly #dirty = new Set<QualifiedName>();
  /** Keys of which the log may say something else than it should. */
  readonly #owed = new Set<LogKey>();
  #unsubscribe: (() => void) | undefined;

  constructor(parts: HealthSubsystemParts) {
    const { prober, clock, random, logger } = parts;
    this.#parts = parts;
    this.#checks = new HealthChecks({
      prober,
      clock,
      random,
      onVerdict: (target, verdict, before) => this.#onVerdict(target, verdict, before),
    });
    const run = (signal: AbortSignal) => this.#reconcile({ signal });
    this.#loop = new ReconcileLoop({
      ...{ name: this.name, run, clock, random, logger },
      leastGapMs: TICK_MS,
      greatestGapMs: LOOK_AGAIN_MS,
    });
  }

  async start(): Promise<void> {
    const { view } = this.#parts;
    this.#unsubscribe = view.onChange((touched) => this.#onChange(touched));
    for (const { resource } of view.state.all()) this.#dirty.add(serviceOf(resource));
    for (const service of view.state.health.services()) this.#dirty.add(service);
    this.#checks.start();
    this.#loop.start();
  }

  /** Traffic does not wait for it: an endpoint without a verdict is used. */
  async ready(signal: AbortSignal): Promise<void> {
    await this.#parts.view.reached(ZERO_REVISION, { signal });
  }

  async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    await this.#loop.stop();
    await this.#checks.stop();
  }

  problems(): readonly StatusProblem[] {
    return [...this.#unwritten(), ...healthProblems(this.#parts.view.state)];
  }

  /** How many endpoints this node checks, and how its checks ended so far. */
  counts() {
    return this.#checks.counts();
  }

  /** A verdict that was written leaves the targets as they are: a thousand verdicts of one service are no reason to look at it so often. */
  #onChange({ changes, health }: Touched): void {
    for (const { before, after } of changes) {
      if (before !== undefined) this.#dirty.add(serviceOf(before.resource));
      if (after !== undefined) this.#dirty.add(serviceOf(after.resource));
    }
    this.#owe(health);
    if (changes.length > 0 || health.size > 0) this.#loop.markDirty();
  }

  async #reconcile(options: CallOptions): Promise<void> {
    const { log, view, host } = this.#parts;
    if (view.state.cursor === undefined) return;
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    for (const service of dirty) this.#sync(service);
    const keys = [...this.#owed].slice(0, MOST_KEYS);
    const wanted = keys.map((key) => [key, this.#checks.wanted(key)] as const);
    // What turns from here on is owed again.
    for (const key of keys) this.#owed.delete(key);
    const proposal = planHealth(view.state, wanted, host);
    try {
      if (proposal.changes.length > 0) {
        const result = await log.propose(proposal, options);
        if (result.outcome === 'conflict') this.#owe(keys);
        else await view.reached(result.revision, options);
      }
    } catch (error) {
      this.#owe(keys);
      throw error;
    }
    if (this.#owed.size > 0) this.#loop.markDirty();
  }

  #sync(service: QualifiedName): void {
    const { view, host } = this.#parts;
    const records = view.state.health.of(service);
    const known = ({ target }: HealthTarget): Verdict | undefined => {
      const record = records.get(target);
      if (record === undefined || (record.node !== host.nodeId && !host.alone)) return undefined;
      // One that was held rises like any other.
      return record;
    };
    const former = this.#checks.keysOf(service);
    this.#checks.set(service, healthTargets(view.state, service, host), known);
    this.#owe(former);
    this.#owe(this.#checks.keysOf(service));
    this.#owe([...records.keys()].map((target) => healthKey(service, target)));
  }

  #owe(keys: Iterable<LogKey>): void {
    for (const key of keys) this.#owed.add(key);
  }

  #onVerdict({ key, service, target }: HealthTarget, { healthy, reason }: Verdict, before: Verdict | undefined): void {
    this.#owe([key]);
    this.#loop.markDirty();
    const subject = `service ${service}`;
    if (reason === FLAPPING)
      this.#report('warning', subject, `endpoint ${target} flaps and is held as not ready until it is calm`);
    else if (!healthy) this.#report('warning', subject, `endpoint ${target} is unhealthy: ${reason}`);
    else if (before !== undefined) this.#report('info', subject, `endpoint ${target} is healthy again`);
  }

  #report(severity: Severity, subject: string, message: string): void {
    const { outbox, logger, clock } = this.#parts;
    logger[severity === 'warning' ? 'warn' : 'info'](message, { subject });
    const event = { time: clock.now(), kind: 'event' as const, stream: 'agent', severity, message, labels: { subject } };
    // The memory outbox takes it at once; one that cannot says so in its statistics.
    outbox.append(event, { signal: NEVER }).catch(() => {});
  }

  #unwritten(): readonly StatusProblem[] {
    const { error } = this.#loop.status();
    if (error === undefined) return [];
    const reason = `what checks found could not be written to the log: ${messageOf(error.error)}`;
    return [{ subject: 'health', reason, since: error.since, remedy: 'it is tried again by itself; see the log of the daemon' }];
  }
}

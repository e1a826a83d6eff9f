import { Counter, Gauge, type Registry } from 'prom-client';
import type { OutboxStats } from '../../domain/outbox/model.js';
import type { NodeStatus } from '../../ports/driving/operations.js';

export interface DaemonSources {
  readonly outbox: () => OutboxStats;
}

/** What agents and control planes have in common. */
export class DaemonMetrics {
  readonly #sources: DaemonSources;
  readonly #info: Gauge<'version' | 'mode'>;
  readonly #ready: Gauge;
  readonly #problems: Gauge;
  readonly #revision: Gauge;
  readonly #logAge: Gauge;
  readonly #objects: Gauge;
  readonly #outboxDepth: Gauge;
  readonly #outboxDropped: Counter;

  constructor(sources: DaemonSources, registry: Registry) {
    const named = (name: string, help: string) => ({ name: `holdfast_${name}`, help, registers: [registry] });
    this.#sources = sources;
    this.#info = new Gauge({ ...named('build_info', 'Always 1'), labelNames: ['version', 'mode'] });
    this.#ready = new Gauge(named('ready', '1 when every subsystem serves'));
    this.#problems = new Gauge(named('problems', 'Problems that status shows'));
    this.#revision = new Gauge(named('log_revision', 'Revision of the log that this node has reached'));
    this.#logAge = new Gauge(named('log_age_seconds', 'How long ago the view of the log was known to be current'));
    this.#objects = new Gauge(named('objects', 'Resources in the log'));
    this.#outboxDepth = new Gauge(named('outbox_depth', 'Records that no sink has confirmed'));
    this.#outboxDropped = new Counter(named('outbox_dropped_total', 'Records dropped for want of room'));
  }

  /** The figures as they are now. */
  collect({ version, mode, ready, problems, log }: NodeStatus): void {
    const { depth, dropped } = this.#sources.outbox();
    this.#info.reset();
    this.#info.set({ version, mode }, 1);
    this.#ready.set(ready ? 1 : 0);
    this.#problems.set(problems.length);
    this.#revision.set(Number(log.revision));
    this.#logAge.set(log.ageMs / 1_000);
    this.#objects.set(log.objects);
    this.#outboxDepth.set(depth);
    replace(this.#outboxDropped, Number(dropped));
  }
}

/** The source counts; the metric only shows it. */
export function replace(counter: Counter, value: number): void {
  counter.reset();
  counter.inc(value);
}

import { Counter, Gauge, type Registry } from 'prom-client';
import { replace } from './daemon-metrics.js';

/** Counters since the daemon started. */
export interface KernelPathFigures {
  readonly services: number;
  /** Of all of them, each with an endpoint. */
  readonly slots: number;
  readonly commits: number;
  readonly seconds: number;
  readonly repairs: number;
  readonly draining: number;
}

/** Rules in the kernel. */
export class KernelPathMetrics {
  readonly #figures: () => KernelPathFigures;
  readonly #services: Gauge;
  readonly #slots: Gauge;
  readonly #draining: Gauge;
  readonly #commits: Counter;
  readonly #seconds: Counter;
  readonly #repairs: Counter;

  constructor(figures: () => KernelPathFigures, registry: Registry) {
    const named = (name: string, help: string) => ({ name: `holdfast_kernel_${name}`, help, registers: [registry] });
    this.#figures = figures;
    this.#services = new Gauge(named('services', 'Service ports that rules carry to an endpoint'));
    this.#slots = new Gauge(named('slots', 'Slots of all of them'));
    this.#draining = new Gauge(named('draining', 'Withdrawn endpoints whose connections still have time'));
    this.#commits = new Counter(named('commits_total', 'Changes of the rules that the kernel has acknowledged'));
    this.#seconds = new Counter(named('reconcile_seconds_total', 'Time spent in bringing the rules up to the log'));
    this.#repairs = new Counter(
      named('repairs_total', 'Times that somebody else had changed the rules, and they were made anew'),
    );
  }

  collect(): void {
    const { services, slots, draining, commits, seconds, repairs } = this.#figures();
    this.#services.set(services);
    this.#slots.set(slots);
    this.#draining.set(draining);
    replace(this.#commits, commits);
    replace(this.#seconds, seconds);
    replace(this.#repairs, repairs);
  }
}

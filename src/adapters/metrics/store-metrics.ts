import { Counter, Gauge, type Registry } from 'prom-client';
import { type CallFigures, callResults } from './call-meter.js';
import { CountedHistogram } from './counted-histogram.js';

export interface StoreFigures {
  /** `control`, `log`. */
  readonly store: string;
  readonly calls: CallFigures;
}

/** What a control plane keeps everything in: whether it answers, and how fast. */
export class StoreMetrics {
  readonly #up: Gauge<'store'>;
  readonly #failing: Counter<'store'>;
  readonly #calls: Counter<'store' | 'operation' | 'result'>;
  readonly #times: CountedHistogram<'store' | 'operation'>;

  constructor(registry: Registry) {
    const named = (name: string, help: string) => ({ name: `holdfast_store_${name}`, help, registers: [registry] });
    this.#up = new Gauge({ ...named('up', '1 while the store answers'), labelNames: ['store'] });
    this.#failing = new Counter({
      ...named('failing_seconds_total', 'Time in which the store did not answer'),
      labelNames: ['store'],
    });
    this.#calls = new Counter({
      ...named('calls_total', 'Calls of the store by what came of them'),
      labelNames: ['store', 'operation', 'result'],
    });
    const help = 'From a call of the store to its answer, or failure';
    this.#times = new CountedHistogram('holdfast_store_seconds', help, ['store', 'operation'], registry);
  }

  collect(stores: readonly StoreFigures[]): void {
    for (const metric of [this.#up, this.#failing, this.#calls]) metric.reset();
    this.#times.clear();
    for (const { store, calls } of stores) {
      this.#up.set({ store }, calls.failingSince === undefined ? 1 : 0);
      this.#failing.inc({ store }, calls.failingMs / 1_000);
      for (const { operation, results, latency } of calls.operations) {
        for (const result of callResults) this.#calls.inc({ store, operation, result }, results[result]);
        this.#times.show({ store, operation }, latency);
      }
    }
  }
}

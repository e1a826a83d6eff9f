import { Counter, Gauge, type Registry } from 'prom-client';
import type { DnsCount, DnsResponderStats } from '../../ports/dns/dns-responder.js';

/** What this node was asked by DNS; all but `queries` by UDP. */
export interface DnsFigures extends Omit<DnsResponderStats, 'answered' | 'threads' | 'waiting'> {
  readonly queries: readonly DnsCount[];
}

const counters = {
  cacheHits: ['holdfast_dns_cache_hits_total', 'Questions answered from the cache'],
  handedUp: ['holdfast_dns_handed_up_total', 'Questions that no table answers, handed to the forwarder'],
  truncated: ['holdfast_dns_truncated_total', 'Answers cut to what the asker takes by UDP'],
} as const;

const gauges = {
  names: ['holdfast_dns_names', 'Names in the table of the zone'],
  cached: ['holdfast_dns_cached', 'Entries of the cache'],
} as const;

type Simple = keyof typeof counters;
type Level = keyof typeof gauges;

export class DnsMetrics {
  readonly #figures: () => DnsFigures;
  readonly #queries: Counter<'type' | 'rcode'>;
  readonly #drops: Counter<'what'>;
  readonly #counters: readonly (readonly [Simple, Counter])[];
  readonly #gauges: readonly (readonly [Level, Gauge])[];

  constructor(figures: () => DnsFigures, registry: Registry) {
    this.#figures = figures;
    const registers = [registry];
    this.#queries = new Counter({
      name: 'holdfast_dns_queries_total',
      help: 'Questions by DNS, by the type that was asked for and the code of the answer',
      labelNames: ['type', 'rcode'],
      registers,
    });
    this.#drops = new Counter({
      name: 'holdfast_dns_dropped_total',
      help: 'Questions beyond the most that may wait, and answers that the kernel did not take',
      labelNames: ['what'],
      registers,
    });
    const names = <T extends object>(table: T) => Object.keys(table) as (keyof T)[];
    this.#counters = names(counters).map((key) => {
      const [name, help] = counters[key];
      return [key, new Counter({ name, help, registers })] as const;
    });
    this.#gauges = names(gauges).map((key) => {
      const [name, help] = gauges[key];
      return [key, new Gauge({ name, help, registers })] as const;
    });
  }

  /** The figures as they are now. */
  collect(): void {
    const figures = this.#figures();
    this.#queries.reset();
    for (const { type, rcode, count } of figures.queries) this.#queries.inc({ type, rcode }, count);
    this.#drops.reset();
    this.#drops.inc({ what: 'question' }, figures.droppedQuestions);
    this.#drops.inc({ what: 'answer' }, figures.droppedAnswers);
    for (const [key, counter] of this.#counters) {
      counter.reset();
      counter.inc(figures[key]);
    }
    for (const [key, gauge] of this.#gauges) gauge.set(figures[key]);
  }
}

import { Counter, type Registry } from 'prom-client';

/** Questions of one type that had one answer. */
export interface DnsFigure {
  readonly type: string;
  readonly rcode: string;
  readonly count: number;
}

/** What this node was asked by DNS. */
export class DnsMetrics {
  readonly #figures: () => readonly DnsFigure[];
  readonly #queries: Counter<'type' | 'rcode'>;

  constructor(figures: () => readonly DnsFigure[], registry: Registry) {
    this.#figures = figures;
    this.#queries = new Counter({
      name: 'holdfast_dns_queries_total',
      help: 'Questions by DNS, by the type that was asked for and the code of the answer',
      labelNames: ['type', 'rcode'],
      registers: [registry],
    });
  }

  /** The figures as they are now. */
  collect(): void {
    this.#queries.reset();
    for (const { type, rcode, count } of this.#figures()) this.#queries.inc({ type, rcode }, count);
  }
}

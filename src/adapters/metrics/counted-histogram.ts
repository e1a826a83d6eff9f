import { Histogram as PromHistogram, type Registry } from 'prom-client';
import type { Histogram } from '../../ports/dataplane/data-plane.js';

interface Sample<Label extends string> {
  readonly labels: Readonly<Record<Label, string>> & { readonly le?: string };
  readonly value: number;
  readonly metricName: string;
}

/** A histogram whose classes are counted elsewhere; it only shows them, as prom-client's own would. */
export class CountedHistogram<Label extends string> extends PromHistogram<Label> {
  readonly #about: { readonly name: string; readonly help: string };
  #samples: Sample<Label>[] = [];

  constructor(name: string, help: string, labelNames: readonly Label[], registry: Registry) {
    super({ name, help, labelNames: [...labelNames], registers: [registry] });
    this.#about = { name, help };
  }

  /** Once for each set of labels between two clearings. */
  show(labels: Readonly<Record<Label, string>>, { bounds, counts, sum }: Histogram): void {
    const { name } = this.#about;
    let total = 0;
    counts.forEach((count, index) => {
      total += count;
      // Prometheus' classes hold all that is not above their bound.
      const le = bounds[index] === undefined ? '+Inf' : String(bounds[index]);
      this.#samples.push({ labels: { ...labels, le }, value: total, metricName: `${name}_bucket` });
    });
    this.#samples.push({ labels, value: sum, metricName: `${name}_sum` });
    this.#samples.push({ labels, value: total, metricName: `${name}_count` });
  }

  /** Not `reset`, which the base class calls before there are any. */
  clear(): void {
    this.#samples = [];
  }

  /** What the registry asks for. */
  getForPromString() {
    return Promise.resolve({ ...this.#about, type: 'histogram', values: this.#samples, aggregator: 'sum' });
  }
}

import { collectDefaultMetrics, type Registry } from 'prom-client';

export interface RenderedMetrics {
  /** In the Prometheus text format. */
  readonly text: string;
  readonly contentType: string;
}

/** Everything of a registry, with the figures of the process. */
export class MetricsPage {
  readonly #registry: Registry;
  #withProcess = false;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  async render(): Promise<RenderedMetrics> {
    // They begin to measure when they are made, which no constructor does.
    if (!this.#withProcess) collectDefaultMetrics({ register: this.#registry });
    this.#withProcess = true;
    return { text: await this.#registry.metrics(), contentType: this.#registry.contentType };
  }
}

import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { splitListenerId } from '../../domain/dataplane/compile.js';
import type { OutboxStats } from '../../domain/outbox/model.js';
import type { ListenerStats } from '../../ports/dataplane/data-plane.js';
import type { NodeStatus } from '../../ports/driving/operations.js';

/** Where the figures come from; each is asked at every scrape. */
export interface MetricSources {
  readonly status: () => NodeStatus;
  readonly listeners: () => readonly ListenerStats[];
  readonly outbox: () => OutboxStats;
  readonly reconciles: () => { readonly runs: number; readonly seconds: number };
}

const SERVICE_LABELS = ['namespace', 'service', 'port'] as const;

/**
 * The node's metrics in the Prometheus text format. Every series is made anew from its source at each scrape, so that the series of a
 * deleted service are gone with it.
 */
export class PrometheusMetrics {
  readonly #registry = new Registry();
  readonly #sources: MetricSources;
  readonly #active = this.#gauge('connections_active', 'Open connections', SERVICE_LABELS);
  readonly #connections = this.#counter('connections_total', 'Connections by how they ended', [...SERVICE_LABELS, 'result']);
  readonly #bytes = this.#counter('bytes_total', 'Bytes from clients (in) and to them (out)', [...SERVICE_LABELS, 'direction']);
  readonly #dialFailures = this.#counter('dial_failures_total', 'Dials of an endpoint that failed', SERVICE_LABELS);
  readonly #endpoints = this.#gauge('endpoints', 'Endpoints by state', [...SERVICE_LABELS, 'state']);
  readonly #info = this.#gauge('build_info', 'Always 1', ['version', 'mode']);
  readonly #listeners = this.#gauge('listeners', 'Listening sockets by state', ['state']);
  readonly #budget = this.#gauge('listener_budget', 'Listening sockets that the descriptor limit leaves room for', []);
  readonly #revision = this.#gauge('log_revision', 'Revision of the log that this node has reached', []);
  readonly #logAge = this.#gauge('log_age_seconds', 'How long ago the view of the log was known to be current', []);
  readonly #objects = this.#gauge('objects', 'Resources in the log', []);
  readonly #outboxDepth = this.#gauge('outbox_depth', 'Records that no sink has confirmed', []);
  readonly #outboxDropped = this.#counter('outbox_dropped_total', 'Records dropped for want of room', []);
  readonly #reconciles = this.#counter('reconcile_runs_total', 'Times that the data plane was brought up to the log', []);
  readonly #reconcileSeconds = this.#counter('reconcile_seconds_total', 'Time spent in it', []);
  readonly #ready = this.#gauge('ready', '1 when every subsystem serves', []);
  readonly #problems = this.#gauge('problems', 'Problems that status shows', []);

  #withProcess = false;

  constructor(sources: MetricSources) {
    this.#sources = sources;
  }

  async render(): Promise<{ readonly text: string; readonly contentType: string }> {
    // They begin to measure when they are made, which no constructor does.
    if (!this.#withProcess) collectDefaultMetrics({ register: this.#registry });
    this.#withProcess = true;
    this.#collectNode(this.#sources.status());
    this.#collectTraffic(this.#sources.listeners());
    return { text: await this.#registry.metrics(), contentType: this.#registry.contentType };
  }

  #collectNode({ version, mode, ready, problems, log, dataPlane }: NodeStatus): void {
    const outbox = this.#sources.outbox();
    const { runs, seconds } = this.#sources.reconciles();
    this.#info.reset();
    this.#info.set({ version, mode }, 1);
    this.#listeners.set({ state: 'listening' }, dataPlane.listeners);
    this.#listeners.set({ state: 'failed' }, dataPlane.failedListeners);
    this.#budget.set(dataPlane.listenerBudget);
    this.#revision.set(Number(log.revision));
    this.#logAge.set(log.ageMs / 1000);
    this.#objects.set(log.objects);
    this.#outboxDepth.set(outbox.depth);
    replace(this.#outboxDropped, {}, Number(outbox.dropped));
    replace(this.#reconciles, {}, runs);
    replace(this.#reconcileSeconds, {}, seconds);
    this.#ready.set(ready ? 1 : 0);
    this.#problems.set(problems.length);
  }

  #collectTraffic(listeners: readonly ListenerStats[]): void {
    for (const metric of [this.#active, this.#connections, this.#bytes, this.#dialFailures, this.#endpoints]) metric.reset();
    for (const stats of listeners) {
      const { service: qualified, port } = splitListenerId(stats.id);
      const [namespace = '', service = ''] = qualified.split('/');
      const labels = { namespace, service, port };
      this.#active.set(labels, stats.active);
      for (const result of ['completed', 'failed', 'refused', 'reset', 'drained'] as const) {
        this.#connections.inc({ ...labels, result }, stats[result]);
      }
      this.#bytes.inc({ ...labels, direction: 'in' }, stats.bytesIn);
      this.#bytes.inc({ ...labels, direction: 'out' }, stats.bytesOut);
      this.#dialFailures.inc(labels, stats.dialFailures);
      const draining = stats.endpoints.filter((endpoint) => endpoint.draining).length;
      this.#endpoints.set({ ...labels, state: 'serving' }, stats.endpoints.length - draining);
      this.#endpoints.set({ ...labels, state: 'draining' }, draining);
    }
  }

  #gauge<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Gauge<Label> {
    return new Gauge({ name: `holdfast_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] });
  }

  #counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label> {
    return new Counter({ name: `holdfast_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] });
  }
}

/** The source counts; the metric only shows it. */
function replace(counter: Counter, labels: Record<string, string>, value: number): void {
  counter.reset();
  counter.inc(labels, value);
}

import { Counter, Gauge, Registry } from 'prom-client';
import { splitListenerId } from '../../domain/dataplane/compile.js';
import type { BalancerStatus } from '../../ports/driving/api-balancer.js';
import type { ListenerTraffic, NodeStatus, OverlayStatus, VipStatus } from '../../ports/driving/operations.js';
import { BalancerMetrics } from './balancer-metrics.js';
import { CountedHistogram } from './counted-histogram.js';
import { DaemonMetrics, type DaemonSources, replace } from './daemon-metrics.js';
import { type DnsFigures, DnsMetrics } from './dns-metrics.js';
import { type KernelPathFigures, KernelPathMetrics } from './kernel-path-metrics.js';
import { type LinkFigures, LinkMetrics } from './link-metrics.js';
import { MetricsPage, type RenderedMetrics } from './metrics-page.js';
import { OverlayMetrics } from './overlay-metrics.js';
import { VipMetrics } from './vip-metrics.js';

/** Where the figures come from; each is asked at every scrape. */
export interface MetricSources extends DaemonSources {
  readonly status: () => NodeStatus;
  readonly listeners: () => readonly ListenerTraffic[];
  /** Endpoints that this node checks, and how its checks ended. */
  readonly checks: () => { readonly targets: number; readonly succeeded: number; readonly failed: number };
  readonly reconciles: () => { readonly runs: number; readonly seconds: number };
  readonly dns: () => DnsFigures;
  /** Where the kernel carries services. */
  readonly kernelPath?: () => KernelPathFigures;
  /** Of a node of a fleet. */
  readonly link?: () => LinkFigures;
  /** Of a node of a fleet. */
  readonly overlay?: () => OverlayStatus | undefined;
  /** Of a node of a fleet. */
  readonly apiBalancer?: () => BalancerStatus;
  /** Of a node that may have the virtual IP. */
  readonly vip?: () => VipStatus;
}

const SERVICE_LABELS = ['namespace', 'service', 'port'] as const;
const RESULTS = ['completed', 'failed', 'refused', 'reset', 'drained'] as const;

type ServiceLabels = Readonly<Record<(typeof SERVICE_LABELS)[number], string>>;

/**
 * The node's metrics in the Prometheus text format. Every series is made anew from its source at each scrape, so that the series of a
 * deleted service are gone with it.
 */
export class PrometheusMetrics {
  readonly #registry = new Registry();
  readonly #page = new MetricsPage(this.#registry);
  readonly #daemon: DaemonMetrics;
  readonly #sources: MetricSources;
  readonly #dns: DnsMetrics;
  readonly #kernelPath: KernelPathMetrics | undefined;
  readonly #link: LinkMetrics | undefined;
  readonly #overlay: OverlayMetrics | undefined;
  readonly #apiBalancer: BalancerMetrics | undefined;
  readonly #vip: VipMetrics | undefined;
  readonly #active = this.#gauge('connections_active', 'Open TCP connections', SERVICE_LABELS);
  readonly #connections = this.#counter('connections_total', 'TCP connections by how they ended', [...SERVICE_LABELS, 'result']);
  readonly #flowsActive = this.#gauge('udp_flows_active', 'Open UDP flows', SERVICE_LABELS);
  readonly #flows = this.#counter('udp_flows_total', 'UDP flows by how they ended', [...SERVICE_LABELS, 'result']);
  readonly #drops = this.#counter('drops_total', 'What was not carried, by reason', [...SERVICE_LABELS, 'reason']);
  readonly #bytes = this.#counter('bytes_total', 'Bytes from clients (in) and to them (out)', [...SERVICE_LABELS, 'direction']);
  readonly #dialFailures = this.#counter('dial_failures_total', 'Dials of an endpoint that failed', SERVICE_LABELS);
  readonly #dialTimes = this.#histogram('dial_seconds', 'From a dial that succeeded to the answer of the endpoint');
  readonly #connectionTimes = this.#histogram('connection_seconds', 'From the acceptance of a connection to its end');
  readonly #endpoints = this.#gauge('endpoints', 'Endpoints that the data plane has, by state', [...SERVICE_LABELS, 'state']);
  readonly #declared = this.#gauge('endpoints_declared', 'Endpoints that the service has, in whatever state', SERVICE_LABELS);
  readonly #checked = this.#gauge('health_targets', 'Endpoints that this node checks', []);
  readonly #checks = this.#counter('health_checks_total', 'Checks of endpoints by how they ended', ['result']);
  readonly #listeners = this.#gauge('listeners', 'Listening sockets by state', ['state']);
  readonly #budget = this.#gauge('listener_budget', 'Listening sockets that the descriptor limit leaves room for', []);
  readonly #connectionLimit = this.#gauge('connection_limit', 'TCP connections and UDP flows that there may be in all', []);
  readonly #reconciles = this.#counter('reconcile_runs_total', 'Times that the data plane was brought up to the log', []);
  readonly #reconcileSeconds = this.#counter('reconcile_seconds_total', 'Time spent in it', []);

  constructor(sources: MetricSources) {
    this.#sources = sources;
    this.#dns = new DnsMetrics(sources.dns, this.#registry);
    this.#daemon = new DaemonMetrics(sources, this.#registry);
    const { kernelPath } = sources;
    this.#kernelPath = kernelPath === undefined ? undefined : new KernelPathMetrics(kernelPath, this.#registry);
    this.#link = sources.link === undefined ? undefined : new LinkMetrics(sources.link, this.#registry);
    this.#overlay = sources.overlay === undefined ? undefined : new OverlayMetrics(sources.overlay, this.#registry);
    const { apiBalancer } = sources;
    this.#apiBalancer = apiBalancer === undefined ? undefined : new BalancerMetrics(apiBalancer, this.#registry);
    this.#vip = sources.vip === undefined ? undefined : new VipMetrics(sources.vip, this.#registry);
  }

  async render(): Promise<RenderedMetrics> {
    const status = this.#sources.status();
    this.#daemon.collect(status);
    this.#collectNode(status);
    this.#collectTraffic(this.#sources.listeners());
    this.#dns.collect();
    this.#kernelPath?.collect();
    this.#link?.collect();
    this.#overlay?.collect();
    this.#vip?.collect();
    this.#apiBalancer?.collect();
    return this.#page.render();
  }

  #collectNode({ dataPlane }: NodeStatus): void {
    const { runs, seconds } = this.#sources.reconciles();
    this.#listeners.set({ state: 'listening' }, dataPlane?.listeners ?? 0);
    this.#listeners.set({ state: 'failed' }, dataPlane?.failedListeners ?? 0);
    this.#budget.set(dataPlane?.listenerBudget ?? 0);
    this.#connectionLimit.set(dataPlane?.connectionLimit ?? 0);
    replace(this.#reconciles, runs);
    replace(this.#reconcileSeconds, seconds);
    const { targets, succeeded, failed } = this.#sources.checks();
    this.#checked.set(targets);
    this.#checks.reset();
    this.#checks.inc({ result: 'succeeded' }, succeeded);
    this.#checks.inc({ result: 'failed' }, failed);
  }

  #collectTraffic(listeners: readonly ListenerTraffic[]): void {
    for (const metric of this.#ofServices()) metric.reset();
    for (const times of [this.#dialTimes, this.#connectionTimes]) times.clear();
    for (const stats of listeners) {
      const { service: qualified, port } = splitListenerId(stats.id);
      const [namespace = '', service = ''] = qualified.split('/');
      const labels = { namespace, service, port };
      this.#drops.inc({ ...labels, reason: 'limit' }, stats.limited);
      if (stats.protocol === 'udp') this.#collectFlows(stats, labels);
      else this.#collectConnections(stats, labels);
      this.#dialFailures.inc(labels, stats.dialFailures);
      this.#bytes.inc({ ...labels, direction: 'in' }, stats.bytesIn);
      this.#bytes.inc({ ...labels, direction: 'out' }, stats.bytesOut);
      this.#collectEndpoints(stats, labels);
    }
  }

  #ofServices() {
    return [
      ...[this.#active, this.#connections, this.#flowsActive, this.#flows, this.#drops, this.#bytes, this.#dialFailures],
      ...[this.#endpoints, this.#declared],
    ];
  }

  #collectConnections(stats: ListenerTraffic, labels: ServiceLabels): void {
    this.#active.set(labels, stats.active);
    for (const result of RESULTS) this.#connections.inc({ ...labels, result }, stats[result]);
    if (stats.times === undefined) return;
    this.#dialTimes.show(labels, stats.times.dial);
    this.#connectionTimes.show(labels, stats.times.connection);
  }

  #collectFlows(stats: ListenerTraffic, labels: ServiceLabels): void {
    this.#flowsActive.set(labels, stats.active);
    for (const result of RESULTS) this.#flows.inc({ ...labels, result }, stats[result]);
    this.#drops.inc({ ...labels, reason: 'evicted' }, stats.evicted);
    this.#drops.inc({ ...labels, reason: 'datagram' }, stats.dropped);
  }

  /** Each endpoint in one state: one that drains is no longer ejected. */
  #collectEndpoints({ endpoints, declaredEndpoints }: ListenerTraffic, labels: ServiceLabels): void {
    const draining = endpoints.filter((endpoint) => endpoint.draining).length;
    const ejected = endpoints.filter((endpoint) => endpoint.ejected && !endpoint.draining).length;
    const serving = endpoints.length - draining - ejected;
    this.#endpoints.set({ ...labels, state: 'serving' }, serving);
    this.#endpoints.set({ ...labels, state: 'draining' }, draining);
    this.#endpoints.set({ ...labels, state: 'ejected' }, ejected);
    this.#declared.set(labels, declaredEndpoints);
  }

  #histogram(name: string, help: string): CountedHistogram<(typeof SERVICE_LABELS)[number]> {
    return new CountedHistogram(`holdfast_${name}`, help, SERVICE_LABELS, this.#registry);
  }

  #gauge<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Gauge<Label> {
    return new Gauge({ name: `holdfast_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] });
  }

  #counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label> {
    return new Counter({ name: `holdfast_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] });
  }
}

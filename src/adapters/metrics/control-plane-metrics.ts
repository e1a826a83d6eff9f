import { Counter, Gauge, Registry } from 'prom-client';
import type { TokenState } from '../../domain/certificate/token.js';
import type { EndedCount, OpenCount } from '../../domain/dispatch/tally.js';
import type { FleetStatus, NodeStatus } from '../../ports/driving/operations.js';
import type { CallFigures } from './call-meter.js';
import { DaemonMetrics, type DaemonSources, replace } from './daemon-metrics.js';
import { MetricsPage, type RenderedMetrics } from './metrics-page.js';
import { type StoreFigures, StoreMetrics } from './store-metrics.js';

type Counts<Name extends string> = Readonly<Record<Name, number>>;

/** Connections of one port: those that are open, and what became of all. */
export interface ListenerFigures {
  readonly listener: 'registration' | 'nodes' | 'admin';
  readonly open: number;
  readonly accepted: number;
  readonly overflowed: number;
  readonly waitedTooLong: number;
  readonly timedOut: number;
  readonly failedHandshakes: number;
}

/** Counters are since the start of this replica. */
export interface ControlPlaneFigures {
  readonly tokens: Readonly<Record<TokenState, number>>;
  readonly enrolment: Counts<'registered' | 'refused' | 'limited' | 'failed'>;
  readonly sessions: Counts<'opened' | 'heartbeats' | 'unclaimed' | 'superseded' | 'duplicates'>;
  /** Of nodes, for instructions. */
  readonly results: Counts<'stored' | 'repeated' | 'stray' | 'lost'>;
  readonly open: readonly OpenCount[];
  /** Wall clock, milliseconds. */
  readonly oldestOpen: number | undefined;
  readonly ended: readonly EndedCount[];
  readonly listeners: readonly ListenerFigures[];
  /** What nodes were refused: `limited` for coming too fast. */
  readonly refusals: Counts<'malformed' | 'limited' | 'certificate'>;
  readonly proposalsLimited: number;
}

/** Each is asked at every scrape. */
export interface ControlPlaneSources extends DaemonSources {
  readonly status: () => NodeStatus;
  readonly figures: () => ControlPlaneFigures;
  readonly stores: () => Readonly<Record<'control' | 'log', CallFigures>>;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
}

/** A control plane's metrics in the Prometheus text format. Every series is made anew from its source at each scrape. */
export class ControlPlaneMetrics {
  readonly #registry = new Registry();
  readonly #page = new MetricsPage(this.#registry);
  readonly #sources: ControlPlaneSources;
  readonly #daemon: DaemonMetrics;
  readonly #stores: StoreMetrics;
  readonly #nodes = this.#gauge('fleet_nodes', 'Registered nodes by state', ['state']);
  readonly #replicas = this.#gauge('fleet_replicas', 'Servers of the control plane that live', []);
  readonly #tokens = this.#gauge('fleet_tokens', 'Tokens by state', ['state']);
  readonly #instructions = this.#gauge('fleet_instructions', 'Unfinished instructions', ['type', 'state']);
  readonly #oldest = this.#gauge('fleet_instruction_oldest_seconds', 'Age of the oldest unfinished instruction', []);
  readonly #ended = this.#counter('fleet_instructions_ended_total', 'Instructions by how they ended', ['type', 'result']);
  readonly #links = this.#gauge('server_links', 'Nodes whose streams are at this replica', []);
  readonly #opened = this.#counter('server_links_opened_total', 'Streams of nodes that were opened', []);
  readonly #lost = this.#counter('server_links_ended_total', 'Streams that were ended for another one', ['reason']);
  readonly #beats = this.#counter('server_heartbeats_total', 'Heartbeats of nodes', []);
  readonly #results = this.#counter('server_results_total', 'Results of nodes by what became of them', ['result']);
  readonly #unclaimed = this.#counter('server_messages_unclaimed_total', 'Messages of nodes that answer nothing', []);
  readonly #registrations = this.#counter('server_registrations_total', 'Registrations by what became of them', ['result']);
  readonly #refusals = this.#counter('server_refusals_total', 'What nodes were refused', ['reason']);
  readonly #connections = this.#gauge('server_connections', 'Open connections', ['listener']);
  readonly #accepted = this.#counter('server_connections_total', 'Connections by how they began', ['listener', 'result']);
  readonly #followers = this.#gauge('log_followers', 'Nodes that follow the log at this replica', []);
  readonly #expiry = this.#gauge('certificate_expiry_timestamp_seconds', 'When a certificate ends', ['certificate']);

  constructor(sources: ControlPlaneSources) {
    this.#sources = sources;
    this.#daemon = new DaemonMetrics(sources, this.#registry);
    this.#stores = new StoreMetrics(this.#registry);
  }

  async render(): Promise<RenderedMetrics> {
    const status = this.#sources.status();
    const figures = this.#sources.figures();
    this.#daemon.collect(status);
    if (status.fleet !== undefined) this.#collectFleet(status.fleet);
    this.#collectInstructions(figures);
    this.#collectLinks(figures);
    this.#collectListeners(figures);
    this.#stores.collect(Object.entries(this.#sources.stores()).map(([store, calls]): StoreFigures => ({ store, calls })));
    return this.#page.render();
  }

  #collectFleet({ online, offline, unknown, replicas, links, followers, certificates }: FleetStatus): void {
    for (const [state, count] of Object.entries({ online, offline, unknown })) this.#nodes.set({ state }, count);
    this.#replicas.set(replicas.length);
    this.#links.set(links);
    this.#followers.set(followers);
    this.#expiry.reset();
    for (const { name, expiresAt } of certificates) this.#expiry.set({ certificate: name }, expiresAt / 1_000);
  }

  #collectInstructions({ tokens, open, oldestOpen, ended, results }: ControlPlaneFigures): void {
    for (const [state, count] of Object.entries(tokens)) this.#tokens.set({ state }, count);
    this.#instructions.reset();
    for (const { type, state, count } of open) this.#instructions.set({ type, state }, count);
    this.#oldest.set(oldestOpen === undefined ? 0 : Math.max(0, this.#sources.now() - oldestOpen) / 1_000);
    this.#ended.reset();
    for (const { type, ending, count } of ended) this.#ended.inc({ type, result: ending }, count);
    show(this.#results, 'result', results);
  }

  #collectLinks({ sessions, enrolment, refusals, proposalsLimited }: ControlPlaneFigures): void {
    const { opened, heartbeats, unclaimed, superseded, duplicates } = sessions;
    replace(this.#opened, opened);
    replace(this.#beats, heartbeats);
    replace(this.#unclaimed, unclaimed);
    show(this.#lost, 'reason', { superseded, duplicate: duplicates });
    show(this.#registrations, 'result', enrolment);
    show(this.#refusals, 'reason', { ...refusals, proposals: proposalsLimited });
  }

  #collectListeners({ listeners }: ControlPlaneFigures): void {
    this.#connections.reset();
    this.#accepted.reset();
    for (const { listener, open, accepted, overflowed, waitedTooLong, timedOut, failedHandshakes } of listeners) {
      this.#connections.set({ listener }, open);
      const results = { accepted, overflowed, waited: waitedTooLong, timed_out: timedOut, handshake: failedHandshakes };
      for (const [result, count] of Object.entries(results)) this.#accepted.inc({ listener, result }, count);
    }
  }

  #gauge<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Gauge<Label> {
    return new Gauge({ name: `holdfast_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] });
  }

  #counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label> {
    return new Counter({ name: `holdfast_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] });
  }
}

function show<Label extends string>(counter: Counter<Label>, label: Label, counts: object): void {
  counter.reset();
  for (const [value, count] of Object.entries(counts)) counter.inc({ [label]: value } as Record<Label, string>, count);
}

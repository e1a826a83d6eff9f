import { splitListenerId } from '../../domain/dataplane/compile.js';
import { countEndpoints } from '../../domain/dataplane/endpoints.js';
import { type OutboxRecord, ZERO_SEQUENCE } from '../../domain/outbox/model.js';
import type { ClusterState } from '../../domain/resource/state.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { DataPlane, ListenerStats } from '../../ports/dataplane/data-plane.js';
import type { ListenerStatus } from '../../ports/dataplane/listener-status.js';
import type { BalancerStatus } from '../../ports/driving/api-balancer.js';
import type {
  DataPlaneStatus,
  FleetStatus,
  LinkStatus,
  ListenerTraffic,
  NodeEvent,
  NodeStatus,
  Operations,
  OverlayStatus,
  StatusProblem,
  VipStatus,
} from '../../ports/driving/operations.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import type { Agent } from '../agent/agent.js';

const EVENT_BATCH = 256;
/** A view that was not confirmed for so long is stale: several bookmarks, of which one comes every 5 s, are missing. */
const STALE_MS = 30_000;
/** A limit of open files that is too low makes thousands of listeners fail for one reason. */
const MOST_NAMED = 50;

export interface NodeOperationsParts {
  readonly agent: Agent;
  readonly view: StateView;
  readonly listeners: ListenerStatus;
  readonly dataPlane: Pick<DataPlane, 'info' | 'stats'>;
  readonly clock: Clock;
  readonly sources: readonly ProblemSource[];
  readonly version: string;
  readonly dataDir: string;
  readonly startedAt: number;
  /** Where metrics are served; empty while they are not. */
  readonly metricsListen: () => string;
  /** Of an agent. */
  readonly link?: () => LinkStatus;
  /** Of a control plane, which carries no traffic. */
  readonly fleet?: () => FleetStatus;
  /** Of an agent. */
  readonly overlay?: () => OverlayStatus | undefined;
  /** Of an agent. */
  readonly apiBalancer?: () => BalancerStatus;
  readonly vip?: () => VipStatus;
}

/** What this node is doing and what is wrong with it. */
export class NodeOperations implements Operations {
  readonly #parts: NodeOperationsParts;

  constructor(parts: NodeOperationsParts) {
    this.#parts = parts;
  }

  status(): NodeStatus {
    const { agent, view, version, dataDir, startedAt, metricsListen, link, fleet, overlay, apiBalancer, vip } = this.#parts;
    const { nodeId, hostname } = agent.identity();
    const states = agent.states();
    return {
      version,
      mode: agent.mode(),
      nodeId,
      hostname,
      dataDir,
      startedAt,
      ready: states.every(({ phase }) => phase === 'ready'),
      subsystems: states.map(({ name, phase, since, reason }) => ({ name, state: phase, since, reason })),
      log: {
        revision: view.state.revision,
        logId: view.state.cursor?.logId ?? '',
        objects: view.state.size,
        ageMs: this.#viewAgeMs(),
      },
      metricsListen: metricsListen(),
      problems: this.#problems(),
      ...(link === undefined ? {} : { link: link() }),
      ...(fleet === undefined ? { dataPlane: this.#dataPlane() } : { fleet: fleet() }),
      ...(overlay === undefined ? {} : { overlay: overlay() }),
      ...(apiBalancer === undefined ? {} : { apiBalancer: apiBalancer() }),
      ...(vip === undefined ? {} : { vip: vip() }),
    };
  }

  async *events(follow: boolean, options: CallOptions): AsyncIterable<NodeEvent> {
    const outbox = this.#parts.agent.outbox();
    let after = ZERO_SEQUENCE;
    try {
      while (!options.signal.aborted) {
        const records = await outbox.read(after, EVENT_BATCH, options);
        for (const record of records) {
          after = record.sequence;
          if (record.kind === 'event') yield nodeEvent(record);
        }
        if (records.length > 0) continue;
        if (!follow) return;
        await outbox.changed(after, options);
      }
    } catch (error) {
      if (!options.signal.aborted) throw error;
    }
  }

  traffic() {
    const { clock, dataPlane, view } = this.#parts;
    return { monotonicMs: clock.monotonic(), listeners: dataPlane.stats().map((stats) => trafficOf(stats, view.state)) };
  }

  #dataPlane(): DataPlaneStatus {
    const { dataPlane, listeners } = this.#parts;
    return {
      ...dataPlane.info(),
      failedListeners: listeners.failed().size,
      activeConnections: dataPlane.stats().reduce((total, { active }) => total + active, 0),
    };
  }

  /** Of a view that never was current: since the start. */
  #viewAgeMs(): number {
    const { view, clock, startedAt } = this.#parts;
    return view.ageMs() ?? Math.max(0, clock.now() - startedAt);
  }

  #problems(): readonly StatusProblem[] {
    return [
      ...this.#notReady(),
      ...this.#stale(),
      ...this.#failedListeners(),
      ...this.#parts.sources.flatMap((source) => source.problems()),
    ];
  }

  /** As it is now: what was late at the start and is ready since is well. */
  #notReady(): readonly StatusProblem[] {
    return this.#parts.agent.states().flatMap(({ name, phase, since, reason }) => {
      if (phase === 'ready' || reason === undefined) return [];
      return [{ subject: `subsystem ${name}`, reason, since, remedy: 'see the log of the daemon for what it waits for' }];
    });
  }

  #stale(): readonly StatusProblem[] {
    const ageMs = this.#viewAgeMs();
    if (ageMs <= STALE_MS) return [];
    const reason = 'the log cannot be followed: traffic goes on as of the last known state';
    const since = this.#parts.clock.now() - ageMs;
    return [{ subject: 'log', reason, since, remedy: 'see the log of the daemon for why; it is tried again by itself' }];
  }

  #failedListeners(): readonly StatusProblem[] {
    const failed = [...this.#parts.listeners.failed()];
    const named = failed.slice(0, MOST_NAMED).map(([id, { reason, since, remedy }]) => {
      const { service, port } = splitListenerId(id);
      return { subject: `service ${service} port ${port}`, reason: `cannot listen: ${reason}`, since, remedy };
    });
    const more = failed.length - named.length;
    if (more === 0) return named;
    const remedy = 'see `holdfast get services -A` for each';
    return [...named, { subject: 'dataplane', reason: `${more} more listeners cannot listen`, since: undefined, remedy }];
  }
}

function nodeEvent({ sequence, time, severity, message, labels }: OutboxRecord): NodeEvent {
  return { sequence, time, severity, subject: labels.subject ?? labels.subsystem ?? 'agent', message };
}

function trafficOf(stats: ListenerStats, state: ClusterState): ListenerTraffic {
  const { service, port } = splitListenerId(stats.id);
  const resource = state.service(service)?.resource;
  const protocol = resource?.spec.ports.find(({ name }) => name === port)?.protocol;
  return { ...stats, protocol, declaredEndpoints: resource === undefined ? 0 : countEndpoints(state, resource) };
}

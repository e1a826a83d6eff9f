import { splitListenerId } from '../../domain/dataplane/compile.js';
import { countEndpoints } from '../../domain/dataplane/endpoints.js';
import { ZERO_SEQUENCE } from '../../domain/outbox/model.js';
import type { ClusterState } from '../../domain/resource/state.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { DataPlane, ListenerStats } from '../../ports/dataplane/data-plane.js';
import type { ListenerStatus } from '../../ports/dataplane/listener-status.js';
import type { ListenerTraffic, NodeEvent, NodeStatus, Operations, StatusProblem } from '../../ports/driving/operations.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import type { Agent } from '../agent/agent.js';

const EVENT_BATCH = 256;

export interface NodeOperationsParts {
  readonly agent: Agent;
  readonly view: StateView;
  readonly listeners: ListenerStatus;
  readonly dataPlane: DataPlane;
  readonly clock: Clock;
  readonly sources: readonly ProblemSource[];
  readonly version: string;
  readonly dataDir: string;
  readonly startedAt: number;
  /** Where metrics are served; empty while they are not. */
  readonly metricsListen: () => string;
}

/** What this node is doing and what is wrong with it. */
export class NodeOperations implements Operations {
  readonly #parts: NodeOperationsParts;

  constructor(parts: NodeOperationsParts) {
    this.#parts = parts;
  }

  status(): NodeStatus {
    const { agent, view, dataPlane, version, dataDir, startedAt, metricsListen } = this.#parts;
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
        ageMs: view.ageMs() ?? 0,
      },
      dataPlane: {
        ...dataPlane.info(),
        failedListeners: this.#parts.listeners.failed().size,
        activeConnections: dataPlane.stats().reduce((total, { active }) => total + active, 0),
      },
      metricsListen: metricsListen(),
      problems: this.#problems(),
    };
  }

  async *events(follow: boolean, options: CallOptions): AsyncIterable<NodeEvent> {
    const outbox = this.#parts.agent.outbox();
    let after = ZERO_SEQUENCE;
    while (!options.signal.aborted) {
      const records = await outbox.read(after, EVENT_BATCH, options);
      for (const { sequence, time, kind, severity, message, labels } of records) {
        after = sequence;
        if (kind === 'event') yield { sequence, time, severity, subject: labels.subject ?? '', message };
      }
      if (records.length > 0) continue;
      if (!follow) return;
      await outbox.changed(after, options).catch(() => {});
    }
  }

  traffic() {
    const { clock, dataPlane, view } = this.#parts;
    return { monotonicMs: clock.monotonic(), listeners: dataPlane.stats().map((stats) => trafficOf(stats, view.state)) };
  }

  #problems(): readonly StatusProblem[] {
    const { agent, listeners, sources } = this.#parts;
    const failed = [...listeners.failed()].map(([id, { reason, since, remedy }]) => ({
      subject: `listener ${id}`,
      reason,
      since,
      remedy,
    }));
    const unready = agent.readyError();
    const slow =
      unready === undefined
        ? []
        : [{ subject: 'agent', reason: unready.message, since: undefined, remedy: 'see the subsystems that are not ready' }];
    return [...slow, ...failed, ...sources.flatMap((source) => source.problems())];
  }
}

function trafficOf(stats: ListenerStats, state: ClusterState): ListenerTraffic {
  const { service, port } = splitListenerId(stats.id);
  const resource = state.service(service)?.resource;
  const protocol = resource?.spec.ports.find(({ name }) => name === port)?.protocol;
  return { ...stats, protocol, declaredEndpoints: resource === undefined ? 0 : countEndpoints(state, resource) };
}

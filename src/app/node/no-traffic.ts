import type { DataPlane, DataPlaneInfo } from '../../ports/dataplane/data-plane.js';
import type { ListenerStatus } from '../../ports/dataplane/listener-status.js';

const nothing: DataPlaneInfo = { threads: 0, listenerBudget: 0, listeners: 0, connections: 0, connectionLimit: 0 };

/** The data plane of a process that carries no traffic: a control plane. */
export const noTraffic: Pick<DataPlane, 'info' | 'stats' | 'statsOf'> = {
  info: () => nothing,
  stats: () => [],
  statsOf: () => undefined,
};

/** Its listeners: those of a service are on the nodes. */
export const noListeners: ListenerStatus = {
  stateOf: () => ({ state: 'elsewhere' }),
  failed: () => new Map(),
  settled: async () => {},
};

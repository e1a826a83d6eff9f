import type { NodeName } from '../identity/model.js';
import { durationMs } from '../kernel/duration.js';
import { formatAddressPort, type IpAddress, type PortNumber } from '../kernel/network.js';
import { type Change, type LogKey, type Precondition, ZERO_REVISION } from '../log/model.js';
import type { QualifiedName } from '../resource/model.js';
import type { ClusterState } from '../resource/state.js';
import { checkedPort, endpointsOf } from './endpoints.js';
import {
  formatHealthRecord,
  type HealthCheck,
  healthKey,
  healthOfKey,
  type KnownHealth,
  type Thresholds,
  type Verdict,
} from './health.js';

/** Which endpoints are this node's to check. */
export interface Host {
  readonly nodeId: NodeName;
  /** There is no other node: endpoints that name none are its own as well. */
  readonly alone: boolean;
}

/** One endpoint to check, and how. */
export interface HealthTarget extends Thresholds {
  readonly key: LogKey;
  readonly service: QualifiedName;
  /** `address:port` */
  readonly target: string;
  readonly address: IpAddress;
  readonly port: PortNumber;
  readonly check: HealthCheck;
  readonly intervalMs: number;
  readonly timeoutMs: number;
}

/** What this node checks of one service; an address and port that several endpoints have is checked by the node of the first. */
export function healthTargets(state: ClusterState, name: QualifiedName, { nodeId, alone }: Host): readonly HealthTarget[] {
  const service = state.service(name)?.resource;
  const health = service?.spec.health;
  const portOf = service && checkedPort(service.spec.ports, health);
  if (service === undefined || health === undefined || portOf === undefined) return [];
  const { interval, timeout, rise, fall, ...check } = health;
  const targets = new Map<string, HealthTarget | undefined>();
  for (const { endpoint } of endpointsOf(state, service)) {
    const port = portOf(endpoint);
    const target = formatAddressPort(endpoint.address, port);
    if (targets.has(target)) continue;
    const mine = endpoint.node === undefined ? alone : endpoint.node === nodeId;
    const times = { intervalMs: durationMs(interval) ?? 0, timeoutMs: durationMs(timeout) ?? 0 };
    const whom = { key: healthKey(name, target), service: name, target, address: endpoint.address, port };
    targets.set(target, mine ? { ...whom, check, ...times, rise, fall } : undefined);
  }
  return [...targets.values()].filter((target) => target !== undefined);
}

/** What the log shall say of one endpoint: a verdict, or nothing as it is not checked here; undefined leaves it as it is. */
export type Wanted = Verdict | 'gone' | undefined;

/**
 * The changes that make the log say what is wanted, of those keys. A node takes back only what it has written itself, or what nobody
 * else can take back.
 */
export function planHealth(
  state: ClusterState,
  wanted: Iterable<readonly [LogKey, Wanted]>,
  { nodeId, alone }: Host,
): { readonly changes: readonly Change[]; readonly preconditions: readonly Precondition[] } {
  const changes: Change[] = [];
  const preconditions: Precondition[] = [];
  for (const [key, verdict] of wanted) {
    const place = healthOfKey(key);
    const held = place && state.health.get(place.service, place.target);
    const value = changeOf(verdict, held, { nodeId, alone });
    if (value === undefined) continue;
    changes.push({ key, value });
    preconditions.push({ key, revision: held?.revision ?? ZERO_REVISION });
  }
  return { changes, preconditions };
}

/** Undefined when nothing is to change. */
function changeOf(wanted: Wanted, held: KnownHealth | undefined, { nodeId, alone }: Host): string | null | undefined {
  if (wanted === undefined) return undefined;
  if (wanted === 'gone') return held !== undefined && (held.node === nodeId || alone) ? null : undefined;
  const value = formatHealthRecord({ ...wanted, node: nodeId });
  return held !== undefined && formatHealthRecord(held) === value ? undefined : value;
}

import { splitListenerId } from '../../domain/dataplane/compile.js';
import { formatAddressPort } from '../../domain/kernel/network.js';
import { KINDS, type Kind, type ResourceRef } from '../../domain/resource/model.js';
import { parseKind } from '../../domain/resource/selector.js';
import type { BalancerStatus } from '../../ports/driving/api-balancer.js';
import type { Explanation, PortExplanation } from '../../ports/driving/explainer.js';
import type {
  DataPlaneStatus,
  FleetStatus,
  LinkStatus,
  ListenerTraffic,
  NodeEvent,
  NodeStatus,
  OverlayStatus,
  VipStatus,
} from '../../ports/driving/operations.js';
import type { AppliedResource, ApplyOutcome, ObjectChange, ResourceSelector } from '../../ports/driving/resources.js';
import * as wire from '../generated/holdfast/admin/v1/admin.js';

const actions = {
  created: wire.Action.CREATED,
  updated: wire.Action.UPDATED,
  unchanged: wire.Action.UNCHANGED,
  deleted: wire.Action.DELETED,
} as const;

const changeTypes = {
  added: wire.ChangeType.ADDED,
  modified: wire.ChangeType.MODIFIED,
  deleted: wire.ChangeType.DELETED,
} as const;

/** @throws AgentError `resource.invalid` for an unknown kind */
export function refFromWire({ kind, namespace, name }: wire.ResourceRef): ResourceRef {
  return { kind: kindFromWire(kind), namespace, name };
}

/** @throws AgentError `resource.invalid` for an unknown kind */
export function selectorFromWire(selector: wire.Selector | undefined): ResourceSelector {
  const { kind = '', namespace = '', name = '', labels = '' } = selector ?? {};
  return {
    kind: kind === '' ? undefined : kindFromWire(kind),
    namespace: namespace === '' ? undefined : namespace,
    name: name === '' ? undefined : name,
    labels: labels === '' ? undefined : labels,
  };
}

export function applyToWire(outcome: ApplyOutcome): wire.ApplyResponse {
  return outcome.outcome === 'invalid'
    ? { revision: 0n, resources: [], problems: [...outcome.problems] }
    : { revision: outcome.revision, resources: outcome.resources.map(appliedToWire), problems: [] };
}

function appliedToWire({ ref, action, addresses, before, after, warnings }: AppliedResource): wire.AppliedResource {
  return {
    ref,
    action: actions[action],
    addresses: [...addresses],
    beforeJson: before === undefined ? '' : JSON.stringify(before),
    afterJson: after === undefined ? '' : JSON.stringify(after),
    warnings: [...warnings],
  };
}

export function changeToWire({ revision, type, object }: ObjectChange): wire.WatchResponse {
  return { revision, type: changeTypes[type], objectJson: JSON.stringify(object) };
}

export function statusToWire(status: NodeStatus): wire.StatusResponse {
  return {
    version: status.version,
    mode: status.mode,
    nodeId: status.nodeId,
    hostname: status.hostname,
    dataDir: status.dataDir,
    startedAtMs: BigInt(Math.round(status.startedAt)),
    ready: status.ready,
    subsystems: status.subsystems.map(({ name, state, since, reason }) => ({
      name,
      state,
      sinceMs: BigInt(Math.round(since)),
      reason: reason ?? '',
    })),
    log: { ...status.log, ageMs: BigInt(Math.round(status.log.ageMs)) },
    dataPlane: status.dataPlane === undefined ? undefined : dataPlaneToWire(status.dataPlane),
    metricsListen: status.metricsListen,
    problems: status.problems.map(({ subject, reason, since, remedy }) => ({
      subject,
      reason,
      sinceMs: BigInt(Math.round(since ?? 0)),
      remedy,
    })),
    link: status.link === undefined ? undefined : linkToWire(status.link),
    fleet: status.fleet === undefined ? undefined : fleetToWire(status.fleet),
    overlay: status.overlay === undefined ? undefined : overlayToWire(status.overlay),
    vip: status.vip === undefined ? undefined : vipToWire(status.vip),
    apiBalancer: status.apiBalancer === undefined ? undefined : balancerToWire(status.apiBalancer),
  };
}

function dataPlaneToWire({ activeConnections, connectionLimit, ...rest }: DataPlaneStatus): wire.DataPlaneStatus {
  return { ...rest, activeConnections: BigInt(activeConnections), connectionLimit: BigInt(connectionLimit) };
}

function fleetToWire({ replicas, stores, certificates, ...rest }: FleetStatus): wire.FleetStatus {
  return {
    ...rest,
    replicas: replicas.map(({ id, silentMs }) => ({ id, silentMs: milliseconds(silentMs) })),
    stores: stores.map(({ failingSince, ...store }) => ({ ...store, failingSinceMs: milliseconds(failingSince) })),
    certificates: certificates.map(({ name, expiresAt }) => ({ name, expiresAtMs: milliseconds(expiresAt) })),
  };
}

function linkToWire({ connected, lostSince, nextAttemptAt, lastError }: LinkStatus): wire.LinkStatus {
  const { server, skewMs, beatMs } = connected ?? {};
  return {
    connectedSinceMs: milliseconds(connected?.since),
    address: connected?.address ?? '',
    ...{ server: server?.id ?? '', fleet: server?.fleet ?? '', epoch: server?.epoch ?? 0n },
    skewMs: skewMs === undefined ? undefined : milliseconds(skewMs),
    beatMs: beatMs === undefined ? undefined : milliseconds(beatMs),
    lostSinceMs: milliseconds(lostSince),
    nextAttemptMs: milliseconds(nextAttemptAt),
    lastError: lastError?.message ?? '',
    lastErrorMs: milliseconds(lastError?.at),
  };
}

/** A machine without HAProxy has none. */
function balancerToWire({ state, port, servers }: BalancerStatus): wire.ApiBalancerStatus | undefined {
  if (state === 'absent') return undefined;
  const listed = servers.filter((server) => server.state !== 'draining');
  return { state, port, servers: listed.length, up: listed.filter((server) => server.state === 'up').length };
}

function overlayToWire({ link, peers, ...overlay }: OverlayStatus): wire.OverlayStatus {
  return {
    ...overlay,
    link: link ?? '',
    peers: peers.map(({ handshakeAgeMs, receivedBytes, sentBytes, ranges, ...peer }) => ({
      ...peer,
      handshakeAgeMs: handshakeAgeMs === undefined ? undefined : milliseconds(handshakeAgeMs),
      receivedBytes: BigInt(receivedBytes),
      sentBytes: BigInt(sentBytes),
      ranges: [...ranges],
    })),
  };
}

function vipToWire({ since, leftMs, counts: _, ...vip }: VipStatus): wire.VipStatus {
  return { ...vip, sinceMs: milliseconds(since), leftMs: milliseconds(leftMs) };
}

/** 0 for what has not happened. */
function milliseconds(time: number | undefined): bigint {
  return BigInt(Math.round(time ?? 0));
}

export function eventToWire({ sequence, time, severity, subject, message }: NodeEvent): wire.EventsResponse {
  return { sequence, timeMs: BigInt(Math.round(time)), severity, subject, message };
}

export function trafficToWire(stats: ListenerTraffic): wire.ServiceTraffic {
  const { service, port } = splitListenerId(stats.id);
  const [namespace = '', name = ''] = service.split('/');
  return {
    namespace,
    service: name,
    port,
    active: BigInt(stats.active),
    completed: BigInt(stats.completed),
    failed: BigInt(stats.failed),
    refused: BigInt(stats.refused),
    reset: BigInt(stats.reset),
    drained: BigInt(stats.drained),
    bytesIn: BigInt(stats.bytesIn),
    bytesOut: BigInt(stats.bytesOut),
    protocol: stats.protocol ?? '',
    limited: BigInt(stats.limited),
    evicted: BigInt(stats.evicted),
    dropped: BigInt(stats.dropped),
    endpoints: stats.endpoints.map((endpoint) => ({
      address: formatAddressPort(endpoint.address, endpoint.port),
      active: BigInt(endpoint.active),
      total: BigInt(endpoint.total),
      draining: endpoint.draining,
      ejected: endpoint.ejected,
    })),
  };
}

export function explanationToWire({ nodeId, revision, ports }: Explanation): wire.ExplainResponse {
  return { nodeId, revision, ports: ports.map(explainedPortToWire) };
}

function explainedPortToWire({ name, port, protocol, listener, listen, choice, outcome, from, endpoints }: PortExplanation) {
  const { reason, remedy } = listener.state === 'failed' ? listener : { reason: '', remedy: '' };
  return {
    ...{ name, port, protocol, state: listener.state, listen, reason, remedy, choice, outcome, from },
    endpoints: endpoints.map(({ node, since, active, ...endpoint }) => ({
      ...endpoint,
      node: node ?? '',
      sinceMs: BigInt(Math.round(since ?? 0)),
      active: BigInt(active),
    })),
  };
}

function kindFromWire(text: string): Kind {
  return KINDS.find((kind) => kind === text) ?? parseKind(text);
}

import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../domain/kernel/printable.js';
import type {
  ApiBalancerStatus,
  DataPlaneStatus,
  EndpointTraffic,
  LinkStatus,
  OverlayStatus,
  ServiceTraffic,
  StatusResponse,
  TopResponse,
  VipStatus,
} from '../generated/holdfast/admin/v1/admin.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, withClient } from './context.js';
import { certificateTable, fleetRows } from './fleet-status.js';
import { age, bytes, CLEAR_SCREEN, json, painted, structured, table } from './output.js';

/** Rates are between two samples this far apart. */
const TOP_INTERVAL_MS = 1_000;

export async function status(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const response = await withClient(context, options, (client) => client.status(context));
  if (options.output !== 'table') context.console.out(structured(options.output, response));
  else context.console.out(formatStatus(context, response));
  return response.problems.length > 0 ? exitCodes.degraded : exitCodes.done;
}

function formatStatus({ console }: CliContext, status: StatusResponse): string {
  const degraded = status.problems.length > 0;
  const words = degraded
    ? painted(console, 'yellow', 'degraded')
    : painted(console, 'green', status.ready ? 'ready' : 'starting');
  const { log, dataPlane } = status;
  const facts = table(
    ['NODE', status.nodeId],
    [
      ['state', words],
      ['mode', status.mode],
      ['version', status.version],
      ['up', age(Date.now() - Number(status.startedAtMs))],
      ['data', status.dataDir],
      ['log', `revision ${log?.revision ?? 0n}, ${log?.objects ?? 0} objects, current ${age(Number(log?.ageMs ?? 0n))} ago`],
      ...(dataPlane === undefined ? [] : [['data plane', dataPlaneWords(dataPlane)]]),
      ['metrics', status.metricsListen === '' ? 'off' : `http://${status.metricsListen}/metrics`],
      ...(status.link === undefined ? [] : linkRows(status.link)),
      ...(status.fleet === undefined ? [] : fleetRows(status.fleet)),
      ...(status.overlay === undefined ? [] : overlayRows(status.overlay)),
      ...(status.apiBalancer === undefined ? [] : [balancerRow(status.apiBalancer)]),
      ...(status.vip === undefined ? [] : [['virtual IP', vipWords(status.vip)]]),
    ],
  );
  const subsystems = table(
    ['SUBSYSTEM', 'STATE', 'SINCE', 'REASON'],
    status.subsystems.map(({ name, state, sinceMs, reason }) => [name, state, age(Date.now() - Number(sinceMs)), reason]),
  );
  const overlay = status.overlay === undefined || status.overlay.peers.length === 0 ? [] : ['\n', overlayPeers(status.overlay)];
  const certificates = status.fleet === undefined ? [] : ['\n', certificateTable(status.fleet)];
  return [facts, '\n', subsystems, ...certificates, ...overlay, ...(degraded ? ['\n', problems(status)] : [])].join('');
}

function dataPlaneWords(dataPlane: DataPlaneStatus): string {
  const { threads, listeners, listenerBudget, activeConnections, connectionLimit } = dataPlane;
  const connections = `${activeConnections} of ${connectionLimit} connections`;
  return `${threads} threads, ${listeners} of ${listenerBudget} listeners, ${connections}`;
}

function linkRows(link: LinkStatus): readonly (readonly string[])[] {
  const { connectedSinceMs, lostSinceMs, nextAttemptMs, lastError, lastErrorMs } = link;
  const next = nextAttemptMs === 0n ? 'being tried' : `next try in ${age(Number(nextAttemptMs) - Date.now())}`;
  const state = connectedSinceMs === 0n ? `down for ${ago(lostSinceMs)}, ${next}` : connectedWords(link);
  return [['link', state], ...(lastError === '' ? [] : [['last error', `${ago(lastErrorMs)} ago: ${lastError}`]])];
}

function connectedWords({ address, connectedSinceMs, server, epoch, skewMs, beatMs }: LinkStatus): string {
  return [
    `up for ${ago(connectedSinceMs)} with ${address}`,
    ...(server === '' ? [] : [`server ${server}`, `epoch ${epoch}`]),
    ...(skewMs === undefined ? [] : [`its clock ${skewMs} ms from ours`]),
    ...(beatMs === undefined ? [] : [`answered ${age(Number(beatMs))} ago`]),
  ].join(', ');
}

/** A node without an interface is in no overlay. */
function overlayRows({ link, address, mtu, peers }: OverlayStatus): readonly (readonly string[])[] {
  if (link === '') return [];
  const up = peers.filter(({ state }) => state === 'up').length;
  return [['overlay', `${address || 'no address'} by ${link}, MTU ${mtu}, ${up} of ${peers.length} peers up`]];
}

function balancerRow({ state, port, servers, up }: ApiBalancerStatus): readonly string[] {
  return ['api balancer', `${state} on port ${port}, ${up} of ${servers} API servers up`];
}

function vipWords({ address, held, sinceMs, leftMs, generation, alone }: VipStatus): string {
  const state = held ? `here for ${ago(sinceMs)}, for ${age(Number(leftMs))} more unless it is confirmed` : `not here`;
  return `${address} ${state}, generation ${generation}${alone ? ', held without the control plane' : ''}`;
}

function overlayPeers({ peers }: OverlayStatus): string {
  return table(
    ['PEER', 'KEY', 'STATE', 'HANDSHAKE', 'ENDPOINT', 'IN', 'OUT'],
    peers.map(({ address, publicKey, state, handshakeAgeMs, endpoint, receivedBytes, sentBytes }) => [
      address,
      `${publicKey.slice(0, 8)}...`,
      state,
      handshakeAgeMs === undefined ? 'never' : `${age(Number(handshakeAgeMs))} ago`,
      endpoint || '-',
      bytes(Number(receivedBytes)),
      bytes(Number(sentBytes)),
    ]),
  );
}

function ago(timeMs: bigint): string {
  return age(Date.now() - Number(timeMs));
}

function problems({ problems: all }: StatusResponse): string {
  return table(
    ['PROBLEM', 'REASON', 'SINCE', 'WHAT TO DO'],
    all.map(({ subject, reason, sinceMs, remedy }) => [
      subject,
      reason,
      sinceMs === 0n ? '-' : age(Date.now() - Number(sinceMs)),
      remedy,
    ]),
  );
}

export async function events(context: CliContext, options: GlobalOptions & { readonly watch: boolean }): Promise<ExitCode> {
  const { console } = context;
  await withClient(context, options, async (client) => {
    for await (const event of client.events({ follow: options.watch }, context)) {
      const time = new Date(Number(event.timeMs)).toISOString();
      const line = printable(`${time}  ${event.severity}  ${event.subject}  ${event.message}`);
      if (options.output === 'table') console.out(`${line}\n`);
      else if (options.output === 'json') console.out(json({ ...event, timeMs: undefined, time }));
      else console.out(`---\n${structured('yaml', { ...event, timeMs: undefined, time })}`);
    }
  });
  return exitCodes.done;
}

export interface TopOptions extends GlobalOptions {
  readonly namespace: string;
  readonly allNamespaces: boolean;
  readonly once: boolean;
}

/** Traffic per service port: once, or on a terminal again and again until interrupted. */
export async function top(context: CliContext, options: TopOptions): Promise<ExitCode> {
  const { console, signal } = context;
  const once = options.once || !console.interactive || options.output !== 'table';
  return withClient(context, options, async (client) => {
    const request = { namespace: options.allNamespaces ? '' : options.namespace };
    let before = await client.top(request, context);
    do {
      await sleep(TOP_INTERVAL_MS, undefined, { signal }).catch(() => {});
      if (signal.aborted) return exitCodes.done;
      const now = await client.top(request, context);
      const rows = rates(before, now);
      if (options.output !== 'table') console.out(structured(options.output, { services: rows }));
      else {
        if (!once) console.out(CLEAR_SCREEN);
        console.out(formatTop(rows));
      }
      before = now;
    } while (!once);
    return exitCodes.done;
  });
}

type Rates = ReturnType<typeof rates>[number];

function rates(before: TopResponse, now: TopResponse) {
  const seconds = Math.max(0.001, Number(now.monotonicMs - before.monotonicMs) / 1000);
  const former = new Map(before.services.map((service) => [keyOf(service), service]));
  return now.services.map((service) => {
    const was = former.get(keyOf(service));
    // A service that was deleted and made again meanwhile counts from nothing.
    const perSecond = (count: (one: ServiceTraffic) => bigint) =>
      Math.max(0, Number(count(service) - (was === undefined ? 0n : count(was))) / seconds);
    return {
      ...service,
      newPerSecond: perSecond(acceptedBy),
      inPerSecond: perSecond(({ bytesIn }) => bytesIn),
      outPerSecond: perSecond(({ bytesOut }) => bytesOut),
    };
  });
}

function formatTop(rows: readonly Rates[]): string {
  const busiest = [...rows].sort((a, b) => b.inPerSecond + b.outPerSecond - (a.inPerSecond + a.outPerSecond));
  return table(
    ['NAMESPACE', 'SERVICE', 'PORT', 'ACTIVE', 'NEW/s', 'IN/s', 'OUT/s', 'TOTAL', 'FAILED', 'SPREAD'],
    busiest.map((row) => [
      row.namespace,
      row.service,
      row.protocol === 'udp' ? `${row.port} (udp)` : row.port,
      String(row.active),
      row.newPerSecond.toFixed(1),
      bytes(Math.round(row.inPerSecond)),
      bytes(Math.round(row.outPerSecond)),
      String(acceptedBy(row)),
      String(row.failed + row.refused),
      row.endpoints.map(spread).join(' '),
    ]),
  );
}

function spread({ address, total, draining, ejected }: EndpointTraffic): string {
  const state = draining ? ' (draining)' : ejected ? ' (ejected)' : '';
  return `${address}=${total}${state}`;
}

function acceptedBy({ active, completed, failed, refused, reset, drained }: ServiceTraffic): bigint {
  return active + completed + failed + refused + reset + drained;
}

function keyOf({ namespace, service, port }: ServiceTraffic): string {
  return `${namespace}/${service}/${port}`;
}

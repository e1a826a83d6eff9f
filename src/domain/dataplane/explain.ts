import type { NodeName } from '../identity/model.js';
import type { IpAddress } from '../kernel/network.js';
import { nameOf, type ServicePort, type ServiceResource } from '../resource/model.js';
import type { ClusterState } from '../resource/state.js';
import { refusesNow, usedEndpoint } from './compile.js';
import { decidePath, type PathDecision } from './data-path.js';
import { endpointsOf, type JudgedEndpoint, judgeEndpoints } from './endpoints.js';
import type { Algorithm, Protocol } from './model.js';
import { chooseByHash } from './rendezvous.js';

/** What the data plane says of an endpoint at one port. */
export interface LiveEndpoint {
  readonly active: number;
  readonly draining: boolean;
  readonly ejected: boolean;
}

/** `standby`: its tier is not used while an endpoint of this node can be. `draining`: no longer an endpoint, its connections go on. */
export type ExplainedVerdict =
  | 'chosen'
  | 'standby'
  | 'ejected'
  | 'not ready'
  | 'unhealthy'
  | 'other node'
  | 'duplicate'
  | 'draining';

export interface ExplainedEndpoint {
  readonly name: string;
  /** `address:port` */
  readonly target: string;
  readonly source: string;
  readonly node: string | undefined;
  readonly weight: number;
  readonly tier: number;
  readonly verdict: ExplainedVerdict;
  /** Of new connections, 0 to 1. */
  readonly share: number;
  /** Why, in words; empty when the verdict says it. */
  readonly reason: string;
  /** Since when it is unhealthy, milliseconds since the Unix epoch. */
  readonly since: number | undefined;
  readonly active: number;
}

/** Where new connections of one port go on this node, and why. */
export interface ExplainedPort {
  readonly name: string;
  readonly port: number;
  readonly protocol: Protocol;
  /** How one of them is chosen, in words. */
  readonly choice: string;
  /** What becomes of a new connection, in one sentence without a full stop. */
  readonly outcome: string;
  /** Which endpoint the asked client address gets; absent when nobody asked. */
  readonly from?: ExplainedClient;
  readonly endpoints: readonly ExplainedEndpoint[];
}

export interface ExplainedClient {
  readonly address: IpAddress;
  /** Empty when it cannot be known beforehand, or there is none. */
  readonly target: string;
  /** Why it is that one or none, in words. */
  readonly reason: string;
}

/** Of the node that is asked. */
export interface ExplainingNode {
  readonly nodeId: NodeName;
  /** What its data plane says, by `address:port`. */
  readonly live: ReadonlyMap<string, LiveEndpoint>;
  /** As in `StateView`. */
  readonly fresh: boolean;
  /** Its kernel carries services, not the proxy alone. */
  readonly kernel: boolean;
}

/** From the same judgement as the table of the data plane. */
export function explainPort(
  state: ClusterState,
  service: ServiceResource,
  port: ServicePort,
  { nodeId, live, fresh, kernel }: ExplainingNode,
  client?: IpAddress,
): ExplainedPort {
  const judged = judgeEndpoints(endpointsOf(state, service), service, port, nodeId);
  const address = state.vips.ofService(nameOf(service));
  const used = judged.flatMap((each) => usedEndpoint(each, nodeId));
  const decision = kernel && address !== undefined ? decidePath(service.spec, address, used) : undefined;
  const shares = sharesOf(judged, live);
  const endpoints = judged.map((each) => explain(each, shares.get(each), live.get(each.target)));
  const known = new Set(judged.filter(({ withheld }) => withheld?.why !== 'duplicate').map(({ target }) => target));
  const gone = [...live]
    .filter(([target, { draining }]) => draining && !known.has(target))
    .map(([target, each]) => withdrawn(target, each));
  const { name, port: number, protocol } = port;
  return {
    name,
    port: number,
    protocol,
    choice: choiceOf(service, protocol, decision),
    outcome: refusesNow(service, fresh) ? staleOutcome(protocol, decision) : outcomeOf(endpoints, protocol, decision),
    ...(client === undefined ? {} : { from: explainClient(client, service, [...shares.keys()], decision) }),
    endpoints: [...endpoints, ...gone],
  };
}

function explainClient(
  address: IpAddress,
  { spec }: ServiceResource,
  candidates: readonly JudgedEndpoint[],
  decision: PathDecision | undefined,
): ExplainedClient {
  const { balance, affinity } = spec;
  const places = candidates.map(({ endpoint, port, target }) => ({ ...endpoint, port, target }));
  const [only] = places;
  if (only === undefined) return { address, target: '', reason: 'no endpoint can be used' };
  const kept = affinity === undefined ? '' : `; what it was given within ${affinity.clientIP.timeout} it keeps`;
  if (places.length === 1) return { address, target: only.target, reason: `it is the only one${kept}` };
  // The kernel has a hash of its own.
  const chosen = balance.algorithm === 'source-hash' && decision?.path !== 'kernel' ? chooseByHash(address, places) : undefined;
  if (chosen !== undefined) return { address, target: chosen.target, reason: `by the hash of its address${kept}` };
  const teller = decision?.path === 'kernel' ? `${balance.algorithm} in the kernel` : balance.algorithm;
  return { address, target: '', reason: `${teller} does not tell beforehand${kept}` };
}

/** Of those that are chosen now: the best tier that has any, without the ejected ones unless all of them are. */
function sharesOf(
  judged: readonly JudgedEndpoint[],
  live: ReadonlyMap<string, LiveEndpoint>,
): ReadonlyMap<JudgedEndpoint, number> {
  const usable = judged.filter(({ withheld }) => withheld === undefined);
  const well = usable.filter(({ target }) => live.get(target)?.ejected !== true);
  const candidates = well.length > 0 ? well : usable;
  const best = Math.min(...candidates.map(({ tier }) => tier));
  const chosen = candidates.filter(({ tier }) => tier === best);
  const sum = chosen.reduce((total, { endpoint }) => total + endpoint.weight, 0);
  return new Map(chosen.map((each) => [each, each.endpoint.weight / sum]));
}

function explain(judged: JudgedEndpoint, share: number | undefined, live: LiveEndpoint | undefined): ExplainedEndpoint {
  const { endpoint, source, target, tier } = judged;
  const active = live?.active ?? 0;
  const { verdict, reason, since } = verdictOf(judged, share, live);
  const drains = judged.withheld !== undefined && judged.withheld.why !== 'duplicate' && live?.draining === true;
  return {
    name: endpoint.name,
    target,
    source,
    node: endpoint.node,
    weight: endpoint.weight,
    tier,
    verdict,
    share: share ?? 0,
    reason: [reason, ...(drains ? ['draining'] : [])].filter((part) => part !== '').join('; '),
    since,
    active: judged.withheld?.why === 'duplicate' ? 0 : active,
  };
}

function verdictOf({ withheld, endpoint }: JudgedEndpoint, share: number | undefined, live: LiveEndpoint | undefined) {
  const verdict = (name: ExplainedVerdict, reason = '', since?: number) => ({ verdict: name, reason, since });
  switch (withheld?.why) {
    case 'not-ready':
      return verdict('not ready', 'its publisher says so');
    case 'unhealthy':
      return verdict('unhealthy', withheld.reason, withheld.since);
    case 'other-node':
      return verdict('other node', `local-only, and it runs on ${endpoint.node ?? 'no node that is named'}`);
    case 'duplicate':
      return verdict('duplicate', 'an earlier one has the same address and port');
    case undefined:
      if (live?.ejected === true) return verdict('ejected', 'its dials failed several times in a row');
      return share === undefined ? verdict('standby', 'used when no endpoint of this node can be') : verdict('chosen');
  }
}

function withdrawn(target: string, { active }: LiveEndpoint): ExplainedEndpoint {
  const none = { name: '', source: '', node: undefined, weight: 0, tier: 0, share: 0, since: undefined };
  return { ...none, target, verdict: 'draining', reason: 'withdrawn; its connections go on until they end or are cut', active };
}

const CHOICES: Readonly<Record<Algorithm, string>> = {
  random: 'at random, by weight',
  'round-robin': 'in turn, by weight, within each worker thread',
  'least-connections': 'the one with the fewest open connections for its weight',
  'source-hash': "by a hash of the client's address, so that one address keeps its endpoint while that is there",
};

function choiceOf({ spec }: ServiceResource, protocol: Protocol, decision: PathDecision | undefined): string {
  const { balance, affinity, limits, proxyProtocol } = spec;
  const what = protocol === 'tcp' ? 'connection' : 'flow';
  return [
    `each new ${what}: ${CHOICES[balance.algorithm]}`,
    ...(balance.locality === 'prefer-local' ? ['endpoints of this node first'] : []),
    ...(balance.locality === 'local-only' ? ['endpoints of this node only'] : []),
    ...(affinity === undefined ? [] : [`a client's address keeps its endpoint for ${affinity.clientIP.timeout}`]),
    ...(limits === undefined ? [] : [`at most ${limits.connections} ${what}s at once`]),
    ...(protocol === 'tcp' && proxyProtocol?.accept === true ? ['clients begin with a PROXY header'] : []),
    ...(protocol === 'tcp' && proxyProtocol?.send !== undefined ? [`endpoints get a PROXY header ${proxyProtocol.send}`] : []),
    ...(decision === undefined ? [] : [carriedBy(decision)]),
  ].join('; ');
}

function carriedBy({ because, path }: PathDecision): string {
  return `carried by the ${path}${because === undefined ? '' : `, as ${because}`}`;
}

/** The proxy's UDP socket stays open; the kernel answers that there is nobody. */
function refusalOf(protocol: Protocol, decision: PathDecision | undefined): string {
  if (protocol === 'tcp') return 'new connections are refused';
  return decision?.path === 'kernel' ? 'new flows are refused' : 'new flows are dropped';
}

function staleOutcome(protocol: Protocol, decision: PathDecision | undefined): string {
  return `${refusalOf(protocol, decision)}: the log cannot be followed, and the service says onStale: refuse`;
}

function outcomeOf(endpoints: readonly ExplainedEndpoint[], protocol: Protocol, decision: PathDecision | undefined): string {
  const what = protocol === 'tcp' ? 'new connections' : 'new flows';
  const refused = refusalOf(protocol, decision);
  if (endpoints.length === 0) return `${refused}: the service has no endpoints`;
  const sharing = endpoints.filter(({ share }) => share > 0);
  if (sharing.length > 0) {
    const tried = sharing.every(({ verdict }) => verdict === 'ejected') ? ', all of them ejected and tried nevertheless' : '';
    return `${what} go to ${sharing.length} of ${endpoints.length} endpoints${tried}`;
  }
  const counts = new Map<string, number>();
  for (const { verdict } of endpoints) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  const why = [...counts].map(([verdict, count]) => `${count} ${verdict}`).join(', ');
  return `${refused}: none of its ${endpoints.length} endpoints can be used (${why})`;
}

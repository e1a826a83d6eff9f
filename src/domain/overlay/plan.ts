import {
  type AddressPort,
  containsRange,
  formatAddressPort,
  formatIpv4Range,
  type IpAddress,
  type Ipv4Range,
  isIpv6,
} from '../kernel/network.js';
import {
  type EndpointChoice,
  formatOverlayAddress,
  networkOf,
  type Observed,
  type ObservedPeer,
  type OverlayAddress,
  type OverlayConfig,
  type PeerFailure,
  USUAL_MTU,
  type WantedPeer,
  type WantedSet,
} from './model.js';
import { refuseOverlaps } from './overlaps.js';
import type { OverlayMemory, PeerMemory } from './readings.js';

/** One reading may be a slip; peers are taken for dead when the next one says so too. */
const DEAD_READINGS = 2;

export interface OverlayPlan {
  readonly config: OverlayConfig;
  /** Those that the configuration brings to what was declared. */
  readonly applied: readonly WantedPeer[];
  readonly failed: readonly PeerFailure[];
}

/** What SET_VPN_PEERS is to do. */
export interface OverlayPlanned {
  readonly do: 'set_overlay';
  readonly wanted: WantedSet;
}

/** What the interface is to be, of a set, what there is, and what is remembered of it. Planning twice plans the same. */
export function planOverlay(wanted: WantedSet, observed: Observed, memory: OverlayMemory): OverlayPlan {
  const present = new Map(observed.link?.peers.map((peer) => [peer.publicKey, peer]));
  const self = wanted.self ?? observed.link?.addresses[0];
  // Older control planes list the node itself.
  const others = wanted.peers.filter(({ publicKey }) => publicKey !== observed.publicKey);
  const judged = judge(others, wanted.unusable, self, [...present.values()]);
  const untouched = judged.failed.flatMap(({ publicKey }) => {
    const peer = [...present.values()].find((one) => one.publicKey === publicKey);
    return peer === undefined ? [] : [peer];
  });
  const config: OverlayConfig = {
    self: wanted.self,
    mtu: Math.min(observed.link?.mtu ?? USUAL_MTU, USUAL_MTU),
    peers: judged.usable.map(({ publicKey, endpoint, ranges }) => ({
      ...{ publicKey, ranges },
      endpoint: chooseEndpoint(endpoint, present.get(publicKey), memory.get(publicKey)),
    })),
    untouched: untouched.map(({ publicKey }) => publicKey),
    routes: routesOf([...judged.usable, ...untouched], self, observed.connected),
  };
  return { config, applied: judged.usable, failed: judged.failed };
}

interface Judged {
  readonly usable: readonly WantedPeer[];
  readonly failed: readonly PeerFailure[];
}

function judge(
  peers: readonly WantedPeer[],
  unusable: readonly PeerFailure[],
  self: OverlayAddress | undefined,
  present: readonly ObservedPeer[],
): Judged {
  const alone: PeerFailure[] = [...unusable];
  const seen = new Set<string>();
  const first: WantedPeer[] = [];
  for (const peer of peers) {
    const reason = seen.has(peer.publicKey) ? 'it is in the set twice' : faultOf(peer, self?.address);
    if (reason !== undefined) alone.push({ publicKey: peer.publicKey, reason });
    else first.push(peer);
    seen.add(peer.publicKey);
  }
  const isFailed = (failures: readonly PeerFailure[], key: string) => failures.some(({ publicKey }) => publicKey === key);
  // One that is there twice is neither.
  const good = first.filter(({ publicKey }) => !isFailed(alone, publicKey));
  const stays = present.filter(({ publicKey }) => isFailed(alone, publicKey) || good.some((one) => one.publicKey === publicKey));
  const overlapping = refuseOverlaps(good, stays);
  const usable = good.filter(({ publicKey }) => !isFailed(overlapping, publicKey));
  return { usable, failed: [...alone, ...overlapping] };
}

function faultOf({ endpoint, ranges }: WantedPeer, own: IpAddress | undefined): string | undefined {
  const holding = (address: IpAddress) => ranges.find((range) => holds(range, address));
  const mine = own === undefined ? undefined : holding(own);
  if (mine !== undefined) return `${formatIpv4Range(mine)} holds ${own}, the address of this node`;
  const looping = endpoint === undefined || isIpv6(endpoint.address) ? undefined : holding(endpoint.address);
  if (looping === undefined || endpoint === undefined) return undefined;
  return `${formatIpv4Range(looping)} holds its endpoint ${formatAddressPort(endpoint.address, endpoint.port)}`;
}

/** A live peer that has roamed is not called back; what was declared anew is taken at once. */
function chooseEndpoint(
  declared: AddressPort | undefined,
  present: ObservedPeer | undefined,
  memory: PeerMemory | undefined,
): EndpointChoice {
  const wanted: EndpointChoice = declared === undefined ? { at: 'none' } : { at: 'address', endpoint: declared };
  if (present === undefined) return wanted;
  if (sameEndpoint(present.endpoint, declared)) return { at: 'keep' };
  const isDead = (memory?.deadReadings ?? 0) >= DEAD_READINGS;
  const isChanged = memory?.declared !== undefined && !sameEndpoint(memory.declared.endpoint, declared);
  return isDead || (isChanged && declared !== undefined) ? wanted : { at: 'keep' };
}

/** What the prefix of the interface does not reach. What another interface is connected to is nearer there. */
function routesOf(
  peers: readonly Pick<WantedPeer, 'ranges'>[],
  self: OverlayAddress | undefined,
  connected: readonly Ipv4Range[],
): readonly Ipv4Range[] {
  const own = self === undefined ? undefined : networkOf(formatOverlayAddress(self));
  const near = own === undefined ? connected : [...connected, own];
  const all = peers.flatMap(({ ranges }) => ranges).filter((range) => !near.some((other) => containsRange(other, range)));
  return [...new Map(all.map((range) => [formatIpv4Range(range), range])).values()];
}

function holds(range: Ipv4Range, address: IpAddress): boolean {
  return containsRange(range, { network: address, prefixLength: 32 });
}

export function sameEndpoint(one: AddressPort | undefined, other: AddressPort | undefined): boolean {
  return one?.address === other?.address && one?.port === other?.port;
}

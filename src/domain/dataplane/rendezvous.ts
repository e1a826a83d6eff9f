import { type IpAddress, ipv4ToNumber, ipv6Groups } from '../kernel/network.js';

const MASK = (1n << 64n) - 1n;

interface Candidate {
  readonly address: IpAddress;
  readonly port: number;
  readonly weight: number;
}

/**
 * The candidate that source-hash gives a client: weighted rendezvous hashing, as native/core/rendezvous.h specifies and carries it out.
 * For explanations: the data path has its own. Undefined when there is no candidate.
 */
export function chooseByHash<C extends Candidate>(client: IpAddress, candidates: readonly C[]): C | undefined {
  const hash = hashBytes(bytesOf(client));
  let best: { readonly candidate: C; readonly score: number } | undefined;
  for (const candidate of candidates) {
    const score = scoreOf(hash, endpointHash(candidate), candidate.weight);
    if (best === undefined || score > best.score) best = { candidate, score };
  }
  return best?.candidate;
}

/** For each of `count` slots the candidate that has it, by the same hashing. At least one candidate. */
export function slotOwners<C extends Candidate>(count: number, candidates: readonly C[]): readonly C[] {
  const hashed = candidates.map((candidate) => ({ candidate, hash: endpointHash(candidate) }));
  return Array.from({ length: count }, (_, slot) => {
    const hash = mix(BigInt(slot));
    let best: { readonly candidate: C; readonly score: number } | undefined;
    for (const { candidate, hash: own } of hashed) {
      const score = scoreOf(hash, own, candidate.weight);
      if (best === undefined || score > best.score) best = { candidate, score };
    }
    return best?.candidate;
  }).filter((owner) => owner !== undefined);
}

function endpointHash({ address, port }: Candidate): bigint {
  return mix((hashBytes(bytesOf(address)) + BigInt(port)) & MASK);
}

function scoreOf(client: bigint, endpoint: bigint, weight: number): number {
  const share = (Number(mix(client ^ endpoint) >> 11n) + 0.5) * 2 ** -53;
  return -weight / Math.log(share);
}

/** The finalizer of splitmix64. */
function mix(value: bigint): bigint {
  const first = ((value ^ (value >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  const second = ((first ^ (first >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return second ^ (second >> 31n);
}

/** FNV-1a, mixed. */
function hashBytes(bytes: readonly number[]): bigint {
  return mix(bytes.reduce((hash, byte) => ((hash ^ BigInt(byte)) * 0x100000001b3n) & MASK, 0xcbf29ce484222325n));
}

/** Sixteen: an IPv4 address stands in the first four. */
function bytesOf(address: IpAddress): readonly number[] {
  const v4 = ipv4ToNumber(address);
  if (v4 !== undefined) return [...[24, 16, 8, 0].map((shift) => (v4 >>> shift) & 255), ...Array<number>(12).fill(0)];
  return (ipv6Groups(address) ?? []).flatMap((group) => [group >> 8, group & 255]);
}

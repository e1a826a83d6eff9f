import type { AddressPort } from '../kernel/network.js';
import { DEAD_MS, type ObservedPeer, type PublicKey, type WantedPeer } from './model.js';

/** What is known of a peer from earlier readings. */
export interface PeerMemory {
  /** As it was last applied; undefined before this process has applied it. */
  readonly declared: { readonly endpoint: AddressPort | undefined } | undefined;
  /** Of the latest handshake, as the interface says it. */
  readonly handshakeAt: number;
  /** When that handshake was first seen, on the monotonic clock. */
  readonly seenAt: number;
  /** How old it was then. */
  readonly seenAgeMs: number;
  /** Readings in a row that found it dead. */
  readonly deadReadings: number;
}

export type OverlayMemory = ReadonlyMap<PublicKey, PeerMemory>;

export interface ReadingTime {
  /** Wall clock, milliseconds. */
  readonly now: number;
  readonly monotonic: number;
}

/**
 * What one more reading adds. A peer is dead when no new handshake was seen for 180 s of the monotonic clock, or when it never had one. The
 * wall clock, by which handshakes are told, is not asked: it may be stepped, and a step would make every peer dead at once.
 */
export function readPeers(memory: OverlayMemory, observed: readonly ObservedPeer[], time: ReadingTime): OverlayMemory {
  return new Map(observed.map((peer) => [peer.publicKey, readPeer(memory.get(peer.publicKey), peer, time)]));
}

function readPeer(known: PeerMemory | undefined, { handshakeAt }: ObservedPeer, { now, monotonic }: ReadingTime): PeerMemory {
  const isNew = known === undefined || known.handshakeAt !== handshakeAt;
  const seenAt = isNew ? monotonic : known.seenAt;
  const seenAgeMs = isNew ? Math.max(0, now - handshakeAt) : known.seenAgeMs;
  const isDead = handshakeAt === 0 || monotonic - seenAt >= DEAD_MS;
  return {
    declared: known?.declared,
    ...{ handshakeAt, seenAt, seenAgeMs },
    deadReadings: isDead ? (known?.deadReadings ?? 0) + 1 : 0,
  };
}

/** What was applied of a set. */
export function rememberApplied(memory: OverlayMemory, applied: readonly WantedPeer[]): OverlayMemory {
  const next = new Map(memory);
  for (const { publicKey, endpoint } of applied) {
    const known = next.get(publicKey) ?? { handshakeAt: 0, seenAt: 0, seenAgeMs: 0, deadReadings: 0 };
    next.set(publicKey, { ...known, declared: { endpoint } });
  }
  return next;
}

/** How old the latest handshake is; undefined when there was none. */
export function handshakeAgeMs(memory: PeerMemory | undefined, monotonic: number): number | undefined {
  return memory === undefined || memory.handshakeAt === 0 ? undefined : memory.seenAgeMs + monotonic - memory.seenAt;
}

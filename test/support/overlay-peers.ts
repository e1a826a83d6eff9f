import type { AddressPort, Ipv4Range } from '../../src/domain/kernel/network.js';
import {
  networkOf,
  type Observed,
  type ObservedLink,
  type ObservedPeer,
  overlayAddress,
  peerEndpoint,
  type WantedPeer,
  type WantedSet,
} from '../../src/domain/overlay/model.js';
import { keyOf } from '../fakes/fake-overlay-device.js';

/** Peers by a letter each, as tests write them. */
export function endpoint(text: string): AddressPort | undefined {
  return text === '' ? undefined : peerEndpoint(text);
}

export function ranges(...texts: readonly string[]): readonly Ipv4Range[] {
  return texts.flatMap((text) => networkOf(text) ?? []);
}

export function wanted(letter: string, at: string, ...networks: readonly string[]): WantedPeer {
  return { publicKey: keyOf(letter), endpoint: endpoint(at), ranges: ranges(...networks) };
}

export function setOf(...peers: readonly WantedPeer[]): WantedSet {
  return { self: overlayAddress('10.78.0.1/16'), peers, unusable: [] };
}

export function present(letter: string, at: string, ...networks: readonly string[]): ObservedPeer {
  const facts = { handshakeAt: 1_000, received: 1, sent: 2, keepaliveS: 5 };
  return { publicKey: keyOf(letter), endpoint: endpoint(at), ranges: ranges(...networks), ...facts };
}

export function observed(link: Partial<ObservedLink> | undefined, ...connected: readonly string[]): Observed {
  const usual: ObservedLink = {
    ...{ kind: 'kernel', up: true, mtu: 1_420, port: 51_820, addresses: [], peers: [], routes: [] },
  };
  const whole = link === undefined ? undefined : { ...usual, ...link };
  return { publicKey: keyOf('o'), link: whole, connected: ranges(...connected) };
}

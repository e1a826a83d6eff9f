import { AgentError, type ErrorCode } from '../../src/domain/kernel/errors.js';
import { formatAddressPort, formatIpv4Range, type IpAddress, type Ipv4Range } from '../../src/domain/kernel/network.js';
import { overlayChanges } from '../../src/domain/overlay/diff.js';
import {
  formatOverlayAddress,
  KEEPALIVE_S,
  type Observed,
  type ObservedLink,
  type ObservedPeer,
  OVERLAY_PORT,
  type OverlayConfig,
  type PeerFailure,
  type PublicKey,
  publicKey,
} from '../../src/domain/overlay/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { OverlayDevice } from '../../src/ports/overlay/overlay-device.js';

/** A key for each letter. */
export function keyOf(letter: string): PublicKey {
  const key = publicKey(`${letter.repeat(42)}A=`);
  if (key === undefined) throw new Error(`no key of ${letter}`);
  return key;
}

/** An interface in memory, that tests shake hands on. */
export class FakeOverlayDevice implements OverlayDevice {
  own = keyOf('o');
  connected: readonly Ipv4Range[] = [];
  link: ObservedLink | undefined;
  /** Peers that it refuses, and why. */
  readonly refused = new Map<PublicKey, string>();
  /** The largest packet that a path carries, by the address of the peer. */
  readonly pathMtu = new Map<string, number>();
  /** How often something was changed. */
  changes = 0;
  #failure: ErrorCode | undefined;

  /** Every call from now on; undefined ends it. */
  fail(code: ErrorCode | undefined): void {
    this.#failure = code;
  }

  /** What else has happened on it. */
  touch(key: PublicKey, change: Partial<ObservedPeer>): void {
    if (this.link === undefined) throw new Error('there is no interface');
    const peers = this.link.peers.map((peer) => (peer.publicKey === key ? { ...peer, ...change } : peer));
    this.link = { ...this.link, peers };
  }

  async observe({ signal }: CallOptions): Promise<Observed> {
    this.#enter(signal);
    return { publicKey: this.own, link: this.link, connected: this.connected };
  }

  async set(config: OverlayConfig, { signal }: CallOptions): Promise<readonly PeerFailure[]> {
    this.#enter(signal);
    const before: ObservedLink = this.link ?? {
      ...{ kind: 'kernel', up: false, mtu: 1_420, port: 0, addresses: [], peers: [], routes: [] },
    };
    const { remove, set } = overlayChanges(config, before);
    const peers = new Map(before.peers.filter((peer) => !remove.includes(peer.publicKey)).map((peer) => [peer.publicKey, peer]));
    const failed: PeerFailure[] = [];
    for (const { publicKey: key, endpoint, ranges } of set) {
      const reason = this.refused.get(key);
      if (reason !== undefined) failed.push({ publicKey: key, reason });
      else peers.set(key, { ...(peers.get(key) ?? stranger(key)), ...present({ endpoint, ranges }), keepaliveS: KEEPALIVE_S });
    }
    const addresses = config.self === undefined ? before.addresses : [config.self];
    const next = { ...before, up: true, port: OVERLAY_PORT, mtu: config.mtu, addresses, peers: [...peers.values()] };
    const former = this.dump();
    this.link = { ...next, routes: config.routes };
    if (this.dump() !== former) this.changes++;
    return failed;
  }

  async remove({ signal }: CallOptions): Promise<void> {
    this.#enter(signal);
    if (this.link !== undefined) this.changes++;
    this.link = undefined;
  }

  async probe(address: IpAddress, payloadBytes: number, { signal }: CallOptions): Promise<boolean | undefined> {
    this.#enter(signal);
    return payloadBytes + 28 <= (this.pathMtu.get(address) ?? 9_000);
  }

  /** A line of the interface, one a peer, one of the routes. */
  dump(): string {
    const { link } = this;
    if (link === undefined) return 'no interface\n';
    const peers = link.peers.map(({ publicKey: key, endpoint, ranges }) => {
      const at = endpoint === undefined ? '-' : formatAddressPort(endpoint.address, endpoint.port);
      return `${key.slice(0, 1)} ${at} ${ranges.map(formatIpv4Range).join(',')}\n`;
    });
    const own = `${link.addresses.map(formatOverlayAddress).join(',') || '-'} mtu ${link.mtu}\n`;
    return `${own}${peers.toSorted().join('')}routes ${link.routes.map(formatIpv4Range).join(',') || '-'}\n`;
  }

  #enter(signal: AbortSignal): void {
    signal.throwIfAborted();
    if (this.#failure !== undefined) throw new AgentError(this.#failure, { problem: 'told to fail' });
  }
}

function stranger(key: PublicKey): ObservedPeer {
  return { ...{ publicKey: key, endpoint: undefined, ranges: [], handshakeAt: 0, received: 0, sent: 0, keepaliveS: 0 } };
}

function present({ endpoint, ranges }: { endpoint: ObservedPeer['endpoint']; ranges: ObservedPeer['ranges'] | undefined }) {
  return { ...(endpoint === undefined ? {} : { endpoint }), ...(ranges === undefined ? {} : { ranges }) };
}

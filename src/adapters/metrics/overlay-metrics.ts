import { Counter, Gauge, type Registry } from 'prom-client';
import type { OverlayStatus } from '../../ports/driving/operations.js';

/** The overlay and its peers, as they were read last; nothing on a node that is in none. */
export class OverlayMetrics {
  readonly #status: () => OverlayStatus | undefined;
  readonly #peers: Gauge<'state'>;
  readonly #mtu: Gauge;
  readonly #handshake: Gauge<'peer'>;
  readonly #info: Gauge<'peer' | 'key' | 'endpoint'>;
  readonly #bytes: Counter<'peer' | 'direction'>;

  constructor(status: () => OverlayStatus | undefined, registry: Registry) {
    const named = (name: string, help: string) => ({ name: `holdfast_overlay_${name}`, help, registers: [registry] });
    this.#status = status;
    this.#peers = new Gauge({ ...named('peers', 'Peers of the overlay by state'), labelNames: ['state'] });
    this.#mtu = new Gauge({ ...named('mtu_bytes', 'Largest packet of the overlay'), labelNames: [] });
    this.#handshake = new Gauge({
      ...named('handshake_age_seconds', 'How long ago the latest handshake with a peer was'),
      labelNames: ['peer'],
    });
    this.#info = new Gauge({ ...named('peer_info', 'Always 1'), labelNames: ['peer', 'key', 'endpoint'] });
    this.#bytes = new Counter({
      ...named('bytes_total', 'Bytes from a peer (in) and to it (out)'),
      labelNames: ['peer', 'direction'],
    });
  }

  /** The figures as they are now; series of peers that are gone go with them. */
  collect(): void {
    for (const metric of [this.#peers, this.#mtu, this.#handshake, this.#info, this.#bytes]) metric.reset();
    const status = this.#status();
    if (status?.link === undefined) return;
    this.#mtu.set(status.mtu);
    for (const state of ['up', 'down'] as const) {
      this.#peers.set({ state }, status.peers.filter((peer) => peer.state === state).length);
    }
    for (const { address, publicKey, endpoint, handshakeAgeMs, receivedBytes, sentBytes } of status.peers) {
      const peer = address || publicKey;
      this.#info.set({ peer, key: publicKey, endpoint }, 1);
      if (handshakeAgeMs !== undefined) this.#handshake.set({ peer }, handshakeAgeMs / 1_000);
      this.#bytes.inc({ peer, direction: 'in' }, receivedBytes);
      this.#bytes.inc({ peer, direction: 'out' }, sentBytes);
    }
  }
}

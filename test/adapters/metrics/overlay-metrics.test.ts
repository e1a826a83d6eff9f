import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { OverlayMetrics } from '../../../src/adapters/metrics/overlay-metrics.js';
import type { OverlayPeerStatus, OverlayStatus } from '../../../src/ports/driving/operations.js';

const peer: OverlayPeerStatus = {
  ...{ publicKey: 'k', address: '10.78.0.2', endpoint: '192.0.2.1:51820', state: 'up', handshakeAgeMs: 1_500 },
  ...{ receivedBytes: 10, sentBytes: 20, ranges: [] },
};

test('has the peers as they are, and the series of those that are gone are gone', async () => {
  const registry = new Registry();
  const silent: OverlayPeerStatus = {
    ...peer,
    address: '',
    publicKey: 'q',
    endpoint: '',
    state: 'down',
    handshakeAgeMs: undefined,
  };
  let status: OverlayStatus | undefined = {
    link: 'kernel',
    publicKey: 'o',
    address: '10.78.0.1/16',
    mtu: 1_420,
    peers: [peer, silent],
  };
  const metrics = new OverlayMetrics(() => status, registry);
  const series = async () => {
    metrics.collect();
    return (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  };
  expect(await series()).toEqual([
    'holdfast_overlay_peers{state="up"} 1',
    'holdfast_overlay_peers{state="down"} 1',
    'holdfast_overlay_mtu_bytes 1420',
    'holdfast_overlay_handshake_age_seconds{peer="10.78.0.2"} 1.5',
    'holdfast_overlay_peer_info{peer="10.78.0.2",key="k",endpoint="192.0.2.1:51820"} 1',
    'holdfast_overlay_peer_info{peer="q",key="q",endpoint=""} 1',
    'holdfast_overlay_bytes_total{peer="10.78.0.2",direction="in"} 10',
    'holdfast_overlay_bytes_total{peer="10.78.0.2",direction="out"} 20',
    'holdfast_overlay_bytes_total{peer="q",direction="in"} 10',
    'holdfast_overlay_bytes_total{peer="q",direction="out"} 20',
  ]);
  status = undefined;
  expect(await series()).toEqual(['holdfast_overlay_mtu_bytes 0']);
});

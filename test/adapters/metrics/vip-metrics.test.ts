import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { VipMetrics } from '../../../src/adapters/metrics/vip-metrics.js';
import type { VipStatus } from '../../../src/ports/driving/operations.js';

test('has the address as it is, and what happened to it', async () => {
  const registry = new Registry();
  let status: VipStatus = {
    ...{ address: '10.9.0.100', held: true, since: 0, leftMs: 20_000, generation: 7n, alone: true },
    counts: { taken: 2, removedByOthers: 1, dropped: { gap: 0, silence: 3, conflict: 0, expired: 1 } },
  };
  const metrics = new VipMetrics(() => status, registry);
  const series = async () => {
    metrics.collect();
    return (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  };
  const counted = [
    'holdfast_vip_taken_total 2',
    'holdfast_vip_removed_by_others_total 1',
    'holdfast_vip_dropped_total{reason="gap"} 0',
    'holdfast_vip_dropped_total{reason="silence"} 3',
    'holdfast_vip_dropped_total{reason="conflict"} 0',
    'holdfast_vip_dropped_total{reason="expired"} 1',
  ];
  expect(await series()).toEqual(['holdfast_vip_held 1', 'holdfast_vip_alone 1', ...counted]);
  status = { ...status, held: false, alone: false };
  expect(await series()).toEqual(['holdfast_vip_held 0', 'holdfast_vip_alone 0', ...counted]);
});

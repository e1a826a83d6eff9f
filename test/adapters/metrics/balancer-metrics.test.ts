import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { BalancerMetrics } from '../../../src/adapters/metrics/balancer-metrics.js';
import type { BalancerStatus } from '../../../src/ports/driving/api-balancer.js';

test('has the balancer as it is; nothing on a machine without HAProxy', async () => {
  const registry = new Registry();
  const up = { name: 'api-1', endpoint: '10.0.0.1:6443', state: 'up', sessions: 3 } as const;
  let status: BalancerStatus = { state: 'serving', port: 6_446, servers: [up, { ...up, state: 'down' }], reloads: 2, changes: 5 };
  const metrics = new BalancerMetrics(() => status, registry);
  const series = async () => {
    metrics.collect();
    return (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  };
  expect(await series()).toEqual([
    'holdfast_api_balancer_servers{state="up"} 1',
    'holdfast_api_balancer_servers{state="down"} 1',
    'holdfast_api_balancer_servers{state="draining"} 0',
    'holdfast_api_balancer_servers{state="unknown"} 0',
    'holdfast_api_balancer_serving 1',
    'holdfast_api_balancer_changes_total{how="reload"} 2',
    'holdfast_api_balancer_changes_total{how="runtime"} 5',
  ]);
  status = { ...status, state: 'failing' };
  expect(await series()).toContain('holdfast_api_balancer_serving 0');
  status = { ...status, state: 'absent' };
  expect((await series()).filter((line) => !line.endsWith(' 0'))).toEqual([]);
});

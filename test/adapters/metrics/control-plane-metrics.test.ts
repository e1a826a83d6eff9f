import { expect, test } from 'vitest';
import { CallMeter } from '../../../src/adapters/metrics/call-meter.js';
import { ControlPlaneMetrics } from '../../../src/adapters/metrics/control-plane-metrics.js';
import { outboxSequence } from '../../../src/domain/outbox/model.js';
import type { NodeStatus } from '../../../src/ports/driving/operations.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeOperations } from '../../fakes/fake-operations.js';
import { controlPlaneFigures, controlPlaneFleet, failingStore } from '../../support/control-plane-figures.js';

async function setUp() {
  const { current } = new FakeOperations();
  const state = { figures: controlPlaneFigures(), fleet: controlPlaneFleet() };
  const store = await failingStore();
  const log = new CallMeter(['propose'], new FakeClock());
  const metrics = new ControlPlaneMetrics({
    status: (): NodeStatus => ({ ...current, dataPlane: undefined, fleet: state.fleet }),
    figures: () => state.figures,
    stores: () => ({ control: store.figures(), log: log.figures() }),
    outbox: () => ({ depth: 4, capacity: 10, dropped: 1n, nextSequence: outboxSequence(5n) }),
    now: () => 20_000,
  });
  const own = async () =>
    (await metrics.render()).text
      .split('\n')
      .filter((line) => line.startsWith('holdfast_') && !line.startsWith('holdfast_store_seconds_bucket'));
  return { metrics, state, own };
}

test('everything that a control plane is asked about at a scrape', async () => {
  const { own } = await setUp();
  const connections = (listener: string) => [
    `holdfast_server_connections_total{listener="${listener}",result="accepted"} 42`,
    `holdfast_server_connections_total{listener="${listener}",result="overflowed"} 43`,
    `holdfast_server_connections_total{listener="${listener}",result="waited"} 44`,
    `holdfast_server_connections_total{listener="${listener}",result="timed_out"} 45`,
    `holdfast_server_connections_total{listener="${listener}",result="handshake"} 46`,
  ];
  expect((await own()).toSorted()).toEqual(
    [
      'holdfast_build_info{version="1.2.3",mode="dev"} 1',
      'holdfast_ready 1',
      'holdfast_problems 0',
      'holdfast_log_revision 7',
      'holdfast_log_age_seconds 1',
      'holdfast_objects 3',
      'holdfast_outbox_depth 4',
      'holdfast_outbox_dropped_total 1',
      'holdfast_fleet_nodes{state="online"} 30',
      'holdfast_fleet_nodes{state="offline"} 31',
      'holdfast_fleet_nodes{state="unknown"} 2',
      'holdfast_fleet_replicas 2',
      'holdfast_fleet_tokens{state="open"} 1',
      'holdfast_fleet_tokens{state="used"} 2',
      'holdfast_fleet_tokens{state="expired"} 3',
      'holdfast_fleet_instructions{type="RUN_REMOTE_SCRIPT",state="delivered"} 17',
      'holdfast_fleet_instruction_oldest_seconds 2',
      'holdfast_fleet_instructions_ended_total{type="other",result="unknown"} 19',
      'holdfast_server_links 24',
      'holdfast_server_links_opened_total 8',
      'holdfast_server_links_ended_total{reason="superseded"} 11',
      'holdfast_server_links_ended_total{reason="duplicate"} 12',
      'holdfast_server_heartbeats_total 9',
      'holdfast_server_results_total{result="stored"} 13',
      'holdfast_server_results_total{result="repeated"} 14',
      'holdfast_server_results_total{result="stray"} 15',
      'holdfast_server_results_total{result="lost"} 16',
      'holdfast_server_messages_unclaimed_total 10',
      'holdfast_server_registrations_total{result="registered"} 4',
      'holdfast_server_registrations_total{result="refused"} 5',
      'holdfast_server_registrations_total{result="limited"} 6',
      'holdfast_server_registrations_total{result="failed"} 7',
      'holdfast_server_refusals_total{reason="malformed"} 20',
      'holdfast_server_refusals_total{reason="limited"} 21',
      'holdfast_server_refusals_total{reason="certificate"} 22',
      'holdfast_server_refusals_total{reason="proposals"} 23',
      ...['registration', 'nodes', 'admin'].flatMap(connections),
      ...['registration', 'nodes', 'admin'].map((listener) => `holdfast_server_connections{listener="${listener}"} 41`),
      'holdfast_log_followers 25',
      'holdfast_certificate_expiry_timestamp_seconds{certificate="node root"} 26',
      'holdfast_store_up{store="control"} 0',
      'holdfast_store_up{store="log"} 1',
      'holdfast_store_failing_seconds_total{store="control"} 2',
      'holdfast_store_failing_seconds_total{store="log"} 0',
      'holdfast_store_calls_total{store="control",operation="commit",result="answered"} 1',
      'holdfast_store_calls_total{store="control",operation="commit",result="refused"} 0',
      'holdfast_store_calls_total{store="control",operation="commit",result="failed"} 1',
      'holdfast_store_calls_total{store="control",operation="commit",result="abandoned"} 0',
      'holdfast_store_calls_total{store="log",operation="propose",result="answered"} 0',
      'holdfast_store_calls_total{store="log",operation="propose",result="refused"} 0',
      'holdfast_store_calls_total{store="log",operation="propose",result="failed"} 0',
      'holdfast_store_calls_total{store="log",operation="propose",result="abandoned"} 0',
      'holdfast_store_seconds_sum{store="control",operation="commit"} 0',
      'holdfast_store_seconds_count{store="control",operation="commit"} 2',
      'holdfast_store_seconds_sum{store="log",operation="propose"} 0',
      'holdfast_store_seconds_count{store="log",operation="propose"} 0',
    ].toSorted(),
  );
});

test('a second scrape shows the figures of then, and nothing of what is gone', async () => {
  const { own, state } = await setUp();
  const before = await own();
  expect(await own()).toEqual(before);
  state.figures = { ...state.figures, open: [], oldestOpen: undefined, ended: [], listeners: [] };
  state.fleet = { ...state.fleet, certificates: [] };
  const after = (await own()).join('\n');
  expect(after).toContain('holdfast_fleet_instruction_oldest_seconds 0');
  expect(after).not.toMatch(/RUN_REMOTE_SCRIPT|listener=|certificate=/);
});

test('the figures of the process are there too', async () => {
  const { metrics } = await setUp();
  const { text, contentType } = await metrics.render();
  expect(text).toContain('process_resident_memory_bytes');
  expect(contentType).toContain('text/plain');
});

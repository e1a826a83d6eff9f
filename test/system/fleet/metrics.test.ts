import { execFile } from 'node:child_process';
import { hostname } from 'node:os';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { Fleet } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';
import type { NetworkSpace } from '../support/fleet-network.js';

const run = promisify(execFile);
const PORT = 9195;

/** From the machine itself, as a Prometheus beside the server does. */
async function get(space: NetworkSpace, path: string): Promise<string> {
  const script = `fetch('http://127.0.0.1:${PORT}${path}').then((r) => r.text()).then((t) => process.stdout.write(t))`;
  const { stdout } = await run('ip', ['netns', 'exec', space.name, process.execPath, '-e', script], { maxBuffer: 2 ** 24 });
  return stdout;
}

async function scrape(space: NetworkSpace): Promise<ReadonlyMap<string, number>> {
  const lines = (await get(space, '/metrics')).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}

test('a control plane tells how it and its fleet are: metrics, status, nodes', async () => {
  await using fleet = await Fleet.start({ agents: 2 });
  const { server } = fleet;
  const { hub } = fleet.network;
  const { nid } = fleet.agent();
  expect(server.stderr).toContain(`metrics   http://127.0.0.1:${PORT}/metrics`);
  await fleet.result(nid, 'GET_NODE_STATUS', {});
  await fleet.apply('hello', [{ name: 'a', address: '10.77.0.9' }]);
  const series = await until(
    () => scrape(hub),
    (now) => now.get('holdfast_log_followers') === 2 && (now.get('holdfast_server_heartbeats_total') ?? 0) > 3,
  );
  expect(Object.fromEntries(series)).toMatchObject({
    holdfast_ready: 1,
    holdfast_problems: 0,
    'holdfast_fleet_nodes{state="online"}': 2,
    'holdfast_fleet_nodes{state="offline"}': 0,
    'holdfast_fleet_nodes{state="unknown"}': 0,
    holdfast_fleet_replicas: 1,
    'holdfast_fleet_tokens{state="used"}': 2,
    'holdfast_fleet_instructions_ended_total{type="GET_NODE_STATUS",result="answered"}': 1,
    'holdfast_server_results_total{result="stored"}': 1,
    holdfast_server_links: 2,
    'holdfast_server_registrations_total{result="registered"}': 2,
    'holdfast_server_registrations_total{result="failed"}': 0,
    'holdfast_server_refusals_total{reason="malformed"}': 0,
    'holdfast_store_up{store="control"}': 1,
    'holdfast_store_up{store="log"}': 1,
    'holdfast_store_calls_total{store="control",operation="commit",result="failed"}': 0,
  });
  const above = (name: string, least: number) => expect(series.get(name), name).toBeGreaterThan(least);
  above('holdfast_store_seconds_count{store="control",operation="commit"}', 5);
  above('holdfast_store_seconds_count{store="log",operation="propose"}', 0);
  above('holdfast_server_connections{listener="nodes"}', 1);
  above('holdfast_certificate_expiry_timestamp_seconds{certificate="nodes"}', Date.now() / 1_000 + 80 * 86_400);
  above('holdfast_certificate_expiry_timestamp_seconds{certificate="node root"}', Date.now() / 1_000 + 365 * 86_400);
  expect([await get(hub, '/healthz'), await get(hub, '/readyz')]).toEqual(['ok\n', 'ready\n']);

  const status = await server.cli(['status']);
  expect(status).toMatchObject({ code: 0, stderr: '' });
  expect(status.stdout).not.toContain('data plane');
  expect(status.stdout).toMatch(/^links +2 nodes, 2 of them follow the log here$/m);
  expect(status.stdout).toMatch(/^log store +embedded, answered in [\d.]+ ms$/m);
  expect(status.stdout).toMatch(/^node root +\d{4}-\d\d-\d\d +in \d+d$/m);

  const shown = await until(
    () => server.cli(['nodes']),
    ({ stdout }) => stdout.split(hostname()).length > 2,
  );
  expect(shown.stdout).toMatch(new RegExp(`^${nid} +${hostname()} +online `, 'm'));

  await server.stop('SIGKILL');
  await server.start();
  const states = new Set<string>();
  await until(
    async () => {
      const { nodes } = await server.ask((client, given) => client.listNodes(given));
      for (const { state } of nodes) states.add(state);
      return nodes.map(({ state }) => state);
    },
    (all) => all.every((state) => state === 'online'),
    45_000,
  );
  expect(states).not.toContain('offline');
});

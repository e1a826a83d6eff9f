import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Fleet } from '../support/fleet.js';
import type { FleetDaemon } from '../support/fleet-daemon.js';
import { FleetLoad } from '../support/fleet-load.js';
import { inNamespace } from '../support/in-namespace.js';

const nft = ({ space }: FleetDaemon, ...words: readonly string[]) => inNamespace(space, ['nft', ...words]);

/** Of our table, without counters. */
const ours = (daemon: FleetDaemon) => nft(daemon, '--stateless', 'list', 'table', 'inet', 'holdfast');

test('rules carry services: flushed by others, and through kill -9 and a start after some seconds, nothing fails', async () => {
  await using fleet = await Fleet.start({ agents: 1 });
  const { daemon } = fleet.agent(0);
  const load = await FleetLoad.on(fleet);
  const before = await load.counts();
  const flows = async () => {
    const [now = { asked: 0, echoed: 0 }] = await load.counts();
    await load.flows(Math.max(now.asked, now.echoed) + 20);
    expect(await load.failuresSince(before)).toEqual([]);
  };
  const table = await ours(daemon);
  expect(table).toContain('flags owner');
  await nft(daemon, 'flush', 'ruleset');
  await expect(nft(daemon, 'delete', 'table', 'inet', 'holdfast')).rejects.toThrow();
  await flows();
  expect(await ours(daemon)).toBe(table);

  await daemon.stop('SIGKILL');
  await flows();
  await sleep(2_000);
  await flows();
  await daemon.start();
  await flows();
  expect(await ours(daemon)).toBe(table);
});

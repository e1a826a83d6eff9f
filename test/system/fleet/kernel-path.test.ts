import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Fleet } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';
import { FleetLoad } from '../support/fleet-load.js';
import { nft, rulesOf } from '../support/kernel-node.js';

/** So many more answers on each machine, and not one failure since. */
async function flowing(load: FleetLoad) {
  const before = await load.counts();
  return async () => {
    const [now = { asked: 0, echoed: 0 }] = await load.counts();
    await load.flows(Math.max(now.asked, now.echoed) + 15);
    expect(await load.failuresSince(before)).toEqual([]);
  };
}

/** Without the line that says whose it is. */
const bodyOf = (table: string) => table.slice(table.indexOf('\tmap'));

/** As Docker, iptables-nft and an administrator may have them. */
const FOREIGN = `table ip filter { chain DOCKER { accept; }; chain FORWARD { type filter hook forward priority filter; policy accept; jump DOCKER; }; }
table inet admin { set s { type ipv4_addr; elements = { 10.0.0.1 }; }; chain in { type filter hook input priority 0; policy accept; ip saddr @s drop; }; }`;

test('rules carry services: flushed by others, and through kill -9 and a start after some seconds, nothing fails; foreign tables are left alone', async () => {
  await using fleet = await Fleet.start({ agents: 1 });
  const { daemon } = fleet.agent(0);
  const load = await FleetLoad.on(fleet);
  const flows = await flowing(load);
  const table = await rulesOf(daemon, '--handle');
  expect(table).toContain('flags owner');
  await nft(daemon, 'flush', 'ruleset');
  await expect(nft(daemon, 'delete', 'table', 'inet', 'holdfast')).rejects.toThrow();
  await flows();
  expect(await rulesOf(daemon, '--handle')).toBe(table);

  await nft(daemon, FOREIGN);
  const foreign = async () => [
    await nft(daemon, 'list', 'table', 'ip', 'filter'),
    await nft(daemon, 'list', 'table', 'inet', 'admin'),
  ];
  const untouched = await foreign();
  await daemon.stop('SIGKILL');
  await flows();
  await sleep(2_000);
  await nft(daemon, 'add chain inet admin block { type filter hook output priority 5; policy drop; }');
  await nft(daemon, 'add rule inet admin block accept');
  await daemon.start();
  await flows();
  expect(await rulesOf(daemon, '--handle')).toBe(table);
  expect(await daemon.problems()).toEqual([
    'kernel path: table inet admin, chain block drops in output what no rule of it accepts',
  ]);
  await nft(daemon, 'delete', 'chain', 'inet', 'admin', 'block');
  expect(await foreign()).toEqual(untouched);
});

test('a table that is not owned stands again within a second', async () => {
  await using fleet = await Fleet.start({ agents: 1 });
  const { daemon } = fleet.agent(0);
  const load = await FleetLoad.on(fleet);
  const owned = await rulesOf(daemon);
  await daemon.stop();
  await daemon.configure('dataplane: { tableOwner: off }\n');
  await daemon.start();
  await (await flowing(load))();
  const table = await rulesOf(daemon);
  expect(bodyOf(table)).toBe(bodyOf(owned));
  expect(table).not.toContain('flags owner');
  for (const words of [
    ['flush', 'ruleset'],
    ['delete', 'table', 'inet', 'holdfast'],
    ['flush', 'map', 'inet', 'holdfast', 'service4'],
  ]) {
    await nft(daemon, ...words);
    await until(
      () => rulesOf(daemon),
      (now) => now === table,
      1_000,
    );
    await (await flowing(load))();
  }
});

test('a service moves between the kernel and the proxy under load, and a drain ends at both ends, also of what is idle', async () => {
  await using fleet = await Fleet.start({ agents: 1 });
  const { daemon } = fleet.agent(0);
  const { hub } = fleet.network;
  const load = await FleetLoad.on(fleet);
  const flows = await flowing(load);
  const echo = await fleet.peer(hub, 'echo');
  const echoAt = [{ address: hub.address, port: echo.port }];
  for (const dataPath of ['proxy', 'kernel']) {
    await fleet.apply('moving', echoAt, fleet.server, { dataPath });
    for (const name of ['greet', 'echo']) await fleet.patch(name, { dataPath });
    await flows();
    await sleep(3_500);
    await flows();
  }
  const hold = await fleet.peer(hub, 'hold');
  await fleet.apply('held', [{ address: hub.address, port: hold.port }], fleet.server, { drain: { timeout: '1s' } });
  const vip = await until(
    async () => (await fleet.services(daemon)).get('held') ?? '',
    (address) => address !== '',
  );
  await sleep(300);
  const idle = await fleet.peer(daemon.space, 'idle', vip, 80);
  await fleet.apply('held', echoAt, fleet.server, { drain: { timeout: '1s' } });
  await until(
    async () => [await hold.ends(), await idle.ends()].map((ends) => ends.join().replace(/\d+/, '')),
    (ends) => ends.every((end) => end === 'ECONNRESET '),
    3_000,
  );
  await flows();
});

test('a UDP client that keeps its socket is moved, refused when the last endpoint goes, and served when the first one comes', async () => {
  await using fleet = await Fleet.start({ agents: 1 });
  const { daemon } = fleet.agent(0);
  const { hub } = fleet.network;
  const [a, b] = [await fleet.peer(hub, 'udp-answer', 'a'), await fleet.peer(hub, 'udp-answer', 'b')];
  const ports = [{ name: 'dns', port: 53, protocol: 'udp' }];
  const apply = (...peers: readonly { readonly port: number }[]) =>
    fleet.apply(
      'udp',
      peers.map(({ port }) => ({ address: hub.address, port })),
      fleet.server,
      { ports },
    );
  await apply(a);
  const vip = await until(
    async () => (await fleet.services(daemon)).get('udp') ?? '',
    (address) => address !== '',
  );
  await sleep(300);
  const asker = await fleet.peer(daemon.space, 'udp-ask', vip, 53);
  const heard = (...texts: readonly string[]) =>
    until(
      () => asker.ends(),
      (ends) => ends.join() === texts.join(),
      1_500,
    );
  await heard('a');
  await apply(b);
  await heard('a', 'b');
  await apply();
  await heard('a', 'b', 'ECONNREFUSED');
  await apply(a);
  await heard('a', 'b', 'ECONNREFUSED', 'a');
});

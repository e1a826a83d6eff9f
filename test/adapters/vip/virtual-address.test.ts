import { execFileSync, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bootTime } from '../../../src/adapters/clock/boot-time.js';
import { type Addon, addonPath } from '../../../src/adapters/dataplane/addon.js';
import { NetlinkVirtualAddress } from '../../../src/adapters/vip/netlink-virtual-address.js';
import type { IpAddress } from '../../../src/domain/kernel/network.js';
import { virtualAddressContract } from '../../contract/virtual-address.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeVirtualAddress } from '../../fakes/fake-virtual-address.js';
import { callIn, ip, VipLink } from '../../support/vip-space.js';

const VIP = '10.9.0.100' as IpAddress;
const VIP6 = 'fd09::100' as IpAddress;

virtualAddressContract('fake', async () => {
  const clock = new FakeClock();
  const address = new FakeVirtualAddress(() => clock.monotonic());
  return {
    address,
    bootTime: () => clock.monotonic(),
    wait: (ms) => clock.advance(ms),
    put: () => address.disturb('put'),
  };
});

describe.skipIf(process.getuid?.() !== 0)('in the kernel', () => {
  let link: VipLink;
  beforeAll(() => {
    link = new VipLink('addr');
  });
  afterAll(() => link.close());

  /** The addon's functions, each in a process of its own in the first space. */
  const addonIn = (space: string) =>
    new Proxy(
      {},
      {
        get:
          (_, name) =>
          (...args: readonly unknown[]) =>
            callIn(space, String(name), ...args),
      },
    ) as Addon;
  const addressIn = (space: string, address: IpAddress, on?: string) =>
    new NetlinkVirtualAddress({ addon: addonIn(space), address, interface: on });

  for (const address of [VIP, VIP6]) {
    virtualAddressContract(`rtnetlink, ${address}`, async () => {
      const [space] = link.spaces;
      return {
        address: addressIn(space, address),
        bootTime,
        wait: (ms) => sleep(ms),
        put: () => void ip(space, 'addr', 'add', `${address}/${address === VIP ? 24 : 64}`, 'dev', 'eth0'),
      };
    });
  }

  test('the kernel has it as others see it: with a lifetime, as a host of its own', () => {
    const [space] = link.spaces;
    const address = addressIn(space, VIP);
    address.lease(bootTime() + 25_000);
    const shown = ip(space, '-4', 'addr', 'show', 'dev', 'eth0');
    expect(shown).toContain('inet 10.9.0.100/32 scope global dynamic eth0');
    expect(shown).toMatch(/valid_lft 2[45]sec preferred_lft 2[45]sec/);
    address.remove();
    expect(ip(space, '-4', 'addr', 'show', 'dev', 'eth0')).not.toContain('10.9.0.100');
    expect(ip(space, '-4', 'addr', 'show', 'dev', 'eth0')).toContain('10.9.0.1/24');
  });

  test.each([VIP, VIP6])('%s of another hand is not changed but exchanged: the route of its network stays as it is', (text) => {
    const [space] = link.spaces;
    const routes = () => ip(space, text === VIP ? '-4' : '-6', 'route', 'show', 'dev', 'eth0', 'proto', 'kernel');
    const before = routes();
    ip(space, 'addr', 'add', `${text}/${text === VIP ? 24 : 64}`, 'dev', 'eth0');
    const address = addressIn(space, text);
    address.lease(bootTime() + 25_000);
    expect(address.find()).toMatchObject([{ prefixLength: text === VIP ? 32 : 128 }]);
    address.remove();
    expect(routes()).toBe(before);
  });

  test('where there is no such interface it is named', () => {
    const [space] = link.spaces;
    expect(() => addressIn(space, VIP, 'eth7').lease(bootTime() + 25_000)).toThrow(
      expect.objectContaining({ code: 'vip.no_interface' }),
    );
    expect(() => addressIn(space, '192.0.2.1' as IpAddress).lease(bootTime() + 25_000)).toThrow(
      expect.objectContaining({ code: 'vip.no_interface' }),
    );
  });

  test.each([
    [['eth0', 'nonsense', 5], 'TypeError'],
    [['', '10.9.0.100', 5], 'TypeError'],
    [['eth0', '10.9.0.100', 'soon'], 'TypeError'],
    [['eth0', '10.9.0.100', 1e15], 'EINVAL'],
  ])('leaseAddress(%j) is refused', (args, code) => {
    const [space] = link.spaces;
    expect(() => callIn(space, 'leaseAddress', ...args)).toThrow(expect.objectContaining({ code }));
  });

  test.each([VIP, VIP6])(
    '%s: without an announcement neighbours stay with the old machine, with one they go to the new one at once',
    async (address) => {
      const [first, second, watcher] = link.spaces;
      const ping = () => {
        try {
          execFileSync('ip', ['netns', 'exec', watcher, 'ping', '-n', '-c', '1', '-W', '1', address], { stdio: 'ignore' });
          return true;
        } catch {
          return false;
        }
      };
      const [one, other] = [addressIn(first, address), addressIn(second, address)];
      one.lease(bootTime() + 25_000);
      // IPv6 begins to listen for it a little later.
      await expect.poll(ping, { timeout: 20_000 }).toBe(true);
      one.remove();
      other.lease(bootTime() + 25_000);
      expect(ping()).toBe(false);
      // One packet may be lost: the agent sends three.
      const announced = () => {
        other.announce();
        return ping();
      };
      await expect.poll(announced, { timeout: 20_000 }).toBe(true);
      other.remove();
    },
  );

  test.each([VIP, VIP6])('RFC 5227: who has %s is heard by one who asks, and nobody else', async (address) => {
    const [first, second] = link.spaces;
    const script = `
      const addon = require(${JSON.stringify(addonPath(process.env.HOLDFAST_ADDON))});
      const fd = addon.watchNeighbours('eth0', '${address}');
      addon.tellNeighbours('probe', 'eth0', '${address}');
      setTimeout(() => process.stdout.write(String(addon.readClaim(fd, 'eth0', '${address}'))), 500);`;
    const asked = async () => {
      const child = spawn('ip', ['netns', 'exec', first, process.execPath, '-e', script], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let text = '';
      for await (const piece of child.stdout) text += String(piece);
      return text;
    };
    const own = addressIn(first, address);
    own.lease(bootTime() + 25_000);
    expect(await asked()).toBe('undefined');
    const other = addressIn(second, address);
    other.lease(bootTime() + 25_000);
    const mac = /link\/ether (\S+)/.exec(ip(second, 'link', 'show', 'dev', 'eth0'))?.[1];
    expect(await asked()).toBe(mac);
    own.remove();
    other.remove();
  });
});

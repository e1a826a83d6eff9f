import { describe, expect, test } from 'vitest';
import { VipKeeper, type VipKeeperParts } from '../../../src/app/vip/vip-keeper.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeJournal, FakeJournalDisk } from '../../fakes/fake-journal.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeVirtualAddress } from '../../fakes/fake-virtual-address.js';

const options = { signal: new AbortController().signal };
const START = 1_000_000;

async function rig(more: Partial<VipKeeperParts> = {}) {
  const clock = new FakeClock();
  const disk = new FakeJournalDisk();
  const journal = new FakeJournal(disk);
  await journal.open(options);
  const bootTime = () => START + clock.monotonic();
  const address = new FakeVirtualAddress(bootTime);
  const logger = new FakeLogger();
  const keeper = new VipKeeper({ address, journal, bootTime, onDisconnect: 'drop', logger, ...more });
  keeper.connected('fleet-a');
  /** The loop goes on. */
  const go = async (ms: number) => {
    for (let left = ms; left > 0; left -= 1_000) {
      await clock.advance(Math.min(1_000, left));
      keeper.look();
    }
  };
  return { clock, disk, journal, address, logger, keeper, bootTime, go };
}

describe('VIP_ASSIGN', () => {
  test('V1: it is in force for 25 s from its receipt, and announced three times', async () => {
    const { keeper, address, bootTime, go, disk } = await rig();
    expect(await keeper.assign(7n, bootTime(), options)).toEqual({ done: 'done' });
    expect([address.seconds, address.announced, disk.vips.get('fleet-a')]).toEqual([25, 1, 7n]);
    await go(5_000);
    expect([address.seconds, address.announced]).toEqual([20, 3]);
  });

  test('V1: without anybody calling the kernel takes it away', async () => {
    const { keeper, address, bootTime, clock } = await rig();
    await keeper.assign(7n, bootTime(), options);
    await clock.advance(24_999);
    expect(address.seconds).toBe(1);
    await clock.advance(1);
    expect(address.seconds).toBeUndefined();
  });

  test.each([7n, 6n, -1n])('a generation that is not newer is acknowledged and does nothing: %s after 7', async (generation) => {
    const { keeper, address, bootTime } = await rig();
    await keeper.release(7n, options);
    expect(await keeper.assign(generation, bootTime(), options)).toEqual({ done: 'late', known: 7n });
    expect(address.seconds).toBeUndefined();
  });

  test('the generation is remembered by the next process, exact beyond 2^53', async () => {
    const first = await rig();
    await first.keeper.assign(2n ** 53n + 1n, first.bootTime(), options);
    const next = await rig({ journal: first.journal });
    expect(await next.keeper.assign(2n ** 53n + 1n, next.bootTime(), options)).toMatchObject({ done: 'late' });
    expect(await next.keeper.assign(2n ** 53n + 2n, next.bootTime(), options)).toEqual({ done: 'done' });
  });

  test('another fleet has generations of its own', async () => {
    const { keeper, bootTime } = await rig();
    await keeper.assign(7n, bootTime(), options);
    keeper.connected('fleet-b');
    expect(await keeper.assign(1n, bootTime(), options)).toEqual({ done: 'done' });
  });

  test('V2: what is not in force 4 s after its receipt is undone', async () => {
    const { keeper, address, bootTime, clock } = await rig();
    const receivedAt = bootTime();
    await clock.advance(4_000);
    await expect(keeper.assign(7n, receivedAt, options)).rejects.toMatchObject({ code: 'vip.not_in_force' });
    expect(address.seconds).toBeUndefined();
  });

  test('V2: also when it is the disk that took so long', async () => {
    const { journal, clock } = await rig();
    const slow = {
      vipGeneration: async () => 0n,
      commit: async (...args: Parameters<typeof journal.commit>) => {
        await clock.advance(4_500);
        return journal.commit(...args);
      },
    };
    const { keeper, address, bootTime } = await rig({ journal: slow, bootTime: () => START + clock.monotonic() });
    await expect(keeper.assign(7n, bootTime() - 0, options)).rejects.toMatchObject({ code: 'vip.not_in_force' });
    expect(address.find()).toEqual([]);
  });

  test('K: what cannot be journalled is not in force', async () => {
    const { keeper, address, bootTime, disk } = await rig();
    disk.full = true;
    await expect(keeper.assign(7n, bootTime(), options)).rejects.toMatchObject({ code: 'journal.unavailable' });
    expect(address.seconds).toBeUndefined();
  });

  test('a newer release that comes while it is written down wins', async () => {
    const { keeper, address, bootTime } = await rig();
    const assigning = keeper.assign(7n, bootTime(), options);
    const releasing = keeper.release(8n, options);
    await expect(assigning).rejects.toMatchObject({ code: 'vip.not_in_force' });
    expect(await releasing).toEqual({ done: 'done' });
    expect(address.seconds).toBeUndefined();
  });

  test('where the control plane was asked meanwhile and said the same, it is in force', async () => {
    const { keeper, address, bootTime } = await rig();
    const assigning = keeper.assign(7n, bootTime(), options);
    await Promise.resolve();
    keeper.confirm({ isHolder: true, generation: 7n }, bootTime());
    expect(await assigning).toMatchObject({ done: expect.stringMatching(/^(done|late)$/) });
    expect(address.seconds).toBe(25);
  });

  test('an interface that is not there fails it, and it can be had when it is there', async () => {
    const { keeper, address, bootTime } = await rig();
    address.fail(new AgentError('vip.no_interface', { problem: 'eth7' }));
    await expect(keeper.assign(7n, bootTime(), options)).rejects.toMatchObject({ code: 'vip.no_interface' });
    expect(keeper.state().failure?.message).toContain('eth7');
    address.fail(undefined);
    expect(await keeper.assign(8n, bootTime(), options)).toEqual({ done: 'done' });
  });
});

describe('VIP_RELEASE', () => {
  test('it is gone at once', async () => {
    const { keeper, address, bootTime, disk } = await rig();
    await keeper.assign(7n, bootTime(), options);
    expect(await keeper.release(8n, options)).toEqual({ done: 'done' });
    expect([address.seconds, disk.vips.get('fleet-a')]).toEqual([undefined, 8n]);
  });

  test('K: it is done all the same where it cannot be journalled', async () => {
    const { keeper, address, bootTime, disk } = await rig();
    await keeper.assign(7n, bootTime(), options);
    disk.full = true;
    expect(await keeper.release(8n, options)).toEqual({ done: 'done' });
    expect(address.seconds).toBeUndefined();
    expect(await keeper.release(8n, options)).toEqual({ done: 'late', known: 8n });
  });
});

describe('who has it', () => {
  test('V2: the answer holds also downwards, and is remembered', async () => {
    const { keeper, address, bootTime, disk, clock } = await rig();
    await keeper.assign(7n, bootTime(), options);
    keeper.confirm({ isHolder: false, generation: 3n }, bootTime());
    await clock.advance(0);
    expect([address.seconds, disk.vips.get('fleet-a')]).toEqual([undefined, 3n]);
    expect(await keeper.assign(4n, bootTime(), options)).toEqual({ done: 'done' });
  });

  test('V1: it is prolonged by answers of the stream on which it was given, and by no other', async () => {
    const { keeper, address, bootTime, go } = await rig();
    await keeper.assign(7n, bootTime(), options);
    await go(10_000);
    keeper.prolong(bootTime() - 500);
    expect(address.seconds).toBe(24);
    keeper.connected('fleet-a');
    await go(5_000);
    keeper.prolong(bootTime());
    expect(address.seconds).toBe(19);
    keeper.confirm({ isHolder: true, generation: 7n }, bootTime());
    expect([address.seconds, keeper.state().counts.taken]).toEqual([25, 1]);
  });

  test('V2: 15 s without an answer drop it', async () => {
    const { keeper, address, bootTime, go } = await rig();
    await keeper.assign(7n, bootTime(), options);
    await go(14_000);
    expect(address.seconds).toBe(11);
    await go(1_000);
    expect([address.seconds, keeper.state().counts.dropped.silence]).toEqual([undefined, 1]);
  });

  test('V1: a process that did not look for more than 5 s drops it before anything else', async () => {
    const { keeper, address, bootTime, clock } = await rig();
    await keeper.assign(7n, bootTime(), options);
    keeper.look();
    await clock.advance(5_001);
    expect(keeper.look()).toBe('gap');
    expect(address.seconds).toBeUndefined();
  });

  test('onDisconnect keep: it is held on until somebody else has it', async () => {
    const { keeper, address, bootTime, go } = await rig({ onDisconnect: 'keep' });
    await keeper.assign(7n, bootTime(), options);
    await go(120_000);
    expect([address.seconds, keeper.state().isAlone]).toEqual([25, true]);
    keeper.conflict();
    await go(2_000);
    expect([address.seconds, keeper.state().counts.dropped.conflict]).toEqual([undefined, 1]);
  });

  test('a third hand that removes it or makes it stay for ever is noticed', async () => {
    const { keeper, address, bootTime, go } = await rig();
    await keeper.assign(7n, bootTime(), options);
    for (const how of ['removed', 'put'] as const) {
      address.disturb(how);
      await go(1_000);
      expect(address.seconds).toBeGreaterThan(20);
      expect(address.seconds).toBeLessThan(26);
    }
    expect(keeper.state().counts.removedByOthers).toBe(2);
  });

  test('one that stands here and is not ours goes', async () => {
    const { keeper, address, go } = await rig();
    address.disturb('put');
    keeper.clear();
    expect(address.seconds).toBeUndefined();
    address.disturb('put');
    await go(1_000);
    expect(address.seconds).toBeUndefined();
  });

  test('what the kernel did not take away is tried again', async () => {
    const { keeper, address, bootTime, go } = await rig();
    await keeper.assign(7n, bootTime(), options);
    address.fail(new AgentError('vip.not_set', { problem: 'EPERM' }));
    expect(() => keeper.confirm({ isHolder: false, generation: 8n }, bootTime())).toThrow('EPERM');
    expect(keeper.state().hold.until).toBeUndefined();
    address.fail(undefined);
    expect(address.seconds).toBe(25);
    await go(1_000);
    expect(address.seconds).toBeUndefined();
  });
});

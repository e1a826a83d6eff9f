import { describe, expect, test } from 'vitest';
import { VipKeeper } from '../../../src/app/vip/vip-keeper.js';
import { FakeJournal } from '../../fakes/fake-journal.js';
import { FakeVirtualAddress } from '../../fakes/fake-virtual-address.js';
import { acknowledging, contentOf, FakeSession, InstructionWorld, serverFacts } from '../../support/instruction-rig.js';

const options = { signal: new AbortController().signal };

/** A world in which this node may have the virtual IP. */
async function rig() {
  const world = new InstructionWorld();
  const bootTime = () => world.bootTime();
  const address = new FakeVirtualAddress(bootTime);
  const journal = new FakeJournal(world.disk);
  await journal.open(options);
  world.vip = new VipKeeper({ address, journal, bootTime, onDisconnect: 'drop', logger: world.logger });
  world.vip.connected('fleet-a');
  const process = await world.start();
  const session = process.connect(acknowledging(process));
  return { world, process, session, address };
}

describe('VIP_ASSIGN and VIP_RELEASE', () => {
  test('are answered, and what was said is not kept', async () => {
    const { world, process, session, address } = await rig();
    process.deliver('VIP_ASSIGN', 't1', { generation: 1 });
    await process.settle();
    expect(session.dump()).toBe('t1 VIP_ASSIGN_RESPONSE {"ok":true,"message":""}');
    expect(address.seconds).toBe(25);
    process.deliver('VIP_RELEASE', 't2', { generation: 2 });
    process.deliver('VIP_ASSIGN', 't3', { generation: 1 });
    await process.settle();
    expect(session.of('t2').map(contentOf)).toEqual(['{"ok":true,"message":""}']);
    expect(session.of('t3').map(contentOf)).toEqual([
      '{"ok":true,"message":"generation 1 is not greater than 2, the last that was applied: nothing was done"}',
    ]);
    expect(address.seconds).toBeUndefined();
    expect(await process.journal.reply({ fleet: 'fleet-a', tag: 't1' as never }, options)).toBe('none');
    expect(world.disk.dump()).toContain('t1 VIP_ASSIGN acked 1 done');
  });

  test('beyond 2^53 the generation is exact', async () => {
    const { process, address, session } = await rig();
    const far = Buffer.from('{"generation":9007199254740993}').toString('base64');
    process.deliver('VIP_ASSIGN', 't1', far);
    process.deliver('VIP_RELEASE', 't2', far);
    await process.settle();
    expect(session.of('t2').map(contentOf)).toEqual([expect.stringContaining('9007199254740993 is not greater')]);
    expect(address.seconds).toBe(25);
  });

  test('A18: a VIP_ASSIGN that fails is silent, also when it is repeated', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    const session = process.connect();
    for (const payload of [{ generation: 1 }, { generation: 1 }]) process.deliver('VIP_ASSIGN', 't1', payload);
    process.deliver('VIP_ASSIGN', 't2', { generation: 'one' });
    process.deliver('VIP_RELEASE', 't3', { generation: 1 });
    await process.settle();
    expect(session.dump()).toBe('t3 VIP_RELEASE_RESPONSE {"ok":true,"message":"this node has no virtual IP"}');
    expect(world.disk.dump().split('\n').slice(0, 2)).toEqual([
      't1 VIP_ASSIGN finished 1 failed',
      't2 VIP_ASSIGN finished 0 refused',
    ]);
  });

  test('A8: a repeat is not answered from the journal, on this stream or another', async () => {
    const { process, session } = await rig();
    process.deliver('VIP_ASSIGN', 't1', { generation: 1 });
    await process.settle();
    process.deliver('VIP_ASSIGN', 't1', { generation: 1 });
    await process.settle();
    expect(session.of('t1')).toHaveLength(1);
    const other = process.connect(new FakeSession(serverFacts()));
    process.deliver('VIP_ASSIGN', 't1', { generation: 1 });
    await process.settle(60_000);
    expect(other.sent).toEqual([]);
  });

  test('A8: the answer does not go out on another stream than asked', async () => {
    const { process, address } = await rig();
    const first = process.connect(new FakeSession(serverFacts()));
    process.deliver('VIP_ASSIGN', 't1', { generation: 1 });
    const second = process.connect(new FakeSession(serverFacts()));
    await process.settle(60_000);
    expect([first.sent, second.sent]).toEqual([[], []]);
    expect(address.announced).toBeGreaterThan(0);
  });

  test.each([
    ['VIP_ASSIGN', 5_001],
    ['VIP_RELEASE', 3_001],
  ])('A8: an answer of %s that is %i ms old is dropped', async (type, age) => {
    const { world, process, session } = await rig();
    // The machine slept after it was done.
    process.journal.cut(([change]) => {
      if (change?.change === 'row' && change.row.state === 'finished') world.sleptMs += age;
      return undefined;
    });
    process.deliver(type, 't1', { generation: 1 });
    await process.settle();
    expect(session.sent).toEqual([]);
    expect(world.disk.dump()).toBe(`t1 ${type} finished 1 done`);
  });

  test('K: without a journal VIP_ASSIGN gets no reply, and VIP_RELEASE is done all the same', async () => {
    const { world, process, session, address } = await rig();
    process.deliver('VIP_ASSIGN', 't1', { generation: 1 });
    await process.settle();
    world.disk.full = true;
    process.deliver('VIP_ASSIGN', 't2', { generation: 2 });
    await process.settle();
    expect(session.of('t2')).toEqual([]);
    expect(address.seconds).toBe(25);
    process.deliver('VIP_RELEASE', 't3', { generation: 3 });
    await process.settle();
    expect(session.of('t3').map(contentOf)).toEqual(['{"ok":true,"message":""}']);
    expect(address.seconds).toBeUndefined();
  });
});

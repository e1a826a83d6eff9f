import { describe, expect, test } from 'vitest';
import { settleRestored } from '../../../src/app/fleet/settle-restored.js';
import { decodeStream, streamPrefix } from '../../../src/domain/link/stream-record.js';
import { decodeVipRecord, encodeVipRecord } from '../../../src/domain/vip/fleet.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { base64, fleetOn, fleetRig, n1, n2, options, settle, tagOf } from '../../support/fleet-rig.js';

/** What a store held at some time, as another store. */
async function copyOf(store: FakeControlStore): Promise<FakeControlStore> {
  const copy = new FakeControlStore();
  for (const { key, value } of await store.list('', options)) await copy.commit([], [{ key, value }], options);
  return copy;
}

describe('a store that was put back', () => {
  test('B2: epochs are above all that nodes can have seen since', async () => {
    const { store, connect, registrations, clock } = await fleetRig();
    registrations.register(n1);
    await (await connect()).close();
    const copy = await copyOf(store);
    for (let i = 0; i < 5; i += 1) await (await connect()).close();
    expect((await settleRestored(copy, clock.now(), options)).streams).toBe(1);
    const [kept] = await copy.list(streamPrefix, options);
    expect(decodeStream(kept?.value ?? '').epoch).toBe(1n + 2n ** 32n);
    const restored = await fleetOn(copy, clock, { registrations });
    expect((await restored.connect()).facts.epoch).toBe(2n + 2n ** 32n);
  });

  test('V1: a virtual IP is given to nobody before whoever has got it since has lost it, under a generation that nobody has seen', async () => {
    const { store, clock } = await fleetRig();
    const [key, other] = ['vip/acme', 'vip/none'];
    const held = { generation: 7n, phase: 'held' as const, node: n1, wanted: '' as const, failures: 0, since: 1 };
    await store.commit([], [{ key, value: encodeVipRecord(held) }], options);
    await store.commit([], [{ key: other, value: encodeVipRecord({ ...held, phase: 'free', node: '' }) }], options);
    await settleRestored(store, clock.now(), options);
    const kept = (await store.list('vip/', options)).map(({ value }) => decodeVipRecord(value));
    const generation = 7n + 2n ** 32n;
    expect(kept).toEqual([
      { ...held, phase: 'releasing', generation, since: clock.now() },
      { ...held, phase: 'releasing', node: '', generation, since: clock.now() },
    ]);
  });

  test('A14: what was not finished is not sent again, and a result that comes after all stands', async () => {
    const { store, connect, registrations, send, clock } = await fleetRig();
    registrations.register(n1);
    const { say } = await connect();
    await send({ tag: tagOf('finished') });
    await settle();
    await say('NODE_STATUS', 'finished', base64('{"a":1}'));
    await send({ tag: tagOf('delivered') });
    await send({ nid: n1, tag: tagOf('late') });
    registrations.register(n2);
    await send({ nid: n2, tag: tagOf('pending') });
    await settle();
    const copy = await copyOf(store);
    expect((await settleRestored(copy, clock.now(), options)).instructions).toBe(3);
    const restored = await fleetOn(copy, clock, { registrations });
    const node = await restored.connect();
    await restored.connect({ nid: n2 });
    await settle();
    await node.say('NODE_STATUS', 'late', base64('{}'));
    const states = (await restored.instructions.list({}, options)).map(({ tag, state }) => `${tag} ${state}`);
    expect(states).toEqual(['finished done', 'delivered unknown', 'late done', 'pending unknown']);
    expect(node.stream.told.filter((text) => text.startsWith('GET_NODE_STATUS'))).toEqual([]);
    // Nothing of what they said is kept.
    expect(copy.dump('body/n2/')).toBe('');
  });

  test('nothing in it: nothing to do', async () => {
    expect(await settleRestored(new FakeControlStore(), 1, options)).toEqual({ streams: 0, instructions: 0, tokens: 0 });
  });
});

import { describe, expect, test } from 'vitest';
import { ANSWER_MS, WINDOW } from '../../../src/domain/dispatch/model.js';
import { EMPTY_JSON_B64, type Nid } from '../../../src/domain/link/model.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { agentFacts, base64, fleetRig, n1, n2, options, settle, tagOf } from '../../support/fleet-rig.js';

const HOUR = 3_600_000;
const a = tagOf('a');
const again = (session: number, facts = {}) => ({ agent: agentFacts({ session, ...facts }) });
const journal = (id: string, counter: bigint) => ({ journal: { id, counter } });
const older = { agent: undefined };

async function rigWithNode(parts: Parameters<typeof fleetRig>[0] = {}) {
  const rig = await fleetRig(parts);
  rig.registrations.register(n1);
  const state = async (tag = a) => {
    const { status } = await rig.instructions.get(n1, tag, options);
    return status.reason === '' ? status.state : `${status.state}: ${status.reason}`;
  };
  return { ...rig, state };
}

describe('delivery', () => {
  test('A14: to a node that is there, marked before it is sent, with epoch and what is left of its time', async () => {
    const { connect, send, clock, store, state } = await rigWithNode();
    const { stream } = await connect();
    await send({ tag: a, type: 'RUN_WEB_REQUEST', json: '{"url": "http://x", "n": 9007199254740993}' });
    await settle();
    const [message] = stream.sent;
    expect(message).toEqual({
      ...{ type: 'RUN_WEB_REQUEST', tag: 'a', epoch: 1n, expiresInMs: HOUR },
      jsonB64: base64('{"url": "http://x", "n": 9007199254740993}'),
    });
    expect(await state()).toBe('delivered');
    expect(JSON.parse(store.dump('inst/').split(' = ')[1]?.split(' @ ')[0] ?? '')).toMatchObject({
      ...{ state: 'delivered', epoch: '1', journal: 'j1', deliveredAt: clock.now() },
    });
  });

  test('to a node that comes later, in the order of issue, with the time that is left', async () => {
    const { connect, send, clock } = await rigWithNode();
    for (const tag of ['b', 'a', 'c']) await send({ tag: tagOf(tag) });
    await clock.advance(60_000);
    const { stream } = await connect();
    expect(stream.told).toEqual(['GET_NODE_STATUS b', 'GET_NODE_STATUS a', 'GET_NODE_STATUS c']);
    expect(stream.sent.map(({ expiresInMs }) => expiresInMs)).toEqual(Array.from({ length: 3 }, () => HOUR - 60_000));
  });

  test('to an older agent without what it does not know', async () => {
    const { connect, send } = await rigWithNode();
    const { stream } = await connect(older);
    await send({ tag: a });
    await settle();
    expect(stream.sent).toEqual([{ type: 'GET_NODE_STATUS', tag: 'a', jsonB64: EMPTY_JSON_B64 }]);
  });

  test('D3: at most 32 unanswered; each answer lets the next one go', async () => {
    const { connect, send, instructions } = await rigWithNode();
    const { stream, say } = await connect();
    for (let i = 0; i < WINDOW + 3; i += 1) await send({ tag: tagOf(`t${i}`) });
    await settle();
    expect(stream.told).toHaveLength(WINDOW);
    const waiting = (await instructions.list({ nid: n1 }, options)).filter(({ state }) => state === 'pending');
    expect(waiting.map(({ tag, waitsFor }) => `${tag} ${waitsFor}`)).toEqual(['t32 its turn', 't33 its turn', 't34 its turn']);
    await say('NODE_STATUS', 't5');
    expect(stream.told.slice(WINDOW)).toEqual(['RESULT_ACK t5', 'GET_NODE_STATUS t32']);
  });

  test('only to the node it is addressed to', async () => {
    const { connect, send, registrations } = await rigWithNode();
    registrations.register(n2);
    const [first, second] = [await connect(), await connect({ nid: n2 })];
    await send({ nid: n2, tag: a });
    await settle();
    expect([first.stream.told, second.stream.told]).toEqual([[], ['GET_NODE_STATUS a']]);
  });

  test('A11: what has expired is never sent', async () => {
    const { connect, send, clock, state } = await rigWithNode();
    await send({ tag: a, expiresMs: 5_000 });
    await clock.advance(5_000);
    expect(await state()).toBe('expired: it could not be sent in time');
    expect((await connect()).stream.told).toEqual([]);
  });

  test('B4: is held back while two older agents contest the node, and then goes on', async () => {
    const { connect, send, clock } = await rigWithNode();
    for (const host of [1, 2, 1, 2]) await connect({ ...older, address: `192.0.2.${host}:1` });
    const { stream } = await connect({ ...older, address: '192.0.2.1:1' });
    await send({ tag: a });
    await clock.advance(14_999);
    expect(stream.told).toEqual([]);
    await clock.advance(1_001);
    expect(stream.told).toEqual(['GET_NODE_STATUS a']);
  });

  test('waits while the node is cordoned', async () => {
    const { connect, send, nodes, instructions } = await rigWithNode();
    const { stream } = await connect();
    await nodes.cordon(n1, true, options);
    await send({ tag: a });
    await settle();
    expect(stream.told).toEqual([]);
    expect((await instructions.get(n1, a, options)).status.waitsFor).toBe('the node to be uncordoned');
    await nodes.cordon(n1, false, options);
    await settle();
    expect(stream.told).toEqual(['GET_NODE_STATUS a']);
  });

  test('of 10,000 for 1,000 nodes takes one watch of the store, and no list a node', { timeout: 60_000 }, async () => {
    const rig = await fleetRig();
    const nodes = Array.from({ length: 1_000 }, (_, i) => `n${i}` as Nid);
    for (const nid of nodes) rig.registrations.register(nid);
    for (let i = 0; i < 10; i += 1) await Promise.all(nodes.map((nid) => rig.send({ nid, tag: tagOf(`t${i}`) })));
    expect(rig.book.openCount()).toBe(10_000);
    const before = rig.store.reads;
    const streams = await Promise.all(nodes.map((nid) => rig.connect({ nid })));
    await settle();
    expect(streams.every(({ stream }) => stream.told.length === 10)).toBe(true);
    // Its epoch, and what each of its instructions says.
    expect(rig.store.reads - before).toBe(1_000 * (1 + 10));
    expect(rig.store.watches).toBe(5);
  });
});

describe('B2: the fence', () => {
  test('a replica that was cut off delivers nothing', async () => {
    const { connect, send, store, clock, state } = await rigWithNode();
    const { stream } = await connect();
    store.setUnavailable(true);
    await expect(send({ tag: a })).rejects.toMatchObject({ code: 'store.unavailable' });
    store.setUnavailable(false);
    await clock.advance(1_000);
    await send({ tag: a });
    store.failNext();
    await clock.advance(0);
    expect(stream.told).toEqual([]);
    await clock.advance(1_000);
    expect(stream.told).toEqual(['GET_NODE_STATUS a']);
    expect(await state()).toBe('delivered');
  });

  test('what another stream has taken over is not sent on the former, and is sent once', async () => {
    const store = new FakeControlStore();
    const one = await rigWithNode({ store });
    const { stream: former } = await one.connect();
    const other = await fleetRig({ server: 's2', store, clock: one.clock, registrations: one.registrations });
    const { stream } = await other.connect(again(1, { instance: 'i2' }));
    await one.send({ tag: a });
    await settle();
    expect([former.told, stream.told]).toEqual([[], ['GET_NODE_STATUS a']]);
    expect(former.ended?.status).toBe('superseded');
  });

  test('a delivery whose commit is in doubt is sent when the store says what became of it, also to an older agent, once', async () => {
    for (const outcome of ['written', 'not written'] as const) {
      const { connect, send, store, clock } = await rigWithNode();
      const { stream } = await connect(older);
      await send({ tag: a });
      store.loseNextAnswer(outcome);
      await settle();
      await clock.advance(2_000);
      expect(stream.told).toEqual(['GET_NODE_STATUS a']);
    }
  });
});

describe('A14: redelivery', () => {
  test('on the next stream, same tag and order, to an agent that keeps a journal', async () => {
    const { connect, send } = await rigWithNode();
    const first = await connect();
    await send({ tag: tagOf('b') });
    await send({ tag: a });
    await settle();
    await first.close();
    const second = await connect(again(2, journal('j1', 5n)));
    expect(second.stream.told).toEqual(['GET_NODE_STATUS b', 'GET_NODE_STATUS a']);
    expect(second.stream.sent.map(({ epoch }) => epoch)).toEqual([2n, 2n]);
  });

  test('also after a restart of the server', async () => {
    const { connect, send, store, clock, stop } = await rigWithNode();
    await connect();
    await send({ tag: a });
    await settle();
    await stop();
    const restarted = await fleetRig({ store, clock });
    expect((await restarted.connect(again(2))).stream.told).toEqual(['GET_NODE_STATUS a']);
  });

  test('never to an older agent: its outcome is unknown after 30 s', async () => {
    const { connect, send, clock, state } = await rigWithNode();
    const first = await connect(older);
    await send({ tag: a });
    await settle();
    await first.close();
    const second = await connect(older);
    await clock.advance(ANSWER_MS - 1);
    expect(await state()).toBe('delivered');
    await clock.advance(1);
    expect(await state()).toBe('unknown: this agent cannot deduplicate');
    expect(second.stream.told).toEqual([]);
  });

  test('a script gets its own time', async () => {
    const { connect, send, clock, state } = await rigWithNode();
    await connect(older);
    await send({ tag: a, type: 'RUN_REMOTE_SCRIPT', json: '{"script":"x","timeoutSeconds":60}' });
    await clock.advance(89_000);
    expect(await state()).toBe('delivered');
    await clock.advance(1_001);
    expect(await state()).toMatch(/^unknown/);
  });

  test.each([
    ['another journal', journal('j2', 1n)],
    ['an older copy', journal('j1', 2n)],
  ])('A12: not to an agent that comes with %s', async (_, facts) => {
    const { connect, send, state } = await rigWithNode();
    const first = await connect(again(1, journal('j1', 3n)));
    await send({ tag: a });
    await settle();
    await first.close();
    const second = await connect(again(2, facts));
    expect(second.stream.told).toEqual([]);
    expect(await state()).toBe('unknown: the node has lost its journal');
    await send({ tag: tagOf('b') });
    await settle();
    expect(second.stream.told).toEqual(['GET_NODE_STATUS b']);
  });

  test('A13: a new registration is not given what was meant for the former one', async () => {
    const { connect, send, state, registrations } = await rigWithNode();
    const first = await connect();
    await send({ tag: tagOf('b') });
    await settle();
    await first.close();
    await send({ tag: a, type: 'UNINSTALL_NODE' });
    registrations.register(n1, 'r2');
    const second = await connect({ registration: 'r2', ...again(2) });
    expect(second.stream.told).toEqual([]);
    expect(await state()).toBe('cancelled: the node has registered again');
    expect(await state(tagOf('b'))).toBe('unknown: the node has registered again');
    await send({ tag: tagOf('c') });
    await settle();
    expect(second.stream.told).toEqual(['GET_NODE_STATUS c']);
  });
});

describe('results', () => {
  test('C1: are acknowledged when the store holds them, to an agent that knows acknowledgements', async () => {
    const { connect, send, instructions, store } = await rigWithNode();
    const { stream, say } = await connect();
    await send({ tag: a });
    await settle();
    await say('NODE_STATUS', 'a', base64('{"ok":true}'));
    expect(stream.sent.at(-1)).toEqual({ type: 'RESULT_ACK', tag: 'a', jsonB64: EMPTY_JSON_B64 });
    const { status, reply } = await instructions.get(n1, a, options);
    expect(status).toMatchObject({ state: 'done', replyType: 'NODE_STATUS', replyBytes: 16, waitsFor: '' });
    expect(reply).toEqual({ type: 'NODE_STATUS', jsonB64: base64('{"ok":true}') });
    expect(store.dump('inst-body/')).toMatch(/^inst-body\/n1\/a\/r\/0 = sealed inst-body\/n1\/a\/r\/0: /);
  });

  test('C1: not to others, which would answer an ERROR under the same tag (test 1)', async () => {
    const { connect, send, state, dispatcher } = await rigWithNode();
    const { stream, say } = await connect(older);
    await send({ tag: a });
    await settle();
    await say('NODE_STATUS', 'a');
    await say('ERROR', 'a', 'unknown type RESULT_ACK');
    expect(stream.told).toEqual(['GET_NODE_STATUS a']);
    expect(await state()).toBe('done');
    expect(dispatcher.counters).toEqual({ stored: 1, repeated: 1, stray: 0, lost: 0 });
  });

  test('the first one stands; a later one is counted, and acknowledged again', async () => {
    const { connect, send, instructions, dispatcher } = await rigWithNode();
    const { stream, say } = await connect();
    await send({ tag: a });
    await settle();
    await Promise.all([say('NODE_STATUS', 'a', base64('1')), say('ERROR', 'a', 'second')]);
    await say('ERROR', 'a', 'third');
    expect((await instructions.get(n1, a, options)).reply).toEqual({ type: 'NODE_STATUS', jsonB64: base64('1') });
    expect(dispatcher.counters.repeated).toBe(2);
    expect(stream.told.slice(1)).toEqual(['RESULT_ACK a', 'RESULT_ACK a', 'RESULT_ACK a']);
  });

  test('are taken only from the node that was asked, under its registration', async () => {
    const { connect, send, state, sessions, dispatcher } = await rigWithNode();
    await connect();
    await send({ tag: a });
    await settle();
    const other = await connect({ nid: n2 });
    await other.say('NODE_STATUS', 'a');
    expect(sessions.counters.unclaimed).toBe(1);
    const registeredAgain = await connect({ registration: 'r2', ...again(2) });
    await registeredAgain.say('NODE_STATUS', 'a');
    expect(dispatcher.counters.stray).toBe(1);
    expect(registeredAgain.stream.told).toEqual([]);
    expect(await state()).toMatch(/^unknown/);
  });

  test('that come beside the stream are held when the upload ends, and acknowledged on the stream', async () => {
    const { connect, send, dispatcher, instructions, store, clock } = await rigWithNode();
    const { stream } = await connect();
    await send({ tag: a });
    await settle();
    const reply = { type: 'NODE_STATUS', tag: 'a', jsonB64: base64('{}') };
    await dispatcher.uploaded(stream.node, reply);
    await dispatcher.uploaded(stream.node, reply);
    expect((await instructions.get(n1, a, options)).reply?.type).toBe('NODE_STATUS');
    expect(stream.told.slice(1)).toEqual(['RESULT_ACK a', 'RESULT_ACK a']);
    await expect(dispatcher.uploaded(stream.node, { ...reply, tag: 'b' })).rejects.toMatchObject({ code: 'dispatch.not_found' });
    await send({ tag: tagOf('c') });
    store.setUnavailable(true);
    const lost = expect(dispatcher.uploaded(stream.node, { ...reply, tag: 'c' })).rejects.toMatchObject({
      code: 'store.unavailable',
    });
    await clock.advance(40_000);
    await lost;
  });

  test('one that comes after all ends what was unknown', async () => {
    const { connect, send, clock, state } = await rigWithNode();
    const { say } = await connect(older);
    await send({ tag: a });
    await clock.advance(ANSWER_MS + 1);
    expect(await state()).toMatch(/^unknown/);
    await say('NODE_STATUS', 'a');
    expect(await state()).toBe('done');
  });

  test.each([
    ['512 KiB', 512 * 1024, 1],
    ['6 MiB', 6 * 1024 * 1024, 12],
  ])('of %s are kept whole, in %i bytes and %i commits', async (_, length, commits) => {
    const { connect, send, store, instructions } = await rigWithNode();
    const { stream, say } = await connect();
    await send({ tag: a });
    await settle();
    const before = store.commits;
    const text = 'x'.repeat(length);
    await say('NODE_STATUS', 'a', text);
    expect(store.commits - before).toBe(commits);
    expect((await instructions.get(n1, a, options)).reply?.jsonB64 === text).toBe(true);
    expect(stream.told.at(-1)).toBe('RESULT_ACK a');
  });

  test('wait for the store for half a minute', async () => {
    const { connect, send, store, clock, state, dispatcher } = await rigWithNode();
    const { stream, say } = await connect();
    await send({ tag: a });
    await send({ tag: tagOf('b') });
    await settle();
    store.setUnavailable(true);
    await say('NODE_STATUS', 'a');
    await clock.advance(20_000);
    store.setUnavailable(false);
    await clock.advance(11_000);
    expect(await state()).toBe('done');
    expect(stream.told.at(-1)).toBe('RESULT_ACK a');
    store.setUnavailable(true);
    await say('NODE_STATUS', 'b');
    await clock.advance(40_000);
    store.setUnavailable(false);
    expect(dispatcher.counters.lost).toBe(1);
    expect(stream.told).not.toContain('RESULT_ACK b');
  });

  test('whose commit is in doubt are stored once', async () => {
    for (const outcome of ['written', 'not written'] as const) {
      const { connect, send, store, clock, state, dispatcher } = await rigWithNode();
      const { stream, say } = await connect();
      await send({ tag: a });
      await settle();
      store.loseNextAnswer(outcome);
      await say('NODE_STATUS', 'a');
      await clock.advance(3_000);
      expect(await state()).toBe('done');
      expect(stream.told.at(-1)).toBe('RESULT_ACK a');
      expect(dispatcher.counters.lost).toBe(0);
    }
  });
});

describe('A17: cancel', () => {
  test('of what was not sent: it never is', async () => {
    const { connect, send, instructions, state } = await rigWithNode();
    await send({ tag: a });
    expect((await instructions.cancel(n1, a, options)).state).toBe('cancelled');
    expect((await connect()).stream.told).toEqual([]);
    expect(await state()).toBe('cancelled: cancelled before it was sent');
  });

  test('of what was sent: its agent is asked under a tag of its own, and its answer ends it', async () => {
    const { connect, send, instructions, state, sessions } = await rigWithNode();
    const { stream, say } = await connect();
    await send({ tag: a });
    await settle();
    expect(await instructions.cancel(n1, a, options)).toMatchObject({ state: 'delivered', waitsFor: /cancelled/ });
    await instructions.cancel(n1, a, options);
    await settle();
    const asked = stream.sent.at(-1);
    expect(stream.told).toHaveLength(2);
    expect(asked).toMatchObject({ type: 'CANCEL', jsonB64: base64('{"tag":"a"}') });
    await say('NO_CONTENT', asked?.tag ?? '');
    await say('ERROR', 'a', 'CANCELLED: may have taken effect');
    expect(await state()).toBe('done');
    expect(sessions.counters.unclaimed).toBe(0);
  });

  test('is asked again on the next stream, behind the redelivery', async () => {
    const { connect, send, instructions } = await rigWithNode();
    const first = await connect();
    await send({ tag: a });
    await settle();
    await first.close();
    await instructions.cancel(n1, a, options);
    const { stream } = await connect(again(2));
    expect(stream.told.map((told) => told.split(' ')[0])).toEqual(['GET_NODE_STATUS', 'CANCEL']);
  });

  test('older agents are not asked', async () => {
    const { connect, send, instructions } = await rigWithNode();
    const { stream } = await connect(older);
    await send({ tag: a });
    await settle();
    await expect(instructions.cancel(n1, a, options)).rejects.toMatchObject({ code: 'dispatch.not_cancellable' });
    await settle();
    expect(stream.told).toEqual(['GET_NODE_STATUS a']);
  });
});

test('retention: what is finished goes after a day, with all that it said', async () => {
  const { connect, send, clock, store, instructions } = await rigWithNode();
  const { say } = await connect();
  await send({ tag: a });
  await settle();
  await say('NODE_STATUS', 'a');
  clock.setWall(clock.now() + 24 * HOUR - 61_000);
  await clock.advance(60_000);
  expect(await instructions.list({}, options)).toHaveLength(1);
  await clock.advance(60_000);
  expect(await instructions.list({}, options)).toEqual([]);
  expect(store.dump('inst')).toBe('');
});

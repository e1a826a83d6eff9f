import { describe, expect, test } from 'vitest';
import { MAX_OPEN_PER_NODE, MAX_REQUEST_BYTES } from '../../../src/domain/dispatch/model.js';
import { fleetRig, n1, n2, options, settle, tagOf } from '../../support/fleet-rig.js';

const a = tagOf('a');

async function rigWithNode() {
  const rig = await fleetRig();
  rig.registrations.register(n1);
  return rig;
}

describe('send', () => {
  test('is durable when it is answered, with what it says sealed', async () => {
    const { send, store } = await rigWithNode();
    const status = await send({ tag: a, type: 'APPLY_CR', json: '{"secret":"s3cr3t"}' });
    expect(status).toMatchObject({ nid: 'n1', tag: 'a', state: 'pending', by: 'local:0', waitsFor: 'the node to connect' });
    expect(store.dump('inst/')).not.toContain('s3cr3t');
    expect(store.dump('inst-body/')).toBe('inst-body/n1/a/p/0 = sealed inst-body/n1/a/p/0: {"secret":"s3cr3t"} @ 2');
  });

  test('makes a tag where none is given', async () => {
    const { send } = await rigWithNode();
    const [first, second] = [await send(), await send()];
    expect(first.tag).not.toBe(second.tag);
  });

  test.each([
    ['a node that nobody knows', { nid: n2 }, 'fleet.unknown_node'],
    ['a type that there is not', { type: 'GET_NODE' }, 'dispatch.invalid'],
    ['no JSON', { json: '{' }, 'dispatch.invalid'],
    ['an expiry in the past', { expiresMs: 0 }, 'dispatch.invalid'],
    ['more than 1 MiB', { json: JSON.stringify({ a: 'x'.repeat(MAX_REQUEST_BYTES) }) }, 'dispatch.too_large'],
  ])('refuses %s, and leaves nothing', async (_, call, code) => {
    const { send, store } = await rigWithNode();
    await expect(send(call)).rejects.toMatchObject({ code });
    expect(store.dump('inst')).toBe('');
  });

  test('takes 1 MiB, which arrives whole', async () => {
    const { send, connect } = await rigWithNode();
    const json = `{"a":"${'x'.repeat(MAX_REQUEST_BYTES - 8)}"}`;
    await send({ tag: a, json });
    const { stream } = await connect();
    expect(Buffer.from(stream.sent[0]?.jsonB64 ?? '', 'base64').toString() === json).toBe(true);
  });

  test('A10: the same again is the same; another under the same tag is refused', async () => {
    const { send, instructions, connect } = await rigWithNode();
    await send({ tag: a, json: '{"x":1}' });
    await send({ tag: a, json: '{"x":1}' });
    await expect(send({ tag: a, json: '{"x":2}' })).rejects.toMatchObject({ code: 'dispatch.duplicate_tag' });
    await expect(send({ tag: a, type: 'DELETE_CR', json: '{"x":1}' })).rejects.toMatchObject({ code: 'dispatch.duplicate_tag' });
    expect(await instructions.list({}, options)).toHaveLength(1);
    const { say } = await connect();
    await say('NODE_STATUS', 'a');
    expect((await send({ tag: a, json: '{"x":1}' })).state).toBe('done');
  });

  test('of two at once under one tag one is issued', async () => {
    const { send } = await rigWithNode();
    const outcomes = await Promise.allSettled([send({ tag: a, json: '{"x":1}' }), send({ tag: a, json: '{"x":2}' })]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });

  test('whose answer the store loses is sent, or says that it is not known', async () => {
    const { send, store, clock } = await rigWithNode();
    store.loseNextAnswer('written');
    const sending = send({ tag: a });
    await settle();
    await clock.advance(1_000);
    expect((await sending).tag).toBe('a');
    store.loseNextAnswer('not written');
    await expect(send({ tag: tagOf('b') })).rejects.toMatchObject({ code: 'store.outcome_unknown' });
  });

  test('stops where a node has 1,000 unfinished ones', async () => {
    const { send } = await rigWithNode();
    for (let i = 0; i < MAX_OPEN_PER_NODE; i += 1) await send();
    await expect(send()).rejects.toMatchObject({ code: 'dispatch.too_many' });
  });
});

describe('list and watch', () => {
  test('give them in the order of sending, of one node or of all', async () => {
    const { send, instructions, registrations } = await rigWithNode();
    registrations.register(n2);
    await send({ tag: tagOf('b') });
    await send({ nid: n2, tag: a });
    await send({ tag: a });
    const tags = async (filter: object) => (await instructions.list(filter, options)).map(({ nid, tag }) => `${nid} ${tag}`);
    expect(await tags({})).toEqual(['n1 b', 'n2 a', 'n1 a']);
    expect(await tags({ nid: n1 })).toEqual(['n1 b', 'n1 a']);
    expect(await tags({ tag: a })).toEqual(['n2 a', 'n1 a']);
  });

  test('what there is, then each change; a reader that waits too long sees the newest state', async () => {
    const { send, instructions, connect } = await rigWithNode();
    await send({ tag: a });
    const abort = new AbortController();
    const watch = instructions.watch({ nid: n1, tag: a }, abort)[Symbol.asyncIterator]();
    expect((await watch.next()).value).toMatchObject({ state: 'pending' });
    const { say } = await connect();
    await send({ tag: tagOf('b') });
    await say('NODE_STATUS', 'a');
    expect((await watch.next()).value).toMatchObject({ tag: 'a', state: 'done' });
    const last = watch.next();
    abort.abort();
    expect((await last).done).toBe(true);
  });
});

describe('get and cancel', () => {
  test('what there is not is not found', async () => {
    const { instructions } = await rigWithNode();
    await expect(instructions.get(n1, a, options)).rejects.toMatchObject({ code: 'dispatch.not_found' });
    await expect(instructions.cancel(n1, a, options)).rejects.toMatchObject({ code: 'dispatch.not_found' });
  });

  test('what is finished stays as it is', async () => {
    const { instructions, send, connect } = await rigWithNode();
    const { say } = await connect();
    await send({ tag: a });
    await settle();
    await say('NODE_STATUS', 'a');
    expect((await instructions.cancel(n1, a, options)).state).toBe('done');
  });

  test('cancelling while it is being delivered ends one way or the other', async () => {
    const { instructions, send, connect } = await rigWithNode();
    const { stream } = await connect();
    await send({ tag: a });
    const { state } = await instructions.cancel(n1, a, options);
    await settle();
    expect(stream.told[0]).toBe(state === 'cancelled' ? undefined : 'GET_NODE_STATUS a');
  });
});

import { expect, onTestFinished, test } from 'vitest';
import { type Nid, nid } from '../../../src/domain/link/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { FakeRegistrations } from '../../fakes/fake-registrations.js';
import { agentFacts, fleetRig, settle } from '../../support/fleet-rig.js';

const options = { signal: new AbortController().signal };
const [a, b] = [nid('a'), nid('b')];
const base64 = (text: string) => Buffer.from(text).toString('base64');

/** Two nodes that are ready, with their streams at one replica. */
async function rig({
  vipCandidates = ['a', 'b'] as readonly string[],
  server = 's1',
  store = new FakeControlStore(),
  clock = new FakeClock(),
} = {}) {
  const registrations = new FakeRegistrations();
  for (const node of [a, b]) registrations.register(node);
  const fleet = await fleetRig({ vipCandidates, registrations, server, store, clock });
  const node = async (id: Nid, fields: object = {}) => {
    const connected = await fleet.connect({ nid: id, agent: agentFacts({ instance: `i-${id}-${server}` }) });
    await connected.beat('first', fields);
    /** Answers the newest instruction of this type. */
    const answer = async (type: string, value: object = { ok: true, message: '' }) => {
      const message = connected.stream.sent.findLast((one) => one.type === type);
      if (message === undefined) throw new Error(`it was not sent a ${type}`);
      await connected.say(`${type}_RESPONSE`, message.tag, base64(JSON.stringify(value)));
      await go(100);
    };
    /** What the heartbeat is answered with. */
    const word = async () => {
      await connected.beat('beat', fields);
      const { jsonB64 } = connected.stream.sent.findLast(({ tag }) => tag === 'beat') ?? { jsonB64: 'e30=' };
      return JSON.parse(Buffer.from(jsonB64, 'base64').toString()).vip;
    };
    return { ...connected, answer, word };
  };
  const go = async (ms: number) => {
    await clock.advance(ms);
    await settle();
    await clock.advance(0);
    await settle();
  };
  /** `phase node generation`. */
  const said = async () => {
    const [vip] = await fleet.vips.list(options);
    return vip === undefined ? '-' : `${vip.phase} ${vip.node} ${vip.generation}`;
  };
  return { ...fleet, node, go, said };
}

type Rig = Awaited<ReturnType<typeof rig>>;

/** With heartbeats of these nodes. */
async function live({ go }: Rig, nodes: readonly { word(): Promise<unknown> }[], seconds: number) {
  for (let second = 0; second < seconds; second += 2) {
    for (const one of nodes) await one.word();
    await go(2_000);
  }
}

test('the first that is fit is asked, has it when it says so, and its heartbeats say so from the start', async () => {
  const it = await rig();
  const [one, other] = [await it.node(a), await it.node(b)];
  await it.go(2_000);
  expect([await it.said(), one.stream.told, other.stream.told]).toEqual(['assigning a 1', ['VIP_ASSIGN vip-acme-1'], []]);
  expect([await one.word(), await other.word()]).toEqual(['holder', 'other']);
  await one.answer('VIP_ASSIGN');
  expect([await it.said(), await one.word(), await other.word()]).toEqual(['held a 1', 'holder', 'other']);
  expect(it.told).toEqual(['node a has the virtual IP of acme now (generation 1)']);
});

test('VIP_ASSIGN that is not answered in 5 s is taken back with a newer generation, and the next is asked when that is answered', async () => {
  const it = await rig();
  const [one, other] = [await it.node(a), await it.node(b)];
  await live(it, [one, other], 8);
  expect([await it.said(), one.stream.told.at(-1), await one.word()]).toEqual([
    'releasing a 2',
    'VIP_RELEASE vip-acme-2',
    'other',
  ]);
  expect(other.stream.told).toEqual([]);
  await one.answer('VIP_RELEASE');
  expect([await it.said(), other.stream.told]).toEqual(['assigning b 3', ['VIP_ASSIGN vip-acme-3']]);
});

test('VIP_RELEASE that is not answered is waited out for 30 s', async () => {
  const it = await rig();
  const [one, other] = [await it.node(a), await it.node(b)];
  await live(it, [one, other], 2);
  await one.answer('VIP_ASSIGN');
  await it.vips.move(b, options);
  await it.go(100);
  expect(await it.said()).toBe('releasing a 2');
  await live(it, [one, other], 28);
  expect([await it.said(), other.stream.told]).toEqual(['releasing a 2', []]);
  await live(it, [one, other], 4);
  expect([await it.said(), other.stream.told]).toEqual(['assigning b 3', ['VIP_ASSIGN vip-acme-3']]);
});

test('a holder that is silent for 30 s is waited out, and then the next is asked', async () => {
  const it = await rig();
  const [one, other] = [await it.node(a), await it.node(b)];
  await live(it, [one, other], 2);
  await one.answer('VIP_ASSIGN');
  await live(it, [other], 26);
  expect(await it.said()).toBe('held a 1');
  await live(it, [other], 40);
  expect(other.stream.told[0]).toBe('VIP_ASSIGN vip-acme-3');
});

test('AmIVIPHolder is answered from the store, exact; without the store not at all', async () => {
  const it = await rig();
  const one = await it.node(a);
  await it.go(2_000);
  await one.answer('VIP_ASSIGN');
  const [kept] = await it.store.list('vip/', options);
  if (kept === undefined) throw new Error('nothing is kept');
  const far = kept.value.replace('"generation":"1"', '"generation":"9007199254740993"');
  await it.store.commit([], [{ key: kept.key, value: far }], options);
  await one.say('AmIVIPHolder', 'q1');
  expect(one.stream.sent.at(-1)).toMatchObject({
    type: 'AmIVIPHolderResponse',
    tag: 'q1',
    jsonB64: base64('{"isHolder":true,"generation":9007199254740993}'),
  });
  it.store.setUnavailable(true);
  const before = one.stream.sent.length;
  await one.say('AmIVIPHolder', 'q2');
  expect(one.stream.sent.length).toBe(before);
});

test('V1: a replica that cannot read the store lets nobody go on after 5 s', async () => {
  const it = await rig();
  const one = await it.node(a);
  await it.go(2_000);
  await one.answer('VIP_ASSIGN');
  expect(await one.word()).toBe('holder');
  it.store.setUnavailable(true);
  await it.go(5_000);
  await it.go(1_000);
  expect(await one.word()).toBe('unknown');
  it.store.setUnavailable(false);
  await it.go(3_000);
  expect(await one.word()).toBe('holder');
});

test('several replicas: one of them decides, and every node is told the same', async () => {
  const first = await rig();
  const second = await rig({ server: 's2', store: first.store, clock: first.clock });
  onTestFinished(() => second.stop());
  const [one, other] = [await first.node(a), await second.node(b)];
  for (let seconds = 0; seconds < 12; seconds += 2) {
    await live(first, [one, other], 2);
    if (one.stream.told.at(-1)?.startsWith('VIP_ASSIGN')) await one.answer('VIP_ASSIGN').catch(() => {});
  }
  expect([await first.said(), await second.said()]).toEqual(['held a 1', 'held a 1']);
  expect([await one.word(), await other.word()]).toEqual(['holder', 'other']);
  await second.vips.move(b, options);
  await live(first, [one, other], 4);
  await one.answer('VIP_RELEASE');
  await live(first, [one, other], 4);
  await other.answer('VIP_ASSIGN');
  expect([await first.said(), await one.word(), await other.word()]).toEqual(['held b 3', 'other', 'holder']);
  const told = one.stream.told.filter((line) => line.startsWith('VIP_'));
  expect(told).toEqual(['VIP_ASSIGN vip-acme-1', 'VIP_RELEASE vip-acme-2']);
});

test.each([
  ['ready control planes alone', ['control-planes'], { isCp: true, status: 'ready' }, ['a']],
  ['one that is not ready', ['control-planes'], { isCp: true, status: 'not_ready' }, []],
  ['a worker', ['control-planes'], { isCp: false, status: 'ready' }, []],
  ['one that is named', ['a', 'z'], {}, ['a']],
])('who may have it: %s', async (_, vipCandidates, fields, expected) => {
  const it = await rig({ vipCandidates });
  await it.node(a, fields);
  await it.node(b, { isCp: true, status: 'cordoned' });
  await it.go(2_000);
  expect((await it.vips.list(options)).flatMap(({ candidates }) => candidates)).toEqual(expected);
});

test('a node that is held back gives it up: it would hear of nothing', async () => {
  const it = await rig();
  const [one, other] = [await it.node(a), await it.node(b)];
  await live(it, [one, other], 2);
  await one.answer('VIP_ASSIGN');
  await it.nodes.cordon(a, true, options);
  await live(it, [one, other], 4);
  expect([await it.said(), await one.word()]).toEqual(['releasing a 2', 'other']);
});

test('where nobody may have it nothing is decided, said or moved', async () => {
  const it = await rig({ vipCandidates: [] });
  const one = await it.node(a);
  await it.go(10_000);
  expect([await one.word(), await it.vips.list(options), one.stream.told]).toEqual([undefined, [], []]);
  await one.say('AmIVIPHolder', 'q1');
  expect(one.stream.sent.at(-1)?.jsonB64).toBe(base64('{"isHolder":false,"generation":0}'));
  await expect(it.vips.move(a, options)).rejects.toMatchObject({ code: 'vip.off' });
});

test.each([
  ['z', 'fleet.unknown_node'],
  ['b', 'vip.no_candidate'],
])('a move to %s is refused: %s', async (node, code) => {
  const it = await rig();
  await it.node(a);
  await it.go(2_000);
  await expect(it.vips.move(nid(node), options)).rejects.toMatchObject({ code });
});

test('that nobody takes it is a problem of the control plane until somebody does', async () => {
  const it = await rig();
  const [one, other] = [await it.node(a), await it.node(b)];
  await live(it, [one, other], 2);
  expect(it.vips.problems()).toEqual([]);
  await live(it, [one, other], 8);
  expect(it.vips.problems()).toMatchObject([
    { subject: 'virtual IP of acme', reason: 'no node has it; it was offered 1 times in a row in vain' },
  ]);
  await one.answer('VIP_RELEASE');
  await other.answer('VIP_ASSIGN');
  expect(it.vips.problems()).toEqual([]);
});

test('unanswered instructions of it do not pile up', async () => {
  const it = await rig();
  const [one, other] = [await it.node(a), await it.node(b)];
  await live(it, [one, other], 300);
  expect(it.book.openCount()).toBeLessThan(10);
});

import { describe, expect, test } from 'vitest';
import { Sessions, type SessionsParts } from '../../../src/app/session/sessions.js';
import { USUAL_POLICY } from '../../../src/domain/instruction/policy.js';
import { MAX_SESSIONS, MAX_UNSENT_BYTES } from '../../../src/domain/session/model.js';
import { FakeAuditLog } from '../../fakes/fake-audit-log.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeServiceDialer } from '../../fakes/fake-service-dialer.js';
import { base64, contentOf, FakeSession, sha256 } from '../../support/instruction-rig.js';

const options = { signal: new AbortController().signal };
const API = 'api.shop.svc.cluster.local:80';
const target = { namespace: 'shop', name: 'api', port: 80 };

async function rig(more: Partial<SessionsParts> = {}) {
  const [dialer, audit, logger] = [new FakeServiceDialer(), new FakeAuditLog(), new FakeLogger()];
  await audit.open(options);
  dialer.serve(API);
  const sessions = new Sessions({
    ...{ dialer, audit, logger, sha256, onAuditFailure: 'refuse', policy: () => USUAL_POLICY },
    ...more,
  });
  const link = new FakeSession();
  sessions.opened(link);
  const say = (type: string, tag: string, payload: unknown = {}) =>
    sessions.received(link, { type, tag, jsonB64: typeof payload === 'string' ? payload : base64(payload) });
  const open = async (tag: string, change: object = {}) => {
    say('OPEN_STREAM', tag, { ...target, ...change });
    await settle();
  };
  /** `TYPE content` of a session's frames; of data its text. */
  const told = (tag: string) => link.of(tag).map((message) => `${message.type} ${contentOf(message)}`);
  return { dialer, audit, sessions, link, say, open, told };
}

async function settle(): Promise<void> {
  for (let round = 0; round < 5; round++) await new Promise((resolve) => setImmediate(resolve));
}

const data = (bytes: string | Uint8Array) => Buffer.from(bytes).toString('base64');
const closed = (reason: string, error = false) => `STREAM_CLOSED ${JSON.stringify({ reason, error })}`;

describe('a session', () => {
  test('carries bytes both ways and ends with its service, each told once', async () => {
    const { dialer, open, say, told, sessions } = await rig();
    dialer.serve(API, (text) => `<${text}>`);
    await open('s1', { cols: 80, rows: 24 });
    expect(dialer.newest.texts).toEqual(['{"type":"resize","cols":80,"rows":24}']);
    say('STREAM_DATA', 's1', data('hi'));
    say('STREAM_RESIZE', 's1', { cols: 100, rows: 30 });
    await settle();
    expect(dialer.newest.texts.slice(1)).toEqual(['hi', '{"type":"resize","cols":100,"rows":30}']);
    dialer.newest.end();
    await settle();
    expect(told('s1').filter((text) => !text.includes('resize'))).toEqual([
      'STREAM_OPENED {}',
      'STREAM_DATA <hi>',
      closed('the service closed the session'),
    ]);
    expect(sessions.size).toBe(0);
  });

  test('has its characters whole, wherever frames cut them', async () => {
    const { dialer, open, say } = await rig();
    await open('s1');
    const euro = Buffer.from('a€b');
    say('STREAM_DATA', 's1', data(euro.subarray(0, 2)));
    say('STREAM_DATA', 's1', data(euro.subarray(2)));
    say('STREAM_DATA', 's1', data(new Uint8Array([0xff])));
    expect(dialer.newest.texts.join('')).toBe('a€b\ufffd');
  });

  test('has its output in frames of 16 KiB, with nothing dropped, and ends after the last of it', async () => {
    const { dialer, open, link } = await rig();
    await open('s1');
    const output = Buffer.from(Uint8Array.from({ length: 100_000 }, (_, index) => index % 251));
    dialer.newest.say(output);
    dialer.newest.end();
    await settle();
    const frames = link.of('s1').filter(({ type }) => type === 'STREAM_DATA');
    const bytes = frames.map(({ jsonB64 }) => Buffer.from(jsonB64, 'base64'));
    expect(bytes.map(({ length }) => length)).toEqual([...Array(6).fill(16_384), 100_000 - 6 * 16_384]);
    expect(Buffer.concat(bytes).equals(output)).toBe(true);
    expect(link.sent.at(-1)?.type).toBe('STREAM_CLOSED');
  });

  test('that has more to say than its link takes makes the service wait', async () => {
    const { dialer, open, link } = await rig();
    await open('s1');
    const gate = Promise.withResolvers<boolean>();
    let asked = 0;
    link.sendBehind = () => {
      asked += 1;
      return gate.promise;
    };
    for (let count = 0; count < 50; count++) dialer.newest.say('x'.repeat(16_384));
    await settle();
    expect({ asked, unread: dialer.newest.unread }).toEqual({ asked: 1, unread: 49 });
    gate.resolve(true);
    await settle();
    expect(asked).toBe(50);
  });

  test('is closed by the server at any time, also while it is dialled', async () => {
    const { dialer, open, say, told, sessions } = await rig();
    const gate = Promise.withResolvers<void>();
    dialer.gate = gate.promise;
    await open('s1');
    say('STREAM_CLOSE', 's1');
    say('STREAM_CLOSE', 's1');
    gate.resolve();
    await settle();
    expect(told('s1')).toEqual([closed('closed by the control plane')]);
    expect({ open: dialer.openCount, size: sessions.size }).toEqual({ open: 0, size: 0 });
  });

  test('that cannot be dialled says why', async () => {
    const { open, told } = await rig();
    await open('s1', { name: 'other' });
    expect(told('s1')).toEqual([expect.stringMatching(/^STREAM_CLOSED .*nothing listens there.*"error":true/)]);
  });

  test('whose service never reads ends, and bounds what it holds', async () => {
    const { dialer, open, say, told, sessions } = await rig();
    await open('s1');
    dialer.newest.unsent = MAX_UNSENT_BYTES;
    say('STREAM_DATA', 's1', data('x'));
    await settle();
    expect(told('s1').at(-1)).toMatch(/does not read its input/);
    expect({ open: dialer.openCount, size: sessions.size }).toEqual({ open: 0, size: 0 });
  });

  test('ends without a word when its stream is gone; the next stream knows nothing of it', async () => {
    const { dialer, open, say, sessions, link } = await rig();
    await open('s1');
    link.end();
    sessions.closed(link);
    const next = new FakeSession();
    sessions.opened(next);
    sessions.received(next, { type: 'STREAM_DATA', tag: 's1', jsonB64: data('x') });
    say('STREAM_DATA', 's1', data('y'));
    await settle();
    expect({ open: dialer.openCount, sent: next.sent, stray: sessions.counts.stray }).toEqual({ open: 0, sent: [], stray: 2 });
  });

  test('of the same id as one that has ended is another one', async () => {
    const { dialer, open, say, sessions } = await rig();
    await open('s1');
    const first = dialer.newest;
    say('STREAM_CLOSE', 's1');
    await open('s1');
    first.say('late');
    first.end();
    await settle();
    expect({ size: sessions.size, open: dialer.openCount }).toEqual({ size: 1, open: 1 });
  });
});

describe('refused', () => {
  test('are one more than sixteen, an id that is open, an unknown target; the open ones go on', async () => {
    const { dialer, open, told, sessions } = await rig();
    for (let number = 0; number < MAX_SESSIONS; number++) await open(`s${number}`);
    await open('s16');
    await open('s0');
    expect(told('s16')).toEqual([closed('TOO_MANY: 16 sessions are open', true)]);
    expect(told('s0')).toEqual(['STREAM_OPENED {}', closed('DUPLICATE: a session of this id is open', true)]);
    expect({ size: sessions.size, open: dialer.openCount }).toEqual({ size: 16, open: 16 });
    const other = await rig();
    await other.open('t', { target: 'TCP' });
    expect(other.told('t')).toEqual([expect.stringMatching(/^STREAM_CLOSED .*INVALID: OPEN_STREAM: target/)]);
    expect(other.dialer.targets).toEqual([]);
  });

  test('are all when the policy of the node denies them', async () => {
    const { open, told, dialer } = await rig({ policy: () => ({ ...USUAL_POLICY, deny: ['OPEN_STREAM'] }) });
    await open('s1');
    expect(told('s1')).toEqual([closed('DENIED: instructions.deny: OPEN_STREAM', true)]);
    expect(dialer.targets).toEqual([]);
  });

  test('H3: are all while the audit log cannot be written, unless it is told to continue', async () => {
    const failing = await rig();
    failing.audit.append = () => Promise.reject(new Error('no space'));
    await failing.open('s1');
    expect(failing.told('s1')).toEqual([closed('NOT_AUDITED: no space', true)]);
    expect(failing.dialer.targets).toEqual([]);
    const going = await rig({ onAuditFailure: 'continue' });
    going.audit.append = () => Promise.reject(new Error('no space'));
    await going.open('s1');
    expect(going.told('s1')).toEqual(['STREAM_OPENED {}']);
  });

  test('frames of unknown ids and of an older stream are dropped and counted', async () => {
    const { sessions, say, link } = await rig();
    for (const type of ['STREAM_DATA', 'STREAM_RESIZE', 'STREAM_CLOSE']) expect(say(type, 'nobody')).toBe(true);
    expect(sessions.received(new FakeSession(), { type: 'OPEN_STREAM', tag: 'x', jsonB64: base64(target) })).toBe(true);
    expect(say('OPEN_STREAM', 'x'.repeat(129), target)).toBe(true);
    expect(say('GET_NODE_STATUS', 'y')).toBe(false);
    await settle();
    expect({ stray: sessions.counts.stray, sent: link.sent }).toEqual({ stray: 5, sent: [] });
  });
});

test('H1: each session has a decision before it dials and an outcome, refused ones too', async () => {
  const { audit, open, say } = await rig();
  await open('s1');
  say('STREAM_CLOSE', 's1');
  await open('s2', { name: 'A' });
  await settle();
  const lines = audit.records.map(({ who, tag, type, line, result }) => `${who} ${tag} ${type} ${line} ${result}`);
  expect(lines).toEqual([
    `server:s1@1 s1 OPEN_STREAM ${API} decision allowed`,
    `server:s1@1 s1 OPEN_STREAM ${API} outcome done`,
    'server:s1@1 s2 OPEN_STREAM decision refused',
    'server:s1@1 s2 OPEN_STREAM outcome refused',
  ]);
});

test('attack: 1,000 opens and closes that race their dials leave nothing open, and each is closed once', async () => {
  const { dialer, say, link, sessions } = await rig();
  for (let round = 0; round < 1_000; round++) {
    const tag = `s${round % 20}`;
    if (round % 3 === 0) dialer.gate = settle();
    say('OPEN_STREAM', tag, target);
    if (round % 2 === 0) await Promise.resolve();
    if (round % 7 === 0) await settle();
    say('STREAM_DATA', tag, round % 11 === 0 ? 'no base64' : data('x'));
    say('STREAM_CLOSE', tag);
  }
  await settle();
  await settle();
  expect({ open: dialer.openCount, size: sessions.size }).toEqual({ open: 0, size: 0 });
  expect(link.sent.filter(({ type }) => type === 'STREAM_CLOSED')).toHaveLength(1_000);
});

test('attack: hostile frames of every kind neither throw nor open anything', async () => {
  const { say, dialer, sessions } = await rig();
  const junk = ['', '!', 'e30', base64(null), base64([]), base64({ cols: 'x' }), base64('x'.repeat(300_000)), '\u0000'];
  for (const type of ['OPEN_STREAM', 'STREAM_DATA', 'STREAM_RESIZE', 'STREAM_CLOSE']) {
    for (const payload of junk) for (const tag of ['', 's', 'x'.repeat(200), '\n']) say(type, tag, payload);
  }
  await settle();
  expect({ targets: dialer.targets, size: sessions.size }).toEqual({ targets: [], size: 0 });
});

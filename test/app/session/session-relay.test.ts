import { describe, expect, test } from 'vitest';
import { MAX_UNREAD_BYTES } from '../../../src/app/session/relayed-session.js';
import { ANSWER_MS } from '../../../src/app/session/session-relay.js';
import type { Nid, ServerMessage } from '../../../src/domain/link/model.js';
import type { SessionEnd } from '../../../src/domain/session/model.js';
import { readTarget } from '../../../src/domain/session/schema.js';
import type { SessionCaller, SessionInput } from '../../../src/ports/driving/remote-sessions.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { base64, fleetRig, n1, settle } from '../../support/fleet-rig.js';

const read = readTarget({ namespace: 'shop', name: 'api', port: 80, path: '/sh', headers: { a: 'b' } });
if (!read.ok) throw new Error(read.problem);
const { target } = read;

/** Somebody at the server who has a session. */
class Caller implements SessionCaller {
  readonly read: Uint8Array[] = [];
  isOpen = 0;
  /** While it is set, output is not taken. */
  gate: Promise<void> | undefined;
  readonly #said: SessionInput[] = [];
  #wake: () => void = () => {};

  get text(): string {
    return Buffer.concat(this.read).toString();
  }

  get input(): AsyncIterable<SessionInput> {
    return this.#inputs();
  }

  opened(): void {
    this.isOpen++;
  }

  async output(bytes: Uint8Array): Promise<void> {
    await this.gate;
    this.read.push(bytes);
  }

  say(...inputs: readonly (SessionInput | string)[]): void {
    for (const input of inputs) this.#said.push(typeof input === 'string' ? { what: 'data', bytes: Buffer.from(input) } : input);
    this.#wake();
  }

  async *#inputs(): AsyncGenerator<SessionInput> {
    for (;;) {
      const next = this.#said.shift();
      if (next !== undefined) yield next;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}

async function rig() {
  const fleet = await fleetRig();
  fleet.registrations.register(n1);
  const node = await fleet.connect();
  const open = async (nid: Nid = n1) => {
    const caller = new Caller();
    const abort = new AbortController();
    let end: SessionEnd | Error | undefined;
    void fleet.relay.open(nid, target, caller, { signal: abort.signal }).then(
      (ended) => {
        end = ended;
      },
      (error: Error) => {
        end = error;
      },
    );
    await settle();
    const frames = () => node.stream.sent.filter(({ type }) => /STREAM/.test(type));
    const tag = frames().findLast(({ type }) => type === 'OPEN_STREAM')?.tag ?? '';
    const answer = (type: string, json: object = {}) => node.say(type, tag, base64(JSON.stringify(json)));
    const data = (text: string | Uint8Array) => node.say('STREAM_DATA', tag, Buffer.from(text).toString('base64'));
    return { caller, abort, tag, answer, data, end: () => end, frames };
  };
  return { ...fleet, node, open };
}

const shown = ({ type, jsonB64 }: ServerMessage) => `${type} ${Buffer.from(jsonB64, 'base64')}`;

describe('a session through the server', () => {
  test('is opened at the node, carries both ways, and ends with what the node says', async () => {
    const { open, relay } = await rig();
    const session = await open();
    session.caller.say('early');
    await settle();
    expect(session.frames().map(shown)).toEqual([
      'OPEN_STREAM {"target":"SERVICE_WEBSOCKET","namespace":"shop","name":"api","port":80,"path":"/sh","headers":{"a":"b"},"cols":0,"rows":0}',
    ]);
    await session.answer('STREAM_OPENED');
    await session.answer('STREAM_OPENED');
    await session.data('hello ');
    session.caller.say({ what: 'size', size: { cols: 80, rows: 24 } }, 'x'.repeat(16_385));
    await settle();
    expect(
      session
        .frames()
        .slice(1)
        .map(({ type, jsonB64 }) => `${type} ${Buffer.from(jsonB64, 'base64').length}`),
    ).toEqual(['STREAM_DATA 5', 'STREAM_RESIZE 21', 'STREAM_DATA 16384', 'STREAM_DATA 1']);
    await session.data('world');
    await session.answer('STREAM_CLOSED', { reason: 'bye', error: false });
    await session.answer('STREAM_CLOSED', { reason: 'again', error: true });
    expect({ text: session.caller.text, opened: session.caller.isOpen, end: session.end(), size: relay.size }).toEqual({
      text: 'hello world',
      opened: 1,
      end: { reason: 'bye', error: false },
      size: 0,
    });
    expect(session.frames().some(({ type }) => type === 'STREAM_CLOSE')).toBe(false);
  });

  test('ends when its caller goes away, and the node is told once', async () => {
    const { open, relay } = await rig();
    const session = await open();
    await session.answer('STREAM_OPENED');
    session.abort.abort();
    await settle();
    expect(session.frames().at(-1)).toMatchObject({ type: 'STREAM_CLOSE', tag: session.tag });
    expect({ end: session.end(), size: relay.size }).toEqual({ end: { reason: 'closed by its caller', error: false }, size: 0 });
    await session.data('late');
  });

  test('ends with the link of its node', async () => {
    const { open, node } = await rig();
    const session = await open();
    await session.answer('STREAM_OPENED');
    await node.close();
    expect(session.end()).toEqual({ reason: 'the link to the node was lost', error: true });
  });

  test('whose caller never reads holds 8 MiB at most', async () => {
    const { open } = await rig();
    const session = await open();
    await session.answer('STREAM_OPENED');
    const gate = Promise.withResolvers<void>();
    session.caller.gate = gate.promise;
    const piece = new Uint8Array(1024 * 1024);
    for (let bytes = 0; bytes <= MAX_UNREAD_BYTES + piece.length; bytes += piece.length) await session.data(piece);
    expect(session.frames().at(-1)?.type).toBe('STREAM_CLOSE');
    gate.resolve();
    await settle();
    expect(session.end()).toEqual({ reason: expect.stringMatching(/^the output is not read/), error: true });
  });

  test('an agent without sessions answers with ERROR, or not at all', async () => {
    const { open, clock, node } = await rig();
    const refused = await open();
    await node.say('ERROR', refused.tag, 'UNKNOWN_TYPE');
    expect(refused.end()).toEqual({ reason: 'UNKNOWN_TYPE', error: true });
    const silent = await open();
    await clock.advance(ANSWER_MS);
    await settle();
    expect(silent.end()).toMatchObject({ code: 'session.unreachable' });
    expect(silent.frames().at(-1)).toMatchObject({ type: 'STREAM_CLOSE', tag: silent.tag });
  });

  test('garbage of a node ends the session it is of, and nothing else', async () => {
    const { open, node, sessions } = await rig();
    const session = await open();
    for (const type of ['STREAM_DATA', 'STREAM_OPENED', 'STREAM_CLOSED']) await node.say(type, 'nobody', '!');
    expect(sessions.counters.unclaimed).toBe(0);
    await session.answer('STREAM_OPENED');
    await node.say('STREAM_DATA', session.tag, '!');
    expect(session.end()).toEqual({ reason: 'the node sent a frame that is no base64', error: true });
    await node.say('ERROR', 'nobody', 'x');
    expect(sessions.counters.unclaimed).toBe(1);
  });
});

describe('a node that cannot be asked', () => {
  test('is unknown, is not connected, or is at another replica, which is named', async () => {
    const [store, clock] = [new FakeControlStore(), new FakeClock()];
    const first = await fleetRig({ store, clock, server: 's1' });
    const second = await fleetRig({ store, clock, server: 's2', registrations: first.registrations });
    const caller = new Caller();
    const open = () => second.relay.open(n1, target, caller, { signal: new AbortController().signal });
    await expect(open()).rejects.toMatchObject({ code: 'fleet.unknown_node' });
    first.registrations.register(n1);
    await expect(open()).rejects.toMatchObject({ code: 'session.not_connected' });
    const node = await first.connect();
    await node.beat();
    await clock.advance(5_000);
    await settle();
    await expect(open()).rejects.toMatchObject({ code: 'session.elsewhere', message: expect.stringMatching(/at replica s1/) });
  });
});

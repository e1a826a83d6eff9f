import { once } from 'node:events';
import { type ClientHttp2Stream, connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { LogServiceService } from '../../../src/adapters/generated/holdfast/log/v1/log.js';
import type { LogServiceParts } from '../../../src/adapters/log/grpc-log-handler.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { type Change, type Cursor, logKey, ZERO_DIGEST, ZERO_REVISION } from '../../../src/domain/log/model.js';
import { nodeReads } from '../../../src/domain/log/visibility.js';
import type { Clock } from '../../../src/ports/clock.js';
import type { PeerNode } from '../../../src/ports/driving/node-streams.js';
import type { OrderedLog } from '../../../src/ports/log/ordered-log.js';
import { entries, nextEntry, propose, remove, set, take } from '../../contract/ordered-log.support.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
import { everything, logServiceRig, remoteLog } from '../../support/log-service-rig.js';

const options = { signal: new AbortController().signal };
const MIB = 1024 * 1024;

interface SetUp {
  readonly clock?: Clock;
  readonly log?: FakeOrderedLog;
  readonly service?: Partial<LogServiceParts>;
}

async function setUp({ clock = new SystemClock(), log = new FakeOrderedLog({ clock }), service = {} }: SetUp = {}) {
  const rig = await logServiceRig({ log, clock, service });
  onTestFinished(rig.stop);
  const node = () => {
    const { log: remote, close } = remoteLog(rig.port, clock);
    onTestFinished(close);
    return remote;
  };
  return { log, rig, node, start: await beginning(log) };
}

async function beginning(log: OrderedLog): Promise<Cursor> {
  return { logId: (await log.head(options)).logId, revision: ZERO_REVISION, digest: ZERO_DIGEST };
}

const service = (i: number, size = 300): Change => set(`service/default/s${i}`, JSON.stringify(`${i} ${'v'.repeat(size)}`));
const hidden = (i: number): Change => set(`secret/default/x${i}`, '"secret"');

/** A watch that nobody reads, on a connection of its own. A client of grpc-js would take everything in and keep it; this one does not. */
function neverRead(port: number, from: Cursor): ClientHttp2Stream {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on('error', () => {});
  onTestFinished(() => session.destroy());
  const headers = {
    ':method': 'POST',
    ':path': LogServiceService.watch.path,
    'content-type': 'application/grpc',
    te: 'trailers',
  };
  const stream = session.request(headers);
  stream.on('error', () => {});
  const message = LogServiceService.watch.requestSerialize({ from });
  // gRPC over HTTP/2: not compressed, length, message.
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  stream.end(Buffer.concat([prefix, message]));
  return stream;
}

async function until(what: () => boolean): Promise<void> {
  for (let i = 0; i < 1_000 && !what(); i += 1) await sleep(10);
  expect(what()).toBe(true);
}

describe('what a node is sent', () => {
  test('E14, E2: its part of each entry, each frame following on the one before; nothing else is on the wire', async () => {
    const { log, node, start } = await setUp();
    await propose(log, service(1), hidden(1));
    await propose(log, hidden(2));
    await propose(log, hidden(1), remove('service/default/s1'), set('vip/10.192.0.2', '{}'));
    const frames = await take(node().watch(start, options), 2);
    expect(frames).toMatchObject([
      { kind: 'entry', previous: 0n, entry: { revision: 1n, changes: [service(1)] } },
      {
        kind: 'entry',
        previous: 1n,
        entry: { revision: 3n, changes: [remove('service/default/s1'), set('vip/10.192.0.2', '{}')] },
      },
    ]);
    expect((await node().snapshot('', options)).items.map(({ key }) => key)).toEqual(['vip/10.192.0.2']);
    expect((await node().snapshot('secret/', options)).items).toEqual([]);
    expect((await node().snapshot('vip/', options)).cursor).toEqual(await log.head(options));
  });

  test('E2: a bookmark leads over what it may not see: after 1,000 entries, and after 5 s', async () => {
    const clock = new FakeClock();
    const { log, node, start, rig } = await setUp({ clock });
    for (let i = 0; i < 1_001; i += 1) await propose(log, hidden(i));
    const watcher = node().watch(start, options)[Symbol.asyncIterator]();
    expect((await watcher.next()).value).toMatchObject({ kind: 'bookmark', previous: 0n, revision: 1_000n });
    const next = watcher.next();
    await until(() => rig.handler.counts().watchers === 1);
    await clock.advance(5_000);
    const head = await log.head(options);
    expect((await next).value).toEqual({
      kind: 'bookmark',
      previous: 1_000n,
      revision: 1_001n,
      digest: head.digest,
      head: 1_001n,
      ageMs: 0,
    });
    await watcher.return?.(undefined);
  });

  test('I1: 100 watchers get everything, and each entry is encoded once', async () => {
    const { log, node, rig, start } = await setUp();
    const watched = Array.from({ length: 100 }, () => entries(node(), start, 200));
    await until(() => rig.handler.counts().watchers === 100);
    for (let i = 0; i < 200; i += 1) await propose(log, service(i), hidden(i));
    const expected = Array.from({ length: 200 }, (_, i) => [service(i)]);
    for (const found of await Promise.all(watched)) expect(found.map(({ changes }) => changes)).toEqual(expected);
    expect(rig.handler.counts().entriesEncoded).toBe(200);
    await until(() => rig.handler.counts().watchers === 0);
  });

  test('an entry of 40 MiB comes in messages of 1 MiB, whole', async () => {
    const { log, node, start } = await setUp();
    const changes = Array.from({ length: 400 }, (_, i) => service(i, 100 * 1024));
    await propose(log, ...changes);
    expect((await entries(node(), start, 1))[0]?.changes).toEqual(changes);
  });
});

describe('snapshots', () => {
  test('E13, E6: 10,000 services, built once for 40 nodes that ask together', async () => {
    const { log, node, rig } = await setUp();
    const changes = Array.from({ length: 10_000 }, (_, i) => service(i));
    await propose(log, ...changes, hidden(1));
    const snapshots = await Promise.all(Array.from({ length: 40 }, () => node().snapshot('', options)));
    const expected = await log.snapshot('service/', options);
    for (const snapshot of snapshots) expect(snapshot).toEqual(expected);
    expect(rig.handler.counts().snapshotsBuilt).toBe(1);
  });

  test('E13: at most one build a second; whoever asks gets what was there when it asked', async () => {
    const clock = new FakeClock();
    const { log, node, rig } = await setUp({ clock });
    const remote = node();
    await propose(log, service(1));
    expect((await remote.snapshot('', options)).cursor.revision).toBe(1n);
    await propose(log, service(2));
    const waiting = [remote.snapshot('', options), remote.snapshot('', options)];
    // One that waits for its turn, one that forgets what nobody asks for.
    await until(() => clock.sleepers === 2);
    await propose(log, service(3));
    expect(rig.handler.counts().snapshotsBuilt).toBe(1);
    await clock.advance(1_000);
    for (const each of await Promise.all(waiting)) expect(each.cursor.revision).toBe(3n);
    expect((await remote.snapshot('', options)).cursor.revision).toBe(3n);
    expect(rig.handler.counts().snapshotsBuilt).toBe(2);
    await clock.advance(60_000);
    expect((await remote.snapshot('', options)).cursor.revision).toBe(3n);
    expect(rig.handler.counts().snapshotsBuilt).toBe(3);
  });
});

describe('readers that do not read', () => {
  test('I1, test 15: what waits for one in the server is less than 8 MiB', async () => {
    const { log, rig, start } = await setUp();
    for (let i = 0; i < 64; i += 1) await propose(log, service(i, MIB));
    const used = () => {
      const { external, arrayBuffers, heapUsed } = process.memoryUsage();
      return Math.max(external, arrayBuffers) + heapUsed;
    };
    // What all share is there: the entries that are kept encoded.
    await entries(remoteUnder(rig.port), start, 64);
    const before = used();
    for (let i = 0; i < 8; i += 1) neverRead(rig.port, start);
    await until(() => rig.handler.counts().watchers === 8);
    await sleep(1_500);
    expect(used() - before).toBeLessThan(8 * 8 * MIB);
    // The others are not held up.
    expect(await entries(remoteUnder(rig.port), start, 64)).toHaveLength(64);
  });

  test('E8: one that holds back more than 16 MiB for 30 s is ended with log.slow, one that holds back less is not', async () => {
    const clock = new FakeClock();
    const { log, rig, start } = await setUp({ clock });
    const call = neverRead(rig.port, start);
    for (let i = 0; i < 10; i += 1) await propose(log, service(i, MIB));
    await until(() => clock.sleepers >= 3);
    await clock.advance(120_000);
    expect(rig.handler.counts().watchers).toBe(1);
    for (let i = 0; i < 10; i += 1) await propose(log, service(i, MIB + 1));
    await clock.advance(20_000);
    expect(rig.handler.counts().watchers).toBe(1);
    await clock.advance(12_000);
    expect(rig.handler.counts().watchers).toBe(0);
    const trailers = once(call, 'trailers');
    call.resume();
    expect((await trailers)[0]).toMatchObject({ 'grpc-status': '8', 'holdfast-code': 'log.slow' });
  });
});

function remoteUnder(port: number): OrderedLog {
  const { log, close } = remoteLog(port, new SystemClock());
  onTestFinished(close);
  return log;
}

describe('what goes wrong between the two', () => {
  test('E3: another log is log.changed, entries that are gone log.compacted; the snapshot then lacks what was removed', async () => {
    const clock = new FakeClock();
    const { log, node, start } = await setUp({ clock });
    await propose(log, service(1), service(2));
    await propose(log, remove('service/default/s1'));
    await clock.advance(25 * 60 * 60 * 1_000);
    await propose(log, service(3));
    const other = { ...start, logId: (await new FakeOrderedLog({ clock, id: 'other' }).head(options)).logId };
    await expect(entries(node(), other, 1)).rejects.toMatchObject({ code: 'log.changed' });
    await expect(entries(node(), start, 1)).rejects.toMatchObject({ code: 'log.compacted' });
    const { items } = await node().snapshot('', options);
    expect(items.map(({ key }) => key)).toEqual(['service/default/s2', 'service/default/s3']);
  });

  test('a server that is killed in the middle ends streams; the cursor leads on with another', async () => {
    const clock = new SystemClock();
    const { log, rig, node, start } = await setUp({ clock });
    const remote = node();
    await propose(log, service(1));
    const watcher = remote.watch(start, options)[Symbol.asyncIterator]();
    const { revision, digest } = await nextEntry(watcher);
    const ended = nextEntry(watcher);
    ended.catch(() => {});
    rig.stop();
    await expect(ended).rejects.toMatchObject({ code: 'link.unreachable' });
    await propose(log, service(2));
    const again = await logServiceRig({ log, clock, port: rig.port });
    onTestFinished(again.stop);
    await until(() => true);
    const cursor = { logId: start.logId, revision, digest };
    for (;;) {
      try {
        expect((await entries(remote, cursor, 1))[0]?.changes).toEqual([service(2)]);
        break;
      } catch (error) {
        expect(error).toMatchObject({ code: 'link.unreachable' });
        await sleep(50);
      }
    }
  });

  test('E7: a proposal whose answer was lost is asked for again with the same id, and is written once', async () => {
    const clock = new SystemClock();
    const log = new FakeOrderedLog({ clock });
    let calls = 0;
    const ports: number[] = [];
    const whole = everything(log);
    const proposals = {
      propose: async (...call: Parameters<typeof whole.propose>) => {
        const result = await whole.propose(...call);
        calls += 1;
        if (calls > 1) return result;
        rig.stop();
        const again = await logServiceRig({ log, clock, port: ports[0] ?? 0, service: { proposals } });
        onTestFinished(again.stop);
        return result;
      },
    };
    const { rig, node } = await setUp({ clock, log, service: { proposals } });
    ports.push(rig.port);
    expect(await node().propose({ changes: [service(1)], preconditions: [] }, options)).toEqual({
      outcome: 'committed',
      revision: 1n,
    });
    expect([calls, (await log.head(options)).revision]).toEqual([2, 1n]);
  });

  test('E10: what was never sent is certainly not written; what nobody answered is not known', async () => {
    const proposals = { propose: () => new Promise<never>(() => {}) };
    const { rig, node } = await setUp({ service: { proposals } });
    const asked = node().propose({ changes: [service(1)], preconditions: [], requestId: 'mine' }, options);
    await expect(asked).rejects.toMatchObject({ code: 'log.outcome_unknown', facts: { requestId: 'mine' } });
    rig.stop();
    const alone = node();
    await expect(alone.propose({ changes: [service(1)], preconditions: [] }, options)).rejects.toMatchObject({
      code: 'log.not_written',
    });
    await expect(alone.head(options)).rejects.toMatchObject({ code: 'link.unreachable' });
    await expect(alone.snapshot('', options)).rejects.toMatchObject({ code: 'link.unreachable' });
    const aborted = { signal: AbortSignal.abort(new Error('enough')) };
    await expect(alone.propose({ changes: [], preconditions: [] }, aborted)).rejects.toThrow('enough');
  });

  test.each<[string, (log: OrderedLog, start: Cursor) => Promise<unknown>, string]>([
    ['a refusal of what the node writes', (log) => propose(log, service(1)), 'log.denied'],
    [
      'a value that no log takes',
      (log) => log.propose({ changes: [service(1), service(1)], preconditions: [] }, options),
      'a key twice',
    ],
  ])('%s comes with its code', async (_, call, expected) => {
    const proposals = {
      propose: async () => {
        throw new AgentError('log.denied', { problem: 'told to', remedy: 'this' });
      },
    };
    const { node, start } = await setUp({ service: { proposals } });
    await expect(call(node(), start)).rejects.toThrow(expected);
    if (expected === 'log.denied') await expect(call(node(), start)).rejects.toMatchObject({ remedy: 'this' });
  });

  test('B4: a watch says which node it is, and is ended where that is denied; reading needs no name', async () => {
    const clock = new SystemClock();
    const log = new FakeOrderedLog({ clock });
    const said: string[] = [];
    const names = {
      bind: async ({ identity }: PeerNode, name: NodeName) => {
        said.push(`${identity.nid} is ${name}`);
        if (said.length > 1) throw new AgentError('log.denied', { problem: 'DUPLICATE_NODE: told to' });
      },
      nameOf: () => undefined,
    };
    const rig = await logServiceRig({ log, clock, names });
    onTestFinished(rig.stop);
    await propose(log, service(1));
    const [remote, from] = [remoteUnder(rig.port), await beginning(log)];
    expect(await entries(remote, from, 1)).toHaveLength(1);
    await expect(entries(remote, from, 1)).rejects.toMatchObject({
      code: 'log.denied',
      message: expect.stringContaining('DUPLICATE'),
    });
    expect((await remote.snapshot('', options)).items).toHaveLength(1);
    expect(said).toEqual(['n1 is here', 'n1 is here']);
  });

  test('a node that may not call is told why, by every method', async () => {
    const clock = new SystemClock();
    const log = new FakeOrderedLog({ clock });
    const peerOf = () => {
      throw new AgentError('certificate.revoked', { problem: 'serial 7' });
    };
    const rig = await logServiceRig({ log, clock, peerOf });
    onTestFinished(rig.stop);
    const remote = remoteUnder(rig.port);
    const revoked = { code: 'certificate.revoked', message: expect.stringContaining('serial 7') };
    await expect(remote.head(options)).rejects.toMatchObject(revoked);
    await expect(remote.snapshot('', options)).rejects.toMatchObject(revoked);
    await expect(entries(remote, await beginning(log), 1)).rejects.toMatchObject(revoked);
    await expect(propose(remote, service(1))).rejects.toMatchObject(revoked);
    expect(nodeReads(logKey('service/a/b'))).toBe(true);
  });
});

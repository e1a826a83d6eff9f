import { describe, expect, test } from 'vitest';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { readHeartbeat } from '../../../src/domain/link/heartbeat.js';
import { epoch, HEARTBEAT_TYPE, type ServerFacts, type ServerMessage } from '../../../src/domain/link/model.js';
import type { FakeLinkStream, FakeServer } from '../../fakes/fake-control-link.js';
import { home, linkRig, RecordingUser } from '../../support/link-subsystem-rig.js';

const facts = (value = 1n): ServerFacts => ({
  fleet: 'f1',
  server: 's1',
  epoch: epoch(value),
  capabilities: new Set(['redeliver']),
  spreadMs: 20_000,
  window: 32,
});
const message = (tag: string, more: Partial<ServerMessage> = {}): ServerMessage => ({
  type: 'GET_NODE_STATUS',
  tag,
  jsonB64: 'e30=',
  ...more,
});
const beatsOf = (stream: FakeLinkStream) => stream.sent.filter(({ type }) => type === HEARTBEAT_TYPE);
const signal = new AbortController().signal;

async function linked(server: FakeServer = { facts: facts() }, more: Parameters<typeof linkRig>[0] = {}) {
  const rig = linkRig(more);
  rig.link.serve(home, server);
  await rig.subsystem.start();
  await rig.clock.advance(0);
  return rig;
}

describe('a link', () => {
  test('opens, says what it is, and tells its users in order', async () => {
    const { link, user, subsystem, clock } = await linked();
    expect(user.told).toEqual(['opened 1']);
    expect(link.newest.agent).toMatchObject({ instance: 'i1', session: 1 });
    link.newest.deliver(message('a'), message('b'));
    await clock.advance(0);
    link.kill(home);
    await clock.advance(0);
    expect(user.told).toEqual(['opened 1', 'received GET_NODE_STATUS a', 'received GET_NODE_STATUS b', 'closed 1']);
    expect(user.session?.signal.aborted).toBe(true);
    expect(subsystem.state()).toMatchObject({
      connected: undefined,
      streams: 1,
      lastError: { error: { code: 'link.unreachable' } },
    });
  });

  test('state and status while it is up', async () => {
    const { subsystem, clock } = await linked({ facts: facts(4n), skewMs: 40 });
    expect(subsystem.state()).toEqual({
      connected: {
        since: clock.now(),
        address: home,
        server: facts(4n),
        skewMs: 40,
        supersededBy: undefined,
        lastBeat: { sentAt: 0, answeredAt: 0 },
      },
      lastError: undefined,
      lostSince: undefined,
      nextAttemptAt: undefined,
      streams: 1,
      dropped: { lateAnswers: 0, strayAnswers: 0, oldEpochs: 0, afterDraining: 0, unclaimed: 0 },
    });
    expect(subsystem.problems()).toEqual([]);
  });

  test('C6: the first beat at once, then one every 5 s, whether or not the last was answered (V2)', async () => {
    const { link, clock } = await linked({ answersAfterMs: 11_000 });
    const stream = link.newest;
    expect(beatsOf(stream)).toHaveLength(1);
    await clock.advance(4_999);
    expect(beatsOf(stream)).toHaveLength(1);
    await clock.advance(1);
    expect(beatsOf(stream)).toHaveLength(2);
    await clock.advance(55_000);
    expect(beatsOf(stream)).toHaveLength(13);
    expect(new Set(beatsOf(stream).map(({ tag }) => tag)).size).toBe(13);
  });

  test('an older server: no headers, heartbeats answered after 11 s; it is kept, and nothing is sent but heartbeats (C2)', async () => {
    const { link, clock, user, subsystem } = await linked({ answersAfterMs: 11_000 });
    await clock.advance(10_999);
    expect(user.told).toEqual([]);
    await clock.advance(60_001);
    expect(user.told).toEqual(['opened old']);
    expect([link.streams.length, link.newest.sent.every(({ type }) => type === HEARTBEAT_TYPE)]).toEqual([1, true]);
    expect(subsystem.state().dropped.lateAnswers).toBeGreaterThan(5);
    expect(user.session?.server).toBeUndefined();
  });

  test('what comes before the first answer is handed on after the opening', async () => {
    const { link, clock, user } = await linked({ answersAfterMs: 500 });
    link.newest.deliver(message('early'));
    await clock.advance(400);
    expect(user.told).toEqual([]);
    await clock.advance(200);
    expect(user.told).toEqual(['opened old', 'received GET_NODE_STATUS early']);
  });

  test('a server that only talks and never answers is left', async () => {
    const { link, clock, subsystem } = await linked({ answersAfterMs: undefined });
    const stream = link.newest;
    stream.deliver(...Array.from({ length: 257 }, (_, index) => message(`t${index}`)));
    await clock.advance(0);
    expect(stream.isEnded).toBe(true);
    expect(subsystem.state().lastError?.error.message).toContain('256 messages before it answered a heartbeat');
  });

  test('the first user that wants a message has it; what nobody wants is counted', async () => {
    const [first, second] = [new RecordingUser(), new RecordingUser()];
    const { link, clock, subsystem } = await linked({ facts: facts() }, { users: [first, second] });
    first.takes = ({ tag }) => tag === 'mine';
    second.takes = ({ tag }) => tag !== 'nobody';
    link.newest.deliver(message('mine'), message('yours'), message('nobody'));
    await clock.advance(0);
    expect([first.told, second.told]).toEqual([
      ['opened 1', 'received GET_NODE_STATUS mine'],
      ['opened 1', 'received GET_NODE_STATUS yours'],
    ]);
    expect(subsystem.state().dropped.unclaimed).toBe(1);
  });

  test('a user that throws harms neither the link nor the others', async () => {
    const [bad, good] = [new RecordingUser(), new RecordingUser()];
    bad.takes = () => {
      throw new Error('broken');
    };
    const { link, clock, logger } = await linked({ facts: facts() }, { users: [bad, good] });
    link.newest.deliver(message('a'));
    await clock.advance(0);
    expect(good.told).toEqual(['opened 1', 'received GET_NODE_STATUS a']);
    expect(logger.dump('error')).toBe('error a part that uses the link failed');
  });

  test('a session sends, and says false when it is over', async () => {
    const { link, clock, user } = await linked();
    expect(await user.session?.send({ type: 'NO_CONTENT', tag: 'a', jsonB64: 'e30=' })).toBe(true);
    expect(link.newest.sent.at(-1)).toMatchObject({ type: 'NO_CONTENT', tag: 'a' });
    link.kill(home);
    await clock.advance(0);
    expect(await user.session?.send({ type: 'NO_CONTENT', tag: 'b', jsonB64: 'e30=' })).toBe(false);
  });

  test('stop ends everything, also before the start, and twice', async () => {
    const { subsystem, link, user, clock } = await linked();
    await subsystem.stop();
    await subsystem.stop();
    expect([link.closed, link.newest.isEnded, user.told.at(-1)]).toEqual([true, true, 'closed 1']);
    await clock.advance(600_000);
    expect([link.attempts.length, clock.sleepers]).toEqual([1, 0]);
    await linkRig().subsystem.stop();
  });
});

describe('heartbeats', () => {
  test('say the roles that were last read', async () => {
    const { link, roles, clock } = await linked({ facts: facts() });
    roles.become({ isCp: true, isWorker: false, status: 'ready' });
    await clock.advance(10_000);
    const said = beatsOf(link.newest).map(({ jsonB64 }) => readHeartbeat(jsonB64));
    expect(said.map((beat) => [beat?.isCp, beat?.status, beat?.rolesKnown])).toEqual([
      [false, 'not_installed', true],
      [false, 'not_installed', true],
      [true, 'ready', true],
    ]);
    expect(said[0]).toMatchObject({
      externalIpAddress: '10.0.0.9',
      version: '1.0.0',
      capabilities: new Set(['journal', 'result-ack']),
    });
  });

  test('before the first read nothing is known', async () => {
    const { link, roles, subsystem, clock } = linkRig();
    roles.fallSilent();
    link.serve(home, { facts: facts() });
    await subsystem.start();
    await clock.advance(0);
    expect(readHeartbeat(beatsOf(link.newest)[0]?.jsonB64 ?? '')).toMatchObject({
      isCp: false,
      status: 'unknown',
      rolesKnown: false,
    });
  });

  test('a part that cannot say what it knows stops no heartbeat', async () => {
    const auditHead = () => {
      throw new Error('broken');
    };
    const { link, clock } = await linked({ facts: facts() }, { auditHead });
    await clock.advance(5_000);
    expect(beatsOf(link.newest).map(({ jsonB64 }) => readHeartbeat(jsonB64)?.auditHead)).toEqual([undefined, undefined]);
  });

  test('a failed read never demotes: the roles are carried over, and status says so', async () => {
    const { link, roles, clock, subsystem } = await linked();
    roles.become({ isCp: true, isWorker: true, status: 'ready' });
    await clock.advance(5_000);
    roles.fail('the API server does not answer');
    await clock.advance(10_000);
    expect(readHeartbeat(beatsOf(link.newest).at(-1)?.jsonB64 ?? '')).toMatchObject({
      isCp: true,
      isWorker: true,
      rolesKnown: false,
    });
    expect(subsystem.problems()).toEqual([
      {
        subject: 'link',
        reason: 'the roles of this node are carried over: the API server does not answer',
        since: clock.now() - 5_000,
        remedy: expect.stringContaining('API server'),
      },
    ]);
  });

  test('one read a beat at most, and none beside one that hangs', async () => {
    const { roles, clock } = await linked();
    roles.fallSilent();
    await clock.advance(5_000);
    await clock.advance(3_999);
    expect([roles.reads, roles.underWay]).toEqual([2, 1]);
    await clock.advance(1);
    expect([roles.reads, roles.underWay]).toEqual([2, 0]);
    await clock.advance(11_000);
    expect(roles.reads).toBe(5);
  });

  test('the configured address goes before that of the connection', async () => {
    const { link } = await linked(
      { facts: facts() },
      { nodeIp: '203.0.113.5', auditHead: () => ({ sequence: 3n, digest: 'ab'.repeat(32) }) },
    );
    expect(readHeartbeat(beatsOf(link.newest)[0]?.jsonB64 ?? '')).toMatchObject({
      externalIpAddress: '203.0.113.5',
      auditHead: { sequence: 3n },
    });
  });
});

describe('C6: a path that dies', () => {
  test('is noticed after 12 s without a byte, and no later than 15', async () => {
    const { link, clock, user, subsystem } = await linked({ facts: facts(), answersAfterMs: undefined });
    const stream = link.newest;
    await clock.advance(7_000);
    stream.heard();
    await clock.advance(11_000);
    expect(stream.isEnded).toBe(false);
    await clock.advance(1_500);
    expect([stream.isEnded, user.told]).toEqual([true, []]);
    expect(subsystem.state().lastError?.error.message).toContain('nothing came for 12 s');
  });

  test('bytes that are no answer keep it, and status says that nothing is answered', async () => {
    const { link, clock, subsystem } = await linked({ facts: facts() });
    link.serve(home, { answersAfterMs: undefined });
    Reflect.set(link.newest, 'send', async () => true);
    for (let second = 0; second < 40; second++) {
      link.newest.heard();
      await clock.advance(1_000);
    }
    expect([link.streams.length, link.newest.isEnded]).toEqual([1, false]);
    expect(subsystem.problems().map(({ reason }) => reason)).toEqual(['the control plane has not answered a heartbeat for 40s']);
  });

  test('a clock that differs is a problem', async () => {
    const { subsystem } = await linked({ facts: facts(), skewMs: -90_000 });
    expect(subsystem.problems().map(({ reason }) => reason)).toEqual([
      'the clock of this machine is 90s ahead of that of the control plane',
    ]);
  });
});

describe('I3: coming back', () => {
  test('the first wait is over the spread that the server has said', async () => {
    const { link, clock } = await linked();
    link.kill(home);
    await clock.advance(9_999);
    expect(link.attempts).toHaveLength(1);
    link.serve(home, { facts: facts(2n) });
    await clock.advance(1);
    expect([link.attempts.length, link.newest.agent.session]).toEqual([2, 2]);
  });

  test('then 1, 2, 4 … 60 s, each halved by this chance', async () => {
    const { link, clock, subsystem } = linkRig();
    await subsystem.start();
    const at: number[] = [];
    let seen = 0;
    for (let ms = 0; ms < 250_000; ms += 250) {
      await clock.advance(250);
      if (link.attempts.length > seen) at.push(clock.monotonic());
      seen = link.attempts.length;
    }
    const gaps = at.map((time, index) => time - (at[index - 1] ?? 0));
    expect(gaps).toEqual([
      250, 4_750, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000, 30_000, 30_000, 30_000,
    ]);
    await subsystem.stop();
  });

  test('a server that only ends streams is asked again within a second', async () => {
    const { link, clock } = await linked();
    link.newest.end({ what: 'stream', error: undefined, retryMs: undefined });
    await clock.advance(499);
    expect(link.attempts).toHaveLength(1);
    await clock.advance(1);
    expect(link.attempts).toHaveLength(2);
  });

  test('a planned stop says when', async () => {
    const { link, clock, subsystem } = await linked();
    link.newest.end({ what: 'stream', error: undefined, retryMs: 7_000 });
    await clock.advance(6_999);
    expect([link.attempts.length, subsystem.state().nextAttemptAt]).toEqual([1, clock.now() + 1]);
    await clock.advance(1);
    expect([link.attempts.length, subsystem.state().nextAttemptAt]).toEqual([2, undefined]);
  });

  test('B4: a duplicate waits 5 min, and status shows it', async () => {
    const error = new AgentError('link.duplicate', { problem: 'DUPLICATE_NODE: db2, 10.0.0.7, since noon' });
    const { link, clock, subsystem } = await linked({
      facts: facts(),
      answersAfterMs: undefined,
      ends: { what: 'stream', error, retryMs: undefined },
    });
    expect(subsystem.problems()).toEqual([
      {
        subject: 'link',
        reason: 'no link to the control plane: DUPLICATE_NODE: db2, 10.0.0.7, since noon',
        since: clock.now(),
        remedy: 'another machine runs with the certificate of this node: stop it, or register one of them again',
      },
    ]);
    await clock.advance(299_999);
    expect(link.attempts).toHaveLength(1);
    await clock.advance(1);
    expect(link.attempts).toHaveLength(2);
  });

  test('several addresses: all are tried at once, and the next one first when a connection dies', async () => {
    const addresses = ['a', 'b', 'c'].map((host) => ({ host, port: 1 }));
    const [a, b, c] = addresses;
    if (a === undefined || b === undefined || c === undefined) throw new Error('three');
    const { link, clock, subsystem, user } = linkRig({ addresses });
    link.serve(a, { facts: facts() });
    await subsystem.start();
    await clock.advance(0);
    // The chance of this test begins in the middle.
    expect(link.attempts).toEqual(['b:1', 'c:1', 'a:1']);
    expect(subsystem.state().connected?.address).toEqual(a);
    link.serve(b, { facts: facts(2n) });
    link.kill(a);
    await clock.advance(10_000);
    expect([link.attempts.slice(3), user.told]).toEqual([['b:1'], ['opened 1', 'closed 1', 'opened 2']]);
    link.newest.end({ what: 'stream', error: undefined, retryMs: undefined });
    await clock.advance(1_000);
    expect(link.attempts.slice(4)).toEqual(['b:1']);
  });

  test('several addresses: a server that serves no stream is left for the next one', async () => {
    const [a, b] = [
      { host: 'a', port: 1 },
      { host: 'b', port: 1 },
    ];
    const { link, clock, subsystem, user } = linkRig({ addresses: [a, b], random: () => 0.1 });
    const error = new AgentError('link.unreachable', { problem: 'no quorum' });
    link.serve(a, { facts: facts(), answersAfterMs: undefined, ends: { what: 'stream', error, retryMs: undefined } });
    link.serve(b, { facts: facts() });
    await subsystem.start();
    await clock.advance(1_000);
    expect([link.attempts, user.told]).toEqual([['a:1', 'b:1'], ['opened 1']]);
  });

  test('without an address there is a problem, and nothing else', async () => {
    const { subsystem, clock, link } = linkRig({ addresses: [] });
    await subsystem.start();
    await clock.advance(60_000);
    expect(subsystem.problems().map(({ reason }) => reason)).toEqual([
      'no link to the control plane: no address of a control plane is configured',
    ]);
    expect(link.attempts).toEqual([]);
    await subsystem.stop();
  });

  test('200 agents of a restarted server come back over the spread that it has said', async () => {
    const spreadMs = 20_000;
    let seed = 1;
    const random = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    const waits: number[] = [];
    for (let agent = 0; agent < 200; agent++) {
      const { link, subsystem, clock } = linkRig({ random });
      link.serve(home, { facts: { ...facts(), spreadMs } });
      await subsystem.start();
      await clock.advance(1_000);
      link.kill(home);
      link.serve(home, { facts: facts(2n) });
      const killedAt = clock.now();
      await clock.advance(spreadMs);
      waits.push((subsystem.state().connected?.since ?? Number.NaN) - killedAt);
      await subsystem.stop();
    }
    expect(waits.every((wait) => wait >= 0 && wait <= spreadMs)).toBe(true);
    // The chance of this test is always the same one: 200 in 20 s are 10 a second.
    const perSecond = Array.from(
      { length: 20 },
      (_, second) => waits.filter((wait) => Math.floor(wait / 1_000) === second).length,
    );
    expect(Math.max(...perSecond)).toBeLessThan(25);
    expect(Math.min(...perSecond)).toBeGreaterThan(1);
  });
});

describe('own questions', () => {
  test('are answered by tag, whatever the type', async () => {
    const { link, subsystem, clock, user } = await linked();
    const asked = subsystem.ask('AmIVIPHolder', 'e30=', 5_000, { signal });
    const { tag } = link.newest.sent.at(-1) ?? { tag: '' };
    expect(subsystem.isOwnTag(tag)).toBe(true);
    link.newest.deliver(message(tag, { type: 'Anything' }));
    await clock.advance(0);
    expect(await asked).toMatchObject({ type: 'Anything', tag });
    expect(user.told).toEqual(['opened 1']);
  });

  test('a heartbeat that is answered twice is answered once', async () => {
    const { link, subsystem, clock, user } = await linked();
    const { tag } = link.newest.sent[0] ?? { tag: '' };
    link.newest.deliver(message(tag, { type: HEARTBEAT_TYPE }), message(tag, { type: 'ERROR' }));
    await clock.advance(0);
    expect([user.told, subsystem.state().dropped.strayAnswers]).toEqual([['opened 1'], 2]);
  });

  test('C2: an answer that comes too late is dropped and counted', async () => {
    const { link, subsystem, clock, user } = await linked();
    const asked = subsystem.ask('GetControlPlaneNodes', '', 5_000, { signal });
    const failed = expect(asked).rejects.toMatchObject({ code: 'link.timed_out' });
    const { tag } = link.newest.sent.at(-1) ?? { tag: '' };
    await clock.advance(5_000);
    await failed;
    link.newest.deliver(message(tag, { type: 'ERROR', jsonB64: 'no' }));
    await clock.advance(0);
    expect([user.told, subsystem.state().dropped.strayAnswers]).toEqual([['opened 1'], 1]);
  });

  test('fail with the stream, without a link, and on abort', async () => {
    const { link, subsystem, clock } = await linked();
    const asked = subsystem.ask('X', '', 5_000, { signal });
    const failed = expect(asked).rejects.toMatchObject({ code: 'link.unreachable' });
    const abort = new AbortController();
    const aborted = subsystem.ask('X', '', 5_000, { signal: abort.signal });
    const reason = new Error('enough');
    abort.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    link.kill(home);
    await clock.advance(0);
    await failed;
    await expect(subsystem.ask('X', '', 5_000, { signal })).rejects.toMatchObject({ code: 'link.unreachable' });
  });
});

describe('B3: one stream at a time', () => {
  test('messages with an epoch below the highest seen are dropped and counted', async () => {
    const { link, clock, user, subsystem } = await linked({ facts: facts(5n) });
    link.newest.deliver(message('new', { epoch: epoch(5n) }), message('old', { epoch: epoch(4n) }), message('plain'));
    await clock.advance(0);
    expect(user.told).toEqual(['opened 5', 'received GET_NODE_STATUS new', 'received GET_NODE_STATUS plain']);
    expect(subsystem.state().dropped.oldEpochs).toBe(1);
  });

  test('a server that lags behind another of its fleet has nothing to say', async () => {
    const { link, clock, user, subsystem } = await linked({ facts: facts(5n) });
    link.kill(home);
    link.serve(home, { facts: facts(4n) });
    await clock.advance(10_000);
    link.newest.deliver(message('a'));
    await clock.advance(0);
    expect([user.told, subsystem.state().dropped.oldEpochs]).toEqual([['opened 5', 'closed 5', 'opened 4'], 1]);
    expect(subsystem.problems().map(({ reason }) => reason)).toEqual([
      'the control plane is at epoch 4, behind 5: what it instructs is dropped',
    ]);
  });

  test('the link moves to a new certificate: the old stream serves until the new one is answered', async () => {
    const { link, clock, user, subsystem } = await linked();
    const old = link.newest;
    link.serve(home, { facts: facts(2n), answersAfterMs: 300 });
    const moved = subsystem.moveOver({ signal });
    await clock.advance(200);
    expect([link.reloads, link.streams.length, old.isEnded]).toEqual([1, 2, false]);
    old.deliver(message('DRAINING', { type: 'DRAINING' }), message('late'));
    await clock.advance(100);
    await moved;
    expect([user.told, old.isEnded]).toEqual([['opened 1', 'closed 1', 'opened 2'], true]);
    expect(subsystem.state()).toMatchObject({ connected: { server: { epoch: 2n } }, dropped: { afterDraining: 1 } });
    link.newest.deliver(message('a'));
    await clock.advance(0);
    expect(user.told.at(-1)).toBe('received GET_NODE_STATUS a');
    link.kill(home);
    await clock.advance(0);
    expect([user.told.at(-1), subsystem.state().connected]).toEqual(['closed 2', undefined]);
    await subsystem.stop();
  });

  test('also when the server ends the old stream as soon as the new one is there', async () => {
    const { link, clock, user, subsystem } = await linked();
    link.serve(home, { facts: facts(2n), answersAfterMs: 300 });
    const moved = subsystem.moveOver({ signal });
    await clock.advance(100);
    link.streams[0]?.end({ what: 'stream', error: new AgentError('link.superseded', {}), retryMs: undefined });
    await clock.advance(300);
    await moved;
    expect([user.told, link.attempts.length]).toEqual([['opened 1', 'closed 1', 'opened 2'], 2]);
    await clock.advance(60_000);
    expect([link.attempts.length, subsystem.state().connected?.server?.epoch]).toEqual([2, 2n]);
  });

  test('a new certificate that is refused leaves the old stream as it was', async () => {
    const { link, clock, user, subsystem } = await linked();
    const error = new AgentError('certificate.refused', { problem: 'no' });
    link.serve(home, { facts: facts(2n), answersAfterMs: undefined, ends: { what: 'stream', error, retryMs: undefined } });
    await expect(subsystem.moveOver({ signal })).rejects.toBe(error);
    link.serve(home, { refuses: error });
    await expect(subsystem.moveOver({ signal })).rejects.toBe(error);
    link.serve(home, { answersAfterMs: undefined });
    const late = expect(subsystem.moveOver({ signal })).rejects.toMatchObject({ code: 'link.unreachable' });
    await clock.advance(20_000);
    await late;
    expect([user.told, subsystem.state().connected?.server?.epoch]).toEqual([['opened 1'], 1n]);
  });

  test('without a link there is nothing to move', async () => {
    const { subsystem } = linkRig();
    await expect(subsystem.moveOver({ signal })).rejects.toMatchObject({ code: 'link.unreachable' });
  });
});

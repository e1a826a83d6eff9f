import { describe, expect, test } from 'vitest';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { FakeTaskRunner } from '../../fakes/fake-task-runner.js';
import {
  acknowledging,
  base64,
  contentOf,
  FakeSession,
  INSTALLER,
  InstructionWorld,
  serverFacts,
  sha256,
} from '../../support/instruction-rig.js';

async function answered(type: string, payload: unknown, prepare: (world: InstructionWorld) => void = () => {}) {
  const world = new InstructionWorld();
  prepare(world);
  const process = await world.start();
  const session = process.connect(acknowledging(process));
  process.deliver(type, 't1', payload);
  await process.settle();
  const [message] = session.sent;
  return { world, process, session, type: message?.type, content: message === undefined ? undefined : contentOf(message) };
}

describe('GET_NODE_STATUS', () => {
  test.each([true, false])('says whether the node is ready: %s', async (ready) => {
    const world = new InstructionWorld();
    const process = await world.start({ nodeIsReady: () => ready });
    const session = process.connect();
    process.deliver('GET_NODE_STATUS', 't1');
    await process.settle();
    expect(session.dump()).toBe(`t1 NODE_STATUS {"nodeIsReady":${ready}}`);
  });
});

describe('payloads', () => {
  const over = 'A'.repeat(4 * Math.ceil((256 * 1024) / 3) + 4);
  test.each([
    ['empty', '', 'INVALID: GET_NODE_STATUS: the payload is empty'],
    ['no base64', '{}', 'INVALID: GET_NODE_STATUS: the payload is no padded base64'],
    ['without padding', 'e30', 'INVALID: GET_NODE_STATUS: the payload is no padded base64'],
    ['of the other alphabet', 'e_0=', 'INVALID: GET_NODE_STATUS: the payload is no padded base64'],
    ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]).toString('base64'), 'INVALID: GET_NODE_STATUS: the payload is no UTF-8'],
    ['no JSON', Buffer.from('{').toString('base64'), 'INVALID: GET_NODE_STATUS: the payload is no JSON'],
    ['too long', over, 'INVALID: GET_NODE_STATUS: the payload has about 262149 bytes, GET_NODE_STATUS takes 262144'],
  ])('I4: one that is %s is an ERROR that says so', async (_, payload, expected) => {
    const world = new InstructionWorld();
    const process = await world.start();
    const session = process.connect();
    process.deliver('GET_NODE_STATUS', 't1', payload);
    await process.settle();
    expect(session.sent.map(contentOf)).toEqual([expected]);
  });

  test('unknown keys are ignored', async () => {
    expect((await answered('GET_NODE_STATUS', { later: 1 })).type).toBe('NODE_STATUS');
  });
});

describe('RUN_REMOTE_SCRIPT', () => {
  const script = (text: string) => (world: InstructionWorld) => world.script('hello', text);

  test('is fetched from the installer with its parameters and run by bash from its own file', async () => {
    const params = { name: 'a b', n: 1 };
    const url = `${INSTALLER}/scripts?t=dir%2Fhello.sh&i=${encodeURIComponent(base64(params))}`;
    const { world, content } = await answered(
      'RUN_REMOTE_SCRIPT',
      { script: 'dir/hello.sh', params, timeoutSeconds: 60 },
      (world) => world.web.serve(url, 'echo'),
    );
    expect(content).toBe('{"response":"out of echo","stderr":"","exitCode":0,"timedOut":false}');
    expect(world.web.taken()).toEqual([
      { url, method: 'GET', headers: {}, body: undefined, timeoutMs: 30_000, maxBytes: 8 * 1024 * 1024, guarded: false },
    ]);
    expect(world.tasks.started).toEqual([
      {
        id: sha256('fleet-a\nt1'),
        argv: ['/bin/bash', '%f/script'],
        env: { PATH: '/usr/bin:/bin' },
        cwd: '/',
        files: { script: new TextEncoder().encode('echo') },
        timeoutMs: 60_000,
        maxOutputBytes: 2 * 1024 * 1024,
      },
    ]);
    // Nothing is left when the result is durable.
    expect(world.tasks.dump()).toBe('');
  });

  test('/t/ is a path of the conductor', async () => {
    const { content } = await answered('RUN_REMOTE_SCRIPT', { script: '/t/x.sh' }, (world) =>
      world.web.serve('https://conductor.test/t/x.sh', 'x'),
    );
    expect(content).toContain('out of x');
  });

  test('without a configured server it is an ERROR', async () => {
    const world = new InstructionWorld();
    const process = await world.start({ sources: () => ({ installer: undefined, conductor: undefined }) });
    const session = process.connect();
    process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
    process.deliver('RUN_REMOTE_SCRIPT', 't2', { script: '/t/hello' });
    await process.settle();
    expect(session.sent.map(contentOf)).toEqual([
      'instruction.no_source: hello: no server for it is configured',
      'instruction.no_source: /t/hello: no server for it is configured',
    ]);
  });

  test('with sha256, another digest is refused and nothing runs', async () => {
    const good = await answered('RUN_REMOTE_SCRIPT', { script: 'hello', sha256: sha256('echo').toUpperCase() }, script('echo'));
    expect(good.content).toContain('out of echo');
    const bad = await answered('RUN_REMOTE_SCRIPT', { script: 'hello', sha256: sha256('other') }, script('echo'));
    expect([bad.type, bad.content]).toEqual([
      'ERROR',
      `hello: its SHA-256 is ${sha256('echo')}, not ${sha256('other')}; it was not run`,
    ]);
    expect(bad.world.ran).toEqual([]);
  });

  test.each<[string, (world: InstructionWorld) => void, RegExp]>([
    ['404', (world) => world.web.serve(`${INSTALLER}/scripts?t=hello&i=e30%3D`, 'x', 404), /answered with status 404$/],
    ['empty', (world) => world.web.serve(`${INSTALLER}/scripts?t=hello&i=e30%3D`, ''), /answered with an empty script$/],
    [
      'over 8 MiB',
      (world) => world.web.serve(`${INSTALLER}/scripts?t=hello&i=e30%3D`, new Uint8Array(8 * 1024 * 1024 + 1)),
      /more than 8388608 bytes$/,
    ],
    ['nowhere', () => {}, /connection refused$/],
  ])('a body that is %s does not run', async (_, prepare, text) => {
    const { type, content, world } = await answered('RUN_REMOTE_SCRIPT', { script: 'hello' }, prepare);
    expect(type).toBe('ERROR');
    expect(content).toMatch(text);
    expect(world.tasks.started).toEqual([]);
    expect(world.disk.dump()).toBe('t1 RUN_REMOTE_SCRIPT acked 1 failed');
  });

  test('one that fails is a normal response', async () => {
    const { type, content } = await answered('RUN_REMOTE_SCRIPT', { script: 'hello' }, (world) => {
      world.script('hello', 'x');
      world.tasks.install('/bin/bash', () => ({ exitCode: 3, stdout: 'half', stderr: 'broken' }));
    });
    expect([type, content]).toEqual([
      'RUN_REMOTE_SCRIPT_RESPONSE',
      '{"response":"half","stderr":"broken","exitCode":3,"timedOut":false}',
    ]);
  });

  test('one that takes longer is killed and says so; 15 min unless asked otherwise', async () => {
    const { process, session } = await answered('RUN_REMOTE_SCRIPT', { script: 'hello' }, script('sleep 10000'));
    await process.settle(899_999);
    expect(session.sent).toEqual([]);
    await process.settle(1);
    expect(session.sent.map(contentOf)).toEqual(['{"response":"","stderr":"","exitCode":-1,"timedOut":true}']);
  });

  test('a shell that cannot be started is a response with the reason', async () => {
    const world = new InstructionWorld();
    world.script('hello', 'x');
    const process = await world.start({ tasks: new FakeTaskRunner({}, world.clock) });
    const session = process.connect();
    process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
    await process.settle();
    expect(session.sent.map(contentOf)).toEqual([
      '{"response":"","stderr":"/bin/bash could not be started: ENOENT","exitCode":-1,"timedOut":false}',
    ]);
  });

  test('A15, test 12: 2 MiB of NUL on both streams fit a message of 12 MiB, each cut with its marker', async () => {
    const { session, content } = await answered('RUN_REMOTE_SCRIPT', { script: 'hello' }, (world) => {
      world.script('hello', 'x');
      const nul = new Uint8Array(2 * 1024 * 1024 + 1);
      world.tasks.install('/bin/bash', () => ({ stdout: nul, stderr: nul }));
    });
    expect(session.sent[0]?.jsonB64.length).toBeLessThanOrEqual(12 * 1024 * 1024 - 4_096);
    expect(session.sent[0]?.jsonB64.length).toBeGreaterThan(11 * 1024 * 1024);
    const { response, stderr, exitCode } = JSON.parse(content ?? '');
    expect(exitCode).toBe(0);
    for (const text of [response, stderr]) expect(text).toMatch(/\[cut here: \d+ bytes more\]$/);
    // With what the runner has dropped.
    expect(Number(/cut here: (\d+)/.exec(response)?.[1])).toBe(2 * 1024 * 1024 + 1 - response.indexOf('\n[cut'));
  });

  test('in the background: answered when it runs, as scheduled; it goes on', async () => {
    const { world, process, session, content } = await answered(
      'RUN_REMOTE_SCRIPT',
      { script: 'hello', runInBackground: true },
      script('sleep 600'),
    );
    expect(content).toBe('{"response":"scheduled","stderr":"","exitCode":0,"timedOut":false}');
    expect(world.tasks.dump()).toContain(' running');
    await process.settle(1);
    process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello', runInBackground: true });
    await process.settle(600_000);
    expect(session.sent).toHaveLength(2);
    expect(world.ran).toHaveLength(1);
    // Its folder goes with the housekeeping.
    await process.settle(3_700_000);
    expect(world.tasks.dump()).toBe('');
  });

  test('A8: in the background, killed before the answer: a task that runs means done', async () => {
    const world = new InstructionWorld();
    world.script('hello', 'sleep 600');
    const first = await world.start();
    first.connect();
    first.journal.cut(([change]) => (change?.change === 'row' && change.row.state === 'finished' ? 'before' : undefined));
    first.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello', runInBackground: true });
    await first.settle();
    expect(first.journal.isDead).toBe(true);
    const second = await world.start();
    const session = second.connect();
    await second.settle();
    expect(session.sent.map(contentOf)).toEqual([expect.stringContaining('"response":"scheduled"')]);
    expect(world.ran).toHaveLength(1);
  });

  test.each(['', '../x', 'a b', 'a;b', 'x'.repeat(513), 'a\n', 'é'])('the name %j is refused', async (name) => {
    const { type, content } = await answered('RUN_REMOTE_SCRIPT', { script: name });
    expect(type).toBe('ERROR');
    expect(content).toMatch(/^INVALID: RUN_REMOTE_SCRIPT: script: /);
  });
});

describe('RUN_WEB_REQUEST', () => {
  test('is a guarded GET unless asked otherwise; allowInsecure is ignored', async () => {
    const { world, content } = await answered(
      'RUN_WEB_REQUEST',
      { url: 'https://a.test/', allowInsecure: true, method: '' },
      (world) => world.web.serve('https://a.test/', 'päge', 404),
    );
    expect(content).toBe('{"responseBody":"päge","responseStatusCode":"404"}');
    expect(world.web.taken()).toEqual([
      {
        url: 'https://a.test/',
        method: 'GET',
        headers: {},
        body: undefined,
        timeoutMs: 30_000,
        maxBytes: 9 * 1024 * 1024,
        guarded: true,
      },
    ]);
    expect(world.disk.dump()).toBe('');
  });

  test('others are journalled, with their body and headers', async () => {
    const payload = {
      url: 'https://a.test/',
      method: 'put',
      postData: '{"a":1}',
      headers: { 'Content-Type': 'application/json' },
    };
    const { world } = await answered('RUN_WEB_REQUEST', payload, (world) => world.web.serve('https://a.test/', 'ok'));
    expect(world.web.taken()).toMatchObject([
      { method: 'PUT', body: '{"a":1}', headers: { 'Content-Type': 'application/json' } },
    ]);
    expect(world.disk.dump()).toBe('t1 RUN_WEB_REQUEST acked 1 done');
    expect(world.disk.rows.get('fleet-a\nt1')?.payload).toBeUndefined();
  });

  test('what the guard refuses is an ERROR, and nobody was asked', async () => {
    const { world, type, content } = await answered('RUN_WEB_REQUEST', { url: 'https://inner.test/' }, (world) =>
      world.web.forbid('https://inner.test/'),
    );
    expect([type, content]).toEqual(['ERROR', 'outbound.refused: https://inner.test/ is refused']);
    expect(world.web.taken()).toEqual([]);
  });

  test.each([
    { url: 'x', headers: { 'a b': 'c' } },
    { url: 'x', headers: { a: 'c\r\nd' } },
    { url: '' },
    { method: 'GET' },
    { url: 'x', method: 'GET / HTTP/1.1' },
  ])('%j is refused', async (payload) => {
    expect((await answered('RUN_WEB_REQUEST', payload)).content).toMatch(/^INVALID: RUN_WEB_REQUEST: /);
  });

  test('A15: a page of 9 MiB is cut so that the reply can be sent', async () => {
    const { session } = await answered('RUN_WEB_REQUEST', { url: 'https://a.test/' }, (world) =>
      world.web.serve('https://a.test/', '"'.repeat(9 * 1024 * 1024)),
    );
    expect(session.sent[0]?.jsonB64.length).toBeLessThanOrEqual(12 * 1024 * 1024);
    expect(session.sent[0]?.type).toBe('RUN_WEB_REQUEST');
  });
});

describe('RESTART_SERVICE', () => {
  test('A16b: durable, sent and confirmed, then scheduled', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    const session = process.connect();
    process.deliver('RESTART_SERVICE', 't1', '');
    await process.settle();
    expect(session.dump()).toBe('t1 RESTART_SCHEDULED {"scheduled":true,"delaySeconds":2}');
    expect(world.disk.dump()).toMatch(/^t1 RESTART_SERVICE handed 1 done$/);
    expect(world.services.scheduled).toBeUndefined();
    process.deliver('RESULT_ACK', 't1');
    await process.settle();
    expect(world.services.scheduled).toBe(2);
  });

  test('A16b: after 5 s without a confirmation, also when the link has died', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    process.connect();
    process.deliver('RESTART_SERVICE', 't1', { delaySeconds: 60 });
    await process.settle();
    process.drop();
    await process.settle(4_999);
    expect(world.services.scheduled).toBeUndefined();
    await process.settle(1);
    expect(world.services.scheduled).toBe(60);
  });

  test('A16b: a server that confirms nothing is not waited for', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    process.connect(new FakeSession(serverFacts({}, [])));
    process.deliver('RESTART_SERVICE', 't1', {});
    await process.settle();
    expect(world.services.scheduled).toBe(2);
  });

  test('A8: a repeat is answered from the journal, also by the restarted process: no loop', async () => {
    const world = new InstructionWorld();
    const first = await world.start();
    first.connect();
    first.deliver('RESTART_SERVICE', 't1', {});
    await first.settle(5_000);
    await first.engine.stop();
    world.services.scheduled = undefined;
    const second = await world.start();
    const session = second.connect();
    second.deliver('RESTART_SERVICE', 't1', {});
    await second.settle(60_000);
    expect(session.sent.map(({ type }) => type)).toContain('RESTART_SCHEDULED');
    expect(world.services.scheduled).toBeUndefined();
  });

  test('where nobody can restart it, the ERROR says so', async () => {
    const { type, content } = await answered('RESTART_SERVICE', {}, (world) => world.services.remove());
    expect([type, content]).toEqual(['ERROR', 'service.unmanaged: systemd does not run here']);
  });

  test('a restart that is refused after its acknowledgement shows in status', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    process.connect();
    process.deliver('RESTART_SERVICE', 't1', {});
    await process.settle();
    world.services.remove();
    await process.settle(5_000);
    expect(process.engine.problems().map(({ reason }) => reason)).toEqual([
      'RESTART_SERVICE was acknowledged and failed: service.unmanaged: systemd does not run here',
    ]);
  });

  test.each([-1, 61, 1.5, '2'])('a delay of %j is refused', async (delaySeconds) => {
    expect((await answered('RESTART_SERVICE', { delaySeconds })).content).toMatch(/^INVALID: RESTART_SERVICE: delaySeconds: /);
  });
});

test('a handler that throws is a correlated ERROR', async () => {
  const { type, content, world } = await answered('RUN_REMOTE_SCRIPT', { script: 'hello' }, (world) =>
    world.web.failNext(new TypeError('x is not a function')),
  );
  expect([type, content]).toEqual(['ERROR', 'x is not a function']);
  expect(world.logger.dump('error')).toContain('nobody foresaw');
});

test('the runner says that nothing was started: an ERROR, and the tag is final', async () => {
  const { type, content } = await answered('RUN_REMOTE_SCRIPT', { script: 'hello' }, (world) => {
    world.script('hello', 'x');
    world.tasks.failNext(new AgentError('instruction.not_started', { problem: 'no space left' }));
  });
  expect([type, content]).toEqual(['ERROR', 'instruction.not_started: no space left']);
});

import { describe, expect, test } from 'vitest';
import { run } from '../../support/cli-rig.js';
import { fleetCliRig } from '../../support/fleet-cli-rig.js';
import { base64, settle } from '../../support/fleet-rig.js';

const older = { agent: undefined };

/** A node that answers whatever it is sent. */
async function answering(type: string, jsonB64: string) {
  const rig = await fleetCliRig();
  const { stream, say } = await rig.connect();
  const answer = async () => {
    await rig.until(() => stream.told.length > 0);
    await say(type, stream.sent[0]?.tag ?? '', jsonB64);
  };
  return { ...rig, stream, say, answer };
}

describe('send', () => {
  test('says what became of it so far', async () => {
    const { cli, store } = await fleetCliRig();
    const sent = await cli(['send', 'n1', 'RUN_WEB_REQUEST', '--json', '{"url":"http://x"}', '--tag', 'a', '--expires', '5m']);
    expect(sent).toEqual({ code: 0, out: 'n1 a pending: waits for the node to connect\n', err: '' });
    expect(store.dump('inst-body/')).toContain('{"url":"http://x"}');
    const { out } = await cli(['send', 'n1', 'GET_NODE_STATUS', '--tag', 'b', '-o', 'json']);
    expect(JSON.parse(out)).toMatchObject({
      ...{ node: 'n1', tag: 'b', type: 'GET_NODE_STATUS', state: 'pending', waitsFor: 'the node to connect' },
      ...{ issuedAt: '2026-01-31T12:00:00.000Z', expiresAt: '2026-01-31T13:00:00.000Z' },
    });
  });

  test('takes what it says from standard input', async () => {
    const { cli, store } = await fleetCliRig();
    await cli(['send', 'n1', 'APPLY_CR', '--json', '-', '--tag', 'a'], { stdin: '{"x": 1}\n' });
    expect(store.dump('inst-body/')).toContain(': {"x": 1} @');
    const { code, err } = await cli(['send', 'n1', 'APPLY_CR', '--json', '-'], { stdin: 'x'.repeat(3 * 1024 * 1024) });
    expect([code, err]).toEqual([1, expect.stringContaining('dispatch.too_large')]);
  });

  test('--wait prints the JSON of the reply, every digit of it', async () => {
    const { cli, answer } = await answering('NODE_STATUS', base64('{"generation":9007199254740993}'));
    const [ran] = await Promise.all([cli(['send', 'n1', 'GET_NODE_STATUS', '--wait']), answer()]);
    expect(ran).toEqual({ code: 0, out: '{"generation":9007199254740993}\n', err: '' });
  });

  const script = ['send', 'n1', 'RUN_REMOTE_SCRIPT', '--json', '{"script":"x"}', '--tag', 'a', '--follow'];
  const saidBy = (stream: string, seq: number, text: string) =>
    base64(JSON.stringify({ of: 'a', stream, seq, dataB64: base64(text) }));
  const resultOf = (response: string, more = {}) =>
    base64(JSON.stringify({ response, stderr: 'oh\n', exitCode: 3, timedOut: false, ...more }));

  test('A17: --follow shows what a script says as it comes, then the rest, nothing twice, and how it ended', async () => {
    const { cli, stream, say, until, outputs } = await answering('', '');
    const shown: string[] = [];
    const running = cli(script, { onOut: (out) => shown.push(out) });
    await until(() => stream.told.length > 0);
    await say('INSTRUCTION_OUTPUT', 'own-1', saidBy('stdout', 0, 'one\n'));
    await until(() => shown.includes('one\n'));
    // And a gap after it.
    await say('INSTRUCTION_OUTPUT', 'own-2', base64('{"of":"a","stream":"stdout","seq":4,"dataB64":"w6Q="}'));
    await say('INSTRUCTION_OUTPUT', 'own-3', saidBy('stdout', 10, 'three\n'));
    await until(() => shown.at(-1)?.endsWith('three\n') === true);
    await say('RUN_REMOTE_SCRIPT_RESPONSE', 'a', resultOf('one\nä234\nthree\nfour\n'));
    const err = '[4 bytes are left out here; `holdfast results` has them]\noh\nexit code 3\n';
    expect(await running).toEqual({ code: 0, out: 'one\näthree\nfour\n', err });
    expect(outputs.stray).toBe(0);
  });

  test.each([
    ['that was killed', 'RUN_REMOTE_SCRIPT_RESPONSE', resultOf('', { timedOut: true }), 0, '', 'oh\nkilled at its deadline\n'],
    ['that could not be run', 'ERROR', 'no such script', 1, '', 'error: no such script\n'],
    ['whose result is another form', 'RUN_REMOTE_SCRIPT_RESPONSE', base64('{"response":1}'), 0, '{"response":1}\n', ''],
  ])('A17: --follow of a script %s', async (_, type, jsonB64, code, out, err) => {
    const { cli, answer } = await answering(type, jsonB64);
    expect((await Promise.all([cli(script), answer()]))[0]).toEqual({ code, out, err });
  });

  test('A17: --follow where the stream of the node is at another replica: only the result is shown, and why', async () => {
    const { clock, store, stream, say, until } = await answering('', '');
    const other = await fleetCliRig({}, { store, clock, server: 's2' });
    await clock.advance(5_000);
    const running = other.cli(script);
    await until(() => stream.told.length > 0);
    await say('RUN_REMOTE_SCRIPT_RESPONSE', 'a', resultOf('all\n'));
    const { code, out, err } = await running;
    expect([code, out]).toEqual([0, 'all\n']);
    expect(err).toMatch(/nothing is shown before the result: .*the stream of node n1 is at replica s1[\s\S]*exit code 3\n$/);
  });

  test('--follow is for people', async () => {
    const { cli } = await fleetCliRig();
    expect(await cli([...script, '-o', 'json'])).toMatchObject({ code: 2, err: expect.stringContaining('--follow shows text') });
  });

  test('--wait in JSON: the instruction with its reply', async () => {
    const { cli, answer } = await answering('NODE_STATUS', base64('{"a":1}'));
    const [ran] = await Promise.all([cli(['send', 'n1', 'GET_NODE_STATUS', '--wait', '-o', 'json']), answer()]);
    expect(JSON.parse(ran.out)).toMatchObject({ node: 'n1', state: 'done', replyType: 'NODE_STATUS', reply: { a: 1 } });
  });

  test.each([
    ['its text', 'ERROR', 'it did not work', '', 'error: it did not work\n'],
    ['of another agent', 'ERROR', base64('{"errMsg":"no such chart"}'), '', 'error: no such chart\n'],
    ['with a reply of its own', 'INSTALL_HELM_CHART_ERROR', base64('{"response":"no"}'), '{"response":"no"}\n', ''],
  ])('--wait ends with code 1 on an error: %s', async (_, type, jsonB64, out, err) => {
    const { cli, answer } = await answering(type, jsonB64);
    const [ran] = await Promise.all([cli(['send', 'n1', 'INSTALL_HELM_CHART', '--wait']), answer()]);
    expect(ran).toEqual({ code: 1, out, err });
  });

  test('A14: --wait says that the outcome is unknown where the agent cannot deduplicate', async () => {
    const { cli, connect, clock, until } = await fleetCliRig();
    const { stream } = await connect(older);
    const waiting = cli(['send', 'n1', 'GET_NODE_STATUS', '--wait']);
    await until(() => stream.told.length > 0);
    await clock.advance(31_000);
    expect(await waiting).toEqual({ code: 1, out: '', err: 'error: outcome unknown, this agent cannot deduplicate\n' });
  });

  test('--wait ends when it has expired, and when it is interrupted', async () => {
    const { cli, clock, until, book } = await fleetCliRig();
    const expiring = cli(['send', 'n1', 'GET_NODE_STATUS', '--wait', '--expires', '10s']);
    await until(() => book.openCount() > 0);
    await clock.advance(10_001);
    expect(await expiring).toMatchObject({ code: 1, err: 'error: expired, it could not be sent in time\n' });
    const abort = new AbortController();
    const waiting = cli(['send', 'n1', 'GET_NODE_STATUS', '--wait'], { signal: abort.signal });
    await until(() => book.openCount() > 0);
    await settle();
    abort.abort(new Error('SIGINT'));
    expect(await waiting).toMatchObject({ code: 1, err: 'error: interrupted\n' });
  });

  test('asks before a node is uninstalled', async () => {
    const { cli, book } = await fleetCliRig();
    const uninstall = ['send', 'n1', 'UNINSTALL_NODE'];
    expect(await cli(uninstall)).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
    expect(await cli(uninstall, { interactive: true, stdin: 'n\n' })).toMatchObject({
      code: 1,
      err: expect.stringContaining('nothing was sent'),
    });
    expect(book.openCount()).toBe(0);
    expect(await cli(uninstall, { interactive: true, stdin: 'yes\n' })).toMatchObject({ code: 0 });
    expect(await cli([...uninstall, '--yes'])).toMatchObject({ code: 0 });
  });

  test('on a terminal --wait says what it waits for', async () => {
    const { cli, answer } = await answering('NODE_STATUS', base64('{}'));
    const [ran] = await Promise.all([
      cli(['send', 'n1', 'GET_NODE_STATUS', '--tag', 'a', '--wait'], { interactive: true }),
      answer(),
    ]);
    expect(ran).toEqual({ code: 0, out: '{}\n', err: 'sent to n1 as a; waiting for its result\n' });
  });

  test.each([
    [['send', 'n1'], 2, "missing required argument 'type'"],
    [['send', 'n1', 'GET_NODE_STATUS', '--expires', 'soon'], 2, 'expected a duration of 1ms to 576h after --expires'],
    [['send', 'n1', 'GET_NODE_STATUS', '--expires', '0s'], 2, 'expected a duration of 1ms to 576h after --expires'],
    [['send', 'n1', 'GET_NODE'], 1, 'there is no instruction "GET_NODE"'],
    [['send', 'n1', 'APPLY_CR', '--json', '[]'], 1, 'a JSON object'],
    [['send', 'n9', 'GET_NODE_STATUS'], 1, 'there is no node n9'],
  ] as const)('%j is refused with code %i', async (args, code, message) => {
    const { cli } = await fleetCliRig();
    expect(await cli(args)).toMatchObject({ code, out: '', err: expect.stringContaining(message) });
  });

  test('without a daemon ends with code 3', async () => {
    expect(await run(['send', 'n1', 'GET_NODE_STATUS', '--data-dir', '/nonexistent'])).toMatchObject({ code: 3 });
  });
});

describe('results', () => {
  test('lists what there is', async () => {
    const { cli, connect } = await fleetCliRig();
    expect(await cli(['results'])).toMatchObject({ code: 0, out: '', err: expect.stringContaining('no instruction') });
    await cli(['send', 'n1', 'GET_NODE_STATUS', '--tag', 'a']);
    const { say } = await connect();
    await say('NODE_STATUS', 'a', base64('{"a":1}'));
    await cli(['send', 'n1', 'RESTART_SERVICE', '--tag', 'b']);
    await settle();
    const { out } = await cli(['results', 'n1']);
    expect(out.replaceAll(/ +\d+[smhd] +/g, ' AGO ')).toBe(
      [
        'NODE  TAG  TYPE             STATE      AGE   OUTCOME',
        'n1    a    GET_NODE_STATUS  done AGO NODE_STATUS, 12 B',
        'n1    b    RESTART_SERVICE  delivered AGO waits for the answer of the node',
        '',
      ].join('\n'),
    );
    const json = JSON.parse((await cli(['results', '-o', 'json'])).out);
    expect(json.instructions).toMatchObject([{ tag: 'a', state: 'done' }, { tag: 'b' }]);
  });

  test('of one: its reply, or what it waits for', async () => {
    const { cli, connect } = await fleetCliRig();
    await cli(['send', 'n1', 'GET_NODE_STATUS', '--tag', 'a']);
    expect(await cli(['results', 'n1', 'a'])).toEqual({ code: 0, out: 'n1 a pending: waits for the node to connect\n', err: '' });
    const { say } = await connect();
    await say('NODE_STATUS', 'a', base64('{"a":1}'));
    expect(await cli(['results', 'n1', 'a'])).toEqual({ code: 0, out: '{"a":1}\n', err: '' });
    expect(await cli(['results', 'n1', 'x'])).toMatchObject({ code: 1, err: expect.stringContaining('no instruction x') });
    expect(await cli(['results', 'n1', 'x', '-w'])).toMatchObject({ code: 1 });
  });

  test('-w waits for one, and goes on with all', async () => {
    const { cli, connect, book, until } = await fleetCliRig();
    const abort = new AbortController();
    let seen = '';
    const all = cli(['results', '-w'], { signal: abort.signal, onOut: (out) => (seen = out) });
    await cli(['send', 'n1', 'GET_NODE_STATUS', '--tag', 'a']);
    const one = cli(['results', 'n1', 'a', '-w']);
    await until(() => book.openCount() > 0);
    const { say } = await connect();
    await say('NODE_STATUS', 'a', base64('{"a":1}'));
    expect(await one).toEqual({ code: 0, out: '{"a":1}\n', err: '' });
    await until(() => seen.includes('done'));
    abort.abort();
    expect((await all).code).toBe(0);
    expect(seen).toContain('n1  a  GET_NODE_STATUS  done  NODE_STATUS, 12 B\n');
  });
});

test('cancel', async () => {
  const { cli } = await fleetCliRig();
  await cli(['send', 'n1', 'GET_NODE_STATUS', '--tag', 'a']);
  expect(await cli(['cancel', 'n1', 'a'])).toEqual({ code: 0, out: 'n1 a cancelled: cancelled before it was sent\n', err: '' });
  expect(await cli(['cancel', 'n1', 'x'])).toMatchObject({ code: 1 });
});

import { describe, expect, test } from 'vitest';
import type { JournalChange } from '../../../src/ports/instruction/journal.js';
import {
  acknowledging,
  contentOf,
  FakeSession,
  InstructionWorld,
  type Process,
  serverFacts,
} from '../../support/instruction-rig.js';

const SCRIPT = { script: 'hello' };

/** Which of the three commits of A1 a change belongs to. */
function stateOf(changes: readonly JournalChange[]): string | undefined {
  const [first] = changes;
  return first?.change === 'row' ? `${first.row.state}${first.row.step === undefined ? '' : ' body'}` : undefined;
}

async function killedAt(state: string, where: 'before' | 'after', payload: object = SCRIPT): Promise<InstructionWorld> {
  const world = new InstructionWorld();
  world.script('hello', 'echo hello');
  const process = await world.start();
  process.connect(acknowledging(process));
  process.journal.cut((changes) => (stateOf(changes) === state ? where : undefined));
  process.deliver('RUN_REMOTE_SCRIPT', 't1', payload);
  await process.settle();
  expect(process.journal.isDead).toBe(true);
  process.drop();
  return world;
}

/** The next life, with a server that delivers again or not. */
async function nextLife(world: InstructionWorld, redelivers: boolean, payload: object = SCRIPT): Promise<FakeSession> {
  const process = await world.start();
  const facts = redelivers ? serverFacts() : serverFacts({}, ['result-ack']);
  const session = process.connect(acknowledging(process, new FakeSession(facts)));
  if (redelivers) process.deliver('RUN_REMOTE_SCRIPT', 't1', payload);
  await process.settle();
  return session;
}

const OUTPUT = '{"response":"out of echo hello","stderr":"","exitCode":0,"timedOut":false}';
const DONE = `t1 RUN_REMOTE_SCRIPT_RESPONSE ${OUTPUT}`;
const NOT_STARTED = 't1 ERROR NOT_STARTED: the agent was restarted before it began; nothing was done';

describe('kill -9 at each commit', () => {
  test.each<[string, 'before' | 'after', boolean, string]>([
    // The server has no answer and delivers again: the journal knows nothing, it runs for the first time.
    ['received', 'before', true, DONE],
    ['received', 'after', true, DONE],
    ['received', 'after', false, NOT_STARTED],
    ['started', 'before', true, DONE],
    ['started', 'before', false, NOT_STARTED],
    // The runner has no folder: nothing had begun.
    ['started', 'after', true, DONE],
    ['started', 'after', false, NOT_STARTED],
    ['started body', 'after', true, DONE],
    // The runner knows the end.
    ['finished body', 'before', true, DONE],
    ['finished body', 'before', false, DONE],
    ['finished body', 'after', true, DONE],
    ['finished body', 'after', false, DONE],
  ])('A1, A4 to A6: at %s, %s it, server redelivers %s', async (state, where, redelivers, expected) => {
    const world = await killedAt(state, where);
    const session = await nextLife(world, redelivers);
    expect(session.dump()).toBe(expected);
    expect(world.ran.length).toBeLessThanOrEqual(1);
    expect(world.ran.length).toBe(expected === DONE ? 1 : 0);
    expect(world.disk.dump()).toMatch(/^t1 RUN_REMOTE_SCRIPT acked \d (done|refused)$/);
  });

  test('A4: what runs is adopted, and its true result arrives', async () => {
    const world = new InstructionWorld();
    world.script('hello', 'sleep 600');
    const first = await world.start();
    first.connect();
    first.deliver('RUN_REMOTE_SCRIPT', 't1', SCRIPT);
    await first.settle(1_000);
    await first.engine.stop();
    const second = await world.start();
    const session = second.connect(acknowledging(second));
    second.deliver('RUN_REMOTE_SCRIPT', 't1', SCRIPT);
    await second.settle(1_000);
    expect(session.dump()).toBe('');
    await second.settle(600_000);
    expect(session.dump()).toContain('out of sleep 600');
    expect(world.ran).toEqual(['sleep 600']);
    expect(world.tasks.dump()).toBe('');
  });

  async function powerCut(payload: object): Promise<InstructionWorld> {
    const world = new InstructionWorld();
    world.script('hello', 'sleep 600');
    await cutAgain(world, payload);
    return world;
  }

  async function cutAgain(world: InstructionWorld, payload: object | undefined): Promise<Process> {
    const process = await world.start();
    process.connect();
    if (payload !== undefined) process.deliver('RUN_REMOTE_SCRIPT', 't1', payload);
    await process.settle(1_000);
    await process.engine.stop();
    for (const { id } of world.tasks.started) world.tasks.interrupt(id);
    return process;
  }

  test('A5: interrupted is final, says how far it was, and no repeat runs', async () => {
    const world = await powerCut(SCRIPT);
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    await process.settle();
    expect(session.dump()).toMatch(/^t1 ERROR INTERRUPTED: it had reached: body [0-9a-f]{64}; /);
    await process.settle(1);
    process.deliver('RUN_REMOTE_SCRIPT', 't1', SCRIPT);
    await process.settle();
    expect(session.sent).toHaveLength(2);
    expect(session.sent[1]).toEqual(session.sent[0]);
    expect(world.ran).toHaveLength(1);
    expect(world.disk.dump()).toBe('t1 RUN_REMOTE_SCRIPT acked 1 unknown');
  });

  test('A7: one that may be repeated runs once more, before anything newer in its lane; the second death is final', async () => {
    const payload = { ...SCRIPT, repeatable: true, lane: 'x' };
    const world = await powerCut(payload);
    world.script('newer', 'newer');
    const second = await world.start();
    second.connect();
    second.deliver('RUN_REMOTE_SCRIPT', 't2', { script: 'newer', lane: 'x' });
    await second.settle(1_000);
    expect(world.ran).toEqual(['sleep 600', 'sleep 600']);
    await second.engine.stop();
    for (const { id } of world.tasks.started) world.tasks.interrupt(id);
    const third = await world.start();
    const session = third.connect(acknowledging(third));
    await third.settle();
    expect(session.of('t1').map(contentOf)).toEqual([expect.stringMatching(/^INTERRUPTED \(attempt 2\): /)]);
    third.deliver('RUN_REMOTE_SCRIPT', 't2', { script: 'newer', lane: 'x' });
    await third.settle();
    expect(world.ran).toEqual(['sleep 600', 'sleep 600', 'newer']);
  });

  test('A8: a repeat that would fetch another body is another script and does not run', async () => {
    const world = await powerCut({ ...SCRIPT, repeatable: true });
    world.script('hello', 'rm -rf /');
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    await process.settle();
    expect(session.dump()).toContain('is another script');
    expect(world.ran).toEqual(['sleep 600']);
  });

  test('A8: a web request that may have been sent is interrupted, not sent again', async () => {
    const world = new InstructionWorld();
    world.web.silence('https://a.test/');
    const first = await world.start();
    first.connect();
    const payload = { url: 'https://a.test/', method: 'POST', postData: 'x' };
    first.deliver('RUN_WEB_REQUEST', 't1', payload);
    await first.settle();
    await first.engine.stop();
    const second = await world.start();
    const session = second.connect(acknowledging(second));
    second.deliver('RUN_WEB_REQUEST', 't1', payload);
    await second.settle();
    expect(session.dump()).toContain('INTERRUPTED: it was started');
    expect(world.web.taken()).toHaveLength(1);
  });
});

describe('tags', () => {
  test('A10: the same tag five times is one effect; later ones are attached or answered', async () => {
    const world = new InstructionWorld();
    world.script('hello', 'sleep 10');
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    for (let time = 0; time < 3; time++) process.deliver('RUN_REMOTE_SCRIPT', 't1', SCRIPT);
    await process.settle(1_000);
    process.deliver('RUN_REMOTE_SCRIPT', 't1', SCRIPT);
    await process.settle(10_000);
    expect(session.sent).toHaveLength(1);
    process.deliver('RUN_REMOTE_SCRIPT', 't1', SCRIPT);
    await process.settle();
    expect(session.sent).toHaveLength(2);
    expect(session.sent[1]).toEqual(session.sent[0]);
    expect(world.ran).toEqual(['sleep 10']);
  });

  test.each([
    ['while it runs', 'sleep 10'],
    ['when it is finished', 'echo'],
  ])('A10: the same tag for another instruction is refused, its reply not disclosed, %s', async (_, text) => {
    const world = new InstructionWorld();
    world.script('hello', text);
    world.script('other', 'other');
    const process = await world.start();
    const session = process.connect();
    process.deliver('RUN_REMOTE_SCRIPT', 't1', SCRIPT);
    await process.settle();
    process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'other' });
    await process.settle();
    expect(session.sent.map(contentOf).at(-1)).toMatch(/^TAG_REUSED: /);
    expect(world.ran).toEqual([text]);
    expect(world.audit.dump()).toContain('decision refuse RUN_REMOTE_SCRIPT t1');
  });

  test('A9: a tag with only a tombstone is answered so, and does not run', async () => {
    const world = new InstructionWorld();
    world.script('hello', 'echo');
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    process.deliver('RUN_REMOTE_SCRIPT', 't1', SCRIPT);
    await process.settle();
    await process.settle(3_600_000 + 60_000);
    expect(world.disk.rows.get('fleet-a\nt1')?.reply).toBeUndefined();
    process.deliver('RUN_REMOTE_SCRIPT', 't1', SCRIPT);
    await process.settle();
    expect(session.sent.map(contentOf).at(-1)).toMatch(/^RESULT_EXPIRED: ran at 2026-01-31T12:00:00.000Z, outcome done; /);
    expect(world.ran).toEqual(['echo']);
  });

  test.each(['', 'x'.repeat(129), 'a\nb', 'é'])('A10: %j is no tag: counted, dropped, not answered', async (text) => {
    const process = await new InstructionWorld().start();
    const session = process.connect();
    process.deliver('GET_NODE_STATUS', text);
    await process.settle();
    expect(session.sent).toEqual([]);
    expect(process.engine.snapshot().counts).toMatchObject({ bad_tag: 1 });
  });

  test('A2: repeats of a read are answered from memory, and it is not journalled', async () => {
    const world = new InstructionWorld();
    world.web.serve('https://a.test/', 'one');
    const process = await world.start();
    const session = process.connect();
    process.deliver('RUN_WEB_REQUEST', 't1', { url: 'https://a.test/' });
    process.deliver('RUN_WEB_REQUEST', 't1', { url: 'https://a.test/' });
    await process.settle();
    expect(session.sent).toHaveLength(1);
    world.web.serve('https://a.test/', 'two');
    process.deliver('RUN_WEB_REQUEST', 't1', { url: 'https://a.test/' });
    process.deliver('RUN_WEB_REQUEST', 't1', { url: 'https://b.test/' });
    await process.settle();
    expect(session.sent.map(contentOf)).toEqual([
      '{"responseBody":"one","responseStatusCode":"200"}',
      '{"responseBody":"one","responseStatusCode":"200"}',
      expect.stringMatching(/^TAG_REUSED/),
    ]);
    expect(world.disk.dump()).toBe('');
  });
});

test('1,000 instructions across 50 sessions that drop: 1,000 effects, 1,000 results', async () => {
  const world = new InstructionWorld();
  const process = await world.start();
  const results = new Map<string, Set<string>>();
  const confirmed = new Set<string>();
  for (let number = 0; number < 1_000; number++) world.script(`s${number}`, `run ${number}`);
  let next = 0;
  for (let turn = 0; turn < 50; turn++) {
    const session = new FakeSession();
    // Every third server stores nothing of what it is told, and dies 6 s later.
    session.onSend = (message) => {
      if (turn % 3 === 2) return;
      results.set(message.tag, (results.get(message.tag) ?? new Set()).add(contentOf(message)));
      confirmed.add(message.tag);
      queueMicrotask(() => process.engine.received(session, { type: 'RESULT_ACK', tag: message.tag, jsonB64: 'e30=' }));
    };
    process.connect(session);
    // What was delivered and not answered is delivered again, in the order of its issue.
    for (let number = 0; number < next; number++) {
      if (!confirmed.has(`t${number}`) && number % 2 === 0)
        process.deliver('RUN_REMOTE_SCRIPT', `t${number}`, { script: `s${number}` });
    }
    for (const end = next + 20; next < end; next++) process.deliver('RUN_REMOTE_SCRIPT', `t${next}`, { script: `s${next}` });
    if (turn % 3 === 2) await process.settle(6_000);
    else if (turn % 2 === 0) await process.settle(10);
    else await new Promise((resolve) => setImmediate(resolve));
    process.drop();
  }
  process.connect(acknowledgingInto(process, results));
  for (let minute = 0; minute < 10; minute++) await process.settle(30_000);
  expect(world.ran).toHaveLength(1_000);
  expect(new Set(world.ran).size).toBe(1_000);
  expect(results.size).toBe(1_000);
  for (let number = 0; number < 1_000; number++) {
    const answer = { response: `out of run ${number}`, stderr: '', exitCode: 0, timedOut: false };
    expect([...(results.get(`t${number}`) ?? [])]).toEqual([JSON.stringify(answer)]);
  }
  expect(process.engine.snapshot().unconfirmed).toBe(0);
});

function acknowledgingInto(process: Process, results: Map<string, Set<string>>): FakeSession {
  const session = acknowledging(process);
  const { onSend } = session;
  session.onSend = (message) => {
    results.set(message.tag, (results.get(message.tag) ?? new Set()).add(contentOf(message)));
    onSend(message);
  };
  return session;
}

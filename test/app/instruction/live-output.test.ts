import { describe, expect, test } from 'vitest';
import { LOOK_MS } from '../../../src/app/instruction/live-output.js';
import { taskIdOf } from '../../../src/app/instruction/task-id.js';
import { OUTPUT_TYPE, readOutput } from '../../../src/domain/instruction/live-output.js';
import { tagOf } from '../../support/fleet-rig.js';
import { FakeSession, InstructionWorld, serverFacts, sha256 } from '../../support/instruction-rig.js';

const live = (fleet = 'fleet-a') => new FakeSession(serverFacts({ fleet }, ['redeliver', 'result-ack', 'live-output']));
const taskOf = (tag: string, fleet = 'fleet-a') => taskIdOf({ fleet, tag: tagOf(tag) }, sha256);
/** `stream seq text`, one each. */
const told = (session: FakeSession) =>
  session.sent
    .filter(({ type }) => type === OUTPUT_TYPE)
    .map(({ jsonB64 }) => readOutput(jsonB64))
    .map((piece) => `${piece?.of} ${piece?.stream} ${piece?.seq} ${Buffer.from(piece?.bytes ?? []).toString()}`);

async function rig(session = live()) {
  const world = new InstructionWorld();
  world.script('long.sh', 'sleep 100');
  const agent = await world.start();
  agent.connect(session);
  const run = async (tag: string, more = {}) => {
    agent.deliver('RUN_REMOTE_SCRIPT', tag, { script: 'long.sh', ...more });
    await agent.settle();
  };
  return { world, agent, session, run, tasks: world.tasks };
}

describe('A17: live output', () => {
  test('of a running script is told within half a second, never under the tag of the instruction, and nothing twice', async () => {
    const { agent, session, run, tasks } = await rig();
    await run('a');
    tasks.say(taskOf('a'), 'stdout', 'one\n');
    tasks.say(taskOf('a'), 'stderr', 'oh\n');
    await agent.settle(LOOK_MS);
    tasks.say(taskOf('a'), 'stdout', 'two\n');
    await agent.settle(3 * LOOK_MS);
    expect(told(session)).toEqual(['a stdout 0 one\n', 'a stderr 0 oh\n', 'a stdout 4 two\n']);
    const tags = session.sent.filter(({ type }) => type === OUTPUT_TYPE).map(({ tag }) => tag);
    expect(new Set(tags).size).toBe(3);
    expect(tags).not.toContain('a');
  });

  test('ends with the script, whose result has all of it', async () => {
    const { agent, session, run, tasks } = await rig();
    await run('a');
    tasks.say(taskOf('a'), 'stdout', 'one\n');
    await agent.settle(100_000);
    expect(session.of('a').map(({ type }) => type)).toEqual(['RUN_REMOTE_SCRIPT_RESPONSE']);
    const before = told(session).length;
    await agent.settle(10_000);
    expect(told(session)).toHaveLength(before);
  });

  test.each([
    ['a server that does not announce it', new FakeSession(serverFacts())],
    ['an older server', new FakeSession('older')],
    ['the server of another fleet', undefined],
  ])('nothing is told to %s', async (_, session) => {
    const { agent, run, tasks } = await rig(session);
    await run('a');
    let last = session;
    if (last === undefined) {
      agent.drop();
      last = agent.connect(live('fleet-b'));
    }
    tasks.say(taskOf('a', session?.server === undefined && session !== undefined ? 'root-1' : 'fleet-a'), 'stdout', 'one\n');
    await agent.settle(5_000);
    expect(told(last)).toEqual([]);
  });

  test('of a script that goes on in the background nothing is told', async () => {
    const { agent, session, run, tasks } = await rig();
    await run('a', { runInBackground: true });
    tasks.say(taskOf('a'), 'stdout', 'one\n');
    await agent.settle(5_000);
    expect(told(session)).toEqual([]);
  });

  test('is lossy: 10 MB a second leave the newest, 256 KiB of messages a second at most, for all scripts together', async () => {
    const { agent, session, run, tasks } = await rig();
    await run('a');
    await run('b');
    const bytes = () => session.sent.reduce((sum, { type, jsonB64 }) => sum + (type === OUTPUT_TYPE ? jsonB64.length : 0), 0);
    let last = 0;
    for (let second = 0; second < 5; second += 1) {
      for (const tag of ['a', 'b']) tasks.say(taskOf(tag), 'stdout', 'x'.repeat(5_000_000));
      await agent.settle(1_000);
      expect(bytes() - last).toBeLessThanOrEqual(256 * 1024 + 1_000);
      last = bytes();
    }
    expect(last).toBeGreaterThan(256 * 1024);
    const ends = session.sent.flatMap(({ type, jsonB64 }) => (type === OUTPUT_TYPE ? [readOutput(jsonB64)] : []));
    const newest = ends.findLast((piece) => piece?.of === 'a');
    expect((newest?.seq ?? 0) + (newest?.bytes.length ?? 0)).toBe(25_000_000);
  });

  test('waits while there is no stream, and goes on with the newest on the next one', async () => {
    const { agent, run, tasks } = await rig();
    await run('a');
    agent.drop();
    tasks.say(taskOf('a'), 'stdout', 'x'.repeat(200_000));
    await agent.settle(5_000);
    const next = agent.connect(live());
    await agent.settle(LOOK_MS);
    const pieces = next.sent.flatMap(({ type, jsonB64 }) => (type === OUTPUT_TYPE ? [readOutput(jsonB64)] : []));
    expect(pieces[0]?.seq).toBe(200_000 - 32 * 1024);
    expect(pieces.reduce((sum, piece) => sum + (piece?.bytes.length ?? 0), 0)).toBe(32 * 1024);
  });

  test('of a script that another process began is told by the one that adopts it', async () => {
    const { world, run, tasks } = await rig();
    await run('a');
    const next = await world.start();
    const session = next.connect(live());
    tasks.say(taskOf('a'), 'stdout', 'after the death\n');
    await next.settle(LOOK_MS);
    expect(told(session)).toEqual(['a stdout 0 after the death\n']);
  });

  test('a link that takes nothing holds nothing up', async () => {
    const { agent, session, run, tasks } = await rig();
    session.sendBehind = () => new Promise(() => {});
    await run('a');
    tasks.say(taskOf('a'), 'stdout', 'one\n');
    await agent.settle(100_000);
    expect(session.of('a').map(({ type }) => type)).toEqual(['RUN_REMOTE_SCRIPT_RESPONSE']);
  });
});

import { describe, expect, test } from 'vitest';
import { ALL_KEPT_BYTES, KEPT_BYTES } from '../../../src/app/dispatch/output-relay.js';
import { OUTPUT_PIECE_BYTES, type OutputPiece } from '../../../src/domain/instruction/live-output.js';
import { agentFacts, base64, fleetRig, n1, n2, options, settle, tagOf } from '../../support/fleet-rig.js';

const a = tagOf('a');
const output = (of: string, seq: number, text: string, stream = 'stdout') =>
  base64(JSON.stringify({ of, stream, seq, dataB64: base64(text) }));
const textOf = ({ stream, seq, bytes }: OutputPiece) => `${stream} ${seq} ${Buffer.from(bytes).toString()}`;

async function rig() {
  const fleet = await fleetRig();
  for (const nid of [n1, n2]) fleet.registrations.register(nid);
  const node = await fleet.connect();
  let own = 0;
  const say = (of: string, seq: number, text: string, stream?: string) =>
    node.say('INSTRUCTION_OUTPUT', `own-${++own}`, output(of, seq, text, stream));
  const run = async (tag: string) => {
    await fleet.send({ tag: tagOf(tag), type: 'RUN_REMOTE_SCRIPT', json: '{"script":"x"}' });
    await settle();
  };
  const finish = async (tag: string) => {
    await node.say('RUN_REMOTE_SCRIPT_RESPONSE', tag, base64('{}'));
    await settle();
  };
  /** What a reader is told, and when it is over. */
  const reader = (tag = a, abort = new AbortController()) => {
    const seen: string[] = [];
    const over = (async () => {
      for await (const piece of fleet.outputs.follow(n1, tag, abort)) seen.push(textOf(piece));
    })();
    over.catch(() => {});
    return { seen, over, abort };
  };
  return { ...fleet, node, say, run, finish, reader };
}

describe('A17: what scripts say while they run', () => {
  test('is told to everybody who looks, until the instruction has ended', async () => {
    const { run, say, finish, reader } = await rig();
    await run('a');
    const [one, two] = [reader(), reader()];
    await settle();
    await say('a', 0, 'one\n');
    await say('a', 0, 'oh\n', 'stderr');
    await say('a', 4, 'two\n');
    await finish('a');
    await Promise.all([one.over, two.over]);
    expect(one.seen).toEqual(['stdout 0 one\n', 'stderr 0 oh\n', 'stdout 4 two\n']);
    expect(two.seen).toEqual(one.seen);
  });

  test('begins with what was said before, and ends at once when it is over', async () => {
    const { run, say, finish, reader, outputs } = await rig();
    await run('a');
    await say('a', 0, 'one\n');
    const late = reader();
    await settle();
    expect(late.seen).toEqual(['stdout 0 one\n']);
    late.abort.abort();
    await late.over;
    await finish('a');
    const later = reader();
    await later.over;
    expect(later.seen).toEqual(['stdout 0 one\n']);
    // Nobody needs it any more.
    expect(outputs.keptBytes).toBe(0);
  });

  test('is not told twice when the node says it twice, as one does that was started again', async () => {
    const { run, say, reader } = await rig();
    await run('a');
    const { seen } = reader();
    await settle();
    await say('a', 0, 'one\n');
    await say('a', 0, 'one\ntwo\n');
    await say('a', 2, 'e\ntwo');
    await say('a', 100, 'much later');
    expect(seen).toEqual(['stdout 0 one\n', 'stdout 4 two\n', 'stdout 100 much later']);
  });

  test.each([
    ['what was not asked', (say: Say) => say('b', 0, 'x')],
    ['what is malformed', (say: Say) => say('', 0, 'x')],
  ])('%s is counted and dropped', async (_, speak) => {
    const { run, say, outputs, sessions } = await rig();
    await run('a');
    await speak(say);
    expect([outputs.stray, outputs.keptBytes, sessions.counters.unclaimed]).toEqual([1, 0, 0]);
  });

  test('under the tag of an instruction it is not taken for its result', async () => {
    const { run, node, instructions, finish } = await rig();
    await run('a');
    await node.say('INSTRUCTION_OUTPUT', 'a', output('a', 0, 'x'));
    expect((await instructions.get(n1, a, options)).status.state).toBe('delivered');
    await finish('a');
    expect((await instructions.get(n1, a, options)).status.state).toBe('done');
  });

  test('another node, and one that is over, says nothing about it', async () => {
    const { run, finish, connect, outputs, say } = await rig();
    await run('a');
    const other = await connect({ nid: n2, agent: agentFacts({ instance: 'i2' }) });
    await other.say('INSTRUCTION_OUTPUT', 'own', output('a', 0, 'x'));
    await finish('a');
    await say('a', 0, 'x');
    expect([outputs.stray, outputs.keptBytes]).toEqual([2, 0]);
  });

  test('memory is bounded: the newest 64 KiB of each, 16 MiB of all, and a reader that takes nothing', async () => {
    const { run, say, outputs, reader } = await rig();
    const tags = Array.from({ length: 24 }, (_, index) => `t${index}`);
    for (const tag of tags) await run(tag);
    const piece = 'x'.repeat(OUTPUT_PIECE_BYTES);
    const slow = outputs.follow(n1, tagOf('t0'), options);
    const first = slow.next();
    for (let index = 0; index < 100; index += 1) await say('t0', index * piece.length, piece);
    expect(outputs.keptBytes).toBe(KEPT_BYTES);
    expect((await first).value?.seq).toBe(0);
    // 1 MiB of the 1.6 that were said.
    expect((await slow.next()).value?.seq).toBe((100 - 64) * piece.length);
    await slow.return(undefined);
    for (const tag of tags) for (let index = 0; index < 4; index += 1) await say(tag, index * piece.length, piece);
    expect(outputs.keptBytes).toBe(tags.length * KEPT_BYTES);
    expect(outputs.keptBytes).toBeLessThanOrEqual(ALL_KEPT_BYTES);
    const { seen } = reader(tagOf('t0'));
    await settle();
    expect(seen).toHaveLength(4);
  });

  test('who looks at a replica that has not the stream is told which has; of what is not there, that', async () => {
    const { store, clock, run, reader } = await rig();
    await run('a');
    await clock.advance(5_000);
    const other = await fleetRig({ server: 's2', store, clock });
    await expect(other.outputs.follow(n1, a, options).next()).rejects.toMatchObject({
      code: 'dispatch.elsewhere',
      message: expect.stringContaining('replica s1'),
    });
    await expect(reader(tagOf('nothing')).over).rejects.toMatchObject({ code: 'dispatch.not_found' });
  });
});

type Say = (of: string, seq: number, text: string) => Promise<void>;

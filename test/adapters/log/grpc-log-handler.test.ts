import { describe, expect, test } from 'vitest';
import { LogServiceHandler } from '../../../src/adapters/log/grpc-log-handler.js';
import type { Outlet } from '../../../src/adapters/log/grpc-log-outlet.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { ZERO_DIGEST } from '../../../src/domain/log/model.js';
import { nodeReads } from '../../../src/domain/log/visibility.js';
import { propose, set } from '../../contract/ordered-log.support.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
import { everything } from '../../support/log-service-rig.js';
import { peer } from '../../support/peer.js';

const options = { signal: new AbortController().signal };
const MIB = 1024 * 1024;

/** Takes what it is sent. */
class Sink implements Outlet {
  bytes = 0;

  async write(message: Uint8Array): Promise<void> {
    this.bytes += message.length;
  }
}

const stuck: Outlet = {
  write: async () => {
    throw new AgentError('log.slow', { problem: 'told to' });
  },
};

async function setUp() {
  const clock = new FakeClock();
  const log = new FakeOrderedLog({ clock });
  for (let i = 0; i < 5; i += 1) await propose(log, set(`service/default/s${i}`, 'v'.repeat(MIB)));
  const handler = new LogServiceHandler({ log, clock, proposals: everything(log), reads: nodeReads });
  const from = { logId: (await log.head(options)).logId, revision: 0n, digest: ZERO_DIGEST };
  const tooSlow = async (name: string) => {
    await expect(handler.watch(peer(name), { from }, stuck, options)).rejects.toMatchObject({ code: 'log.slow' });
  };
  const snapshot = (name: string) => {
    const sink = new Sink();
    const done = handler.snapshot(peer(name), { prefix: '' }, sink, options);
    return { sink, done };
  };
  return { clock, handler, tooSlow, snapshot, from };
}

const whole = 5 * MIB;

describe('E8, I1: a node that was too slow three times in a row', () => {
  test('gets its snapshot at 1 MiB a second', async () => {
    const { clock, tooSlow, snapshot } = await setUp();
    for (let i = 0; i < 3; i += 1) await tooSlow('n1');
    const { sink, done } = snapshot('n1');
    const seen: number[] = [];
    // The pages are made in between turns of the event loop.
    while (sink.bytes === 0) await clock.advance(0);
    for (let second = 0; second < 7; second += 1) {
      await clock.advance(second === 0 ? 0 : 1_001);
      seen.push(Math.floor(sink.bytes / MIB));
    }
    expect(seen).toEqual([1, 2, 3, 4, 5, 5, 5]);
    await done;
  });

  test('others get it at once, as does one that was slow twice, and one that has kept up since', async () => {
    const { clock, tooSlow, snapshot, handler, from } = await setUp();
    for (let i = 0; i < 3; i += 1) await tooSlow('n1');
    await tooSlow('n2');
    await tooSlow('n2');
    const end = new AbortController();
    const watching = handler.watch(peer('n1'), { from }, new Sink(), { signal: end.signal });
    await clock.advance(0);
    end.abort();
    await watching;
    for (const name of ['n1', 'n2', 'n3']) {
      const { sink, done } = snapshot(name);
      await done;
      expect(sink.bytes).toBeGreaterThan(whole);
    }
  });
});

test('what is no cursor is refused by name', async () => {
  const { handler, from } = await setUp();
  const watch = (cursor: Parameters<typeof handler.watch>[1]) => handler.watch(peer('n1'), cursor, new Sink(), options);
  await expect(watch({ from: undefined })).rejects.toMatchObject({ code: 'log.invalid' });
  await expect(watch({ from: { ...from, digest: 'x' } })).rejects.toMatchObject({ code: 'log.invalid' });
  await expect(watch({ from: { ...from, logId: 'Not An Id' } })).rejects.toMatchObject({ code: 'log.invalid' });
});

test('a proposal that no state could make valid is refused by name', async () => {
  const { handler } = await setUp();
  const change = { key: 'service/default/a', value: '1' };
  const twice = { changes: [change, change], preconditions: [], requestId: '' };
  await expect(handler.propose(peer('n1'), twice, options)).rejects.toMatchObject({ code: 'log.invalid' });
  const badKey = { changes: [{ key: 'a key', value: '1' }], preconditions: [], requestId: '' };
  await expect(handler.propose(peer('n1'), badKey, options)).rejects.toMatchObject({ code: 'log.invalid' });
});

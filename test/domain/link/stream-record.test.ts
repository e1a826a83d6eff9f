import { describe, expect, test } from 'vitest';
import {
  decodeStream,
  encodeStream,
  forgetfulStream,
  memoryIsGone,
  nextStream,
  type StreamRecord,
} from '../../../src/domain/link/stream-record.js';
import { agentFacts } from '../../support/fleet-rig.js';

const claim = { server: 's1', stream: 'x', at: 5, address: '192.0.2.1:1' };
const withJournal = (id: string, counter: bigint) => agentFacts({ journal: { id, counter } });

describe('the record of the current stream', () => {
  test('B2: counts from 1, and keeps the hardware of the first stream that said it', () => {
    const first = nextStream(undefined, { ...claim, agent: undefined });
    const second = nextStream(first, { ...claim, agent: agentFacts({ hardware: 'h1' }) });
    const third = nextStream(second, { ...claim, agent: agentFacts({ hardware: 'h2' }) });
    expect([first, second, third].map(({ epoch, hardware }) => `${epoch} ${hardware}`)).toEqual(['1 undefined', '2 h1', '3 h1']);
  });

  test('A12: what was forgotten stays forgotten, also when the server dies before it has acted on it', () => {
    const first = nextStream(undefined, { ...claim, agent: withJournal('j1', 7n) });
    const second = nextStream(first, { ...claim, agent: withJournal('j1', 3n) });
    const third = nextStream(second, { ...claim, agent: withJournal('j1', 4n) });
    expect([first, second, third].map(({ forgottenBefore }) => forgottenBefore)).toEqual([0n, 2n, 2n]);
  });

  test('is read back as it was written', () => {
    const whole = nextStream(undefined, { ...claim, agent: withJournal('j', 2n ** 60n) });
    const bare = nextStream(whole, { ...claim, agent: agentFacts({ capabilities: new Set() }) });
    for (const record of [whole, bare]) expect(decodeStream(encodeStream(record))).toEqual(record);
    expect(bare.journal).toBeUndefined();
  });

  test('B4: holds what tells its machine from others; of an older agent, or written by an older server, nothing', () => {
    const record = nextStream(undefined, { ...claim, agent: agentFacts({ session: 3, boot: 'b', hardware: 'h' }) });
    expect(record.agent).toEqual({ instance: 'i1', session: 3, boot: 'b', hardware: 'h' });
    expect(nextStream(record, { ...claim, agent: undefined }).agent).toBeUndefined();
    const { agent: _, ...former } = JSON.parse(encodeStream(record));
    expect(decodeStream(JSON.stringify(former))).toEqual({ ...record, agent: undefined });
  });
});

describe('A12: whether the memory is gone', () => {
  const kept: StreamRecord = nextStream(undefined, { ...claim, agent: withJournal('j1', 7n) });
  test.each([
    ['never seen before', undefined, withJournal('j1', 1n), false],
    ['the same, later', kept, withJournal('j1', 8n), false],
    ['the same', kept, withJournal('j1', 7n), false],
    ['an older copy', kept, withJournal('j1', 6n), true],
    ['another file', kept, withJournal('j2', 9n), true],
    ['an agent that keeps none: its deliveries end by their time', kept, undefined, false],
  ])('%s', (_, former, agent, expected) => {
    expect(memoryIsGone(former, agent, undefined)).toBe(expected);
  });

  const restarted = (id: string, counter: bigint) => agentFacts({ instance: 'i2', journal: { id, counter } });
  const heard = { id: 'j1', counter: 20n };
  test.each([
    ['a copy of the time between the stream and its last heartbeat', restarted('j1', 12n), true],
    ['all that a heartbeat has said', restarted('j1', 20n), false],
    ['another file', restarted('j2', 30n), true],
    ['the next stream of the same process, which beats on the former one meanwhile', withJournal('j1', 19n), false],
  ])('heard of by heartbeats: %s', (_, agent, expected) => {
    expect(memoryIsGone(kept, agent, heard)).toBe(expected);
    expect(nextStream(kept, { ...claim, agent }, heard).forgottenBefore).toBe(expected ? 2n : 0n);
  });

  test('shown on a stream itself: whatever comes next begins without a memory', () => {
    const next = nextStream(forgetfulStream(kept), { ...claim, agent: withJournal('j1', 8n) });
    expect([forgetfulStream(kept).forgottenBefore, next.epoch, next.forgottenBefore]).toEqual([2n, 2n, 2n]);
  });
});

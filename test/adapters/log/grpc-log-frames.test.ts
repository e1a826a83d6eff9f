import { describe, expect, test } from 'vitest';
import { SnapshotResponse, WatchResponse } from '../../../src/adapters/generated/holdfast/log/v1/log.js';
import { EntryEncoder, encodeFrame, inMessages, MESSAGE_BYTES } from '../../../src/adapters/log/grpc-log-encoding.js';
import { FrameReader, SnapshotReader } from '../../../src/adapters/log/grpc-log-frames.js';
import { type Change, digest, type Entry, logId, revision, ZERO_DIGEST } from '../../../src/domain/log/model.js';
import { remove, set } from '../../contract/ordered-log.support.js';

const digestAt = (number: number) => digest(number.toString(16).padStart(64, '0'));
const entryAt = (number: number, ...changes: readonly Change[]): Entry => ({
  ...{ version: 1, revision: revision(BigInt(number)), time: 1_700_000_000_000 + number, requestId: undefined },
  ...{ previousDigest: digestAt(number - 1), digest: digestAt(number), changes },
});
const from = { logId: logId('log'), revision: revision(4n), digest: digestAt(4) };
const stream = { head: revision(9n), ageMs: 12.4, requestId: '' };

function messagesOf(entry: Entry, previous = 4n): readonly WatchResponse[] {
  const { parts } = new EntryEncoder(() => true).encode(entry);
  return encodeFrame({ kind: 'entry', previous: revision(previous), entry }, parts, stream).map((bytes) =>
    WatchResponse.decode(bytes),
  );
}

describe('frames', () => {
  test('what is shared and what is of one stream are one message', () => {
    const [message] = messagesOf(entryAt(7, set('a', 'ä'), remove('b')));
    expect(message).toEqual({
      ...{ previous: 4n, revision: 7n, digest: digestAt(7), last: true, bookmark: false, timeMs: 1_700_000_000_007n },
      ...{
        head: 9n,
        ageMs: 12n,
        requestId: '',
        changes: [
          { key: 'a', value: 'ä' },
          { key: 'b', value: undefined },
        ],
      },
    });
  });

  test('E6: an entry of several messages is one when the last has come', () => {
    const changes = Array.from({ length: 7 }, (_, i) => set(`k/${i}`, 'x'.repeat(400 * 1024)));
    const messages = messagesOf(entryAt(7, ...changes));
    expect(messages.map(({ last, changes: { length } }) => [length, last])).toEqual([
      [2, false],
      [2, false],
      [2, false],
      [1, true],
    ]);
    const reader = new FrameReader(from);
    const read = messages.map((message) => reader.take(message));
    expect(read.slice(0, 3)).toEqual([undefined, undefined, undefined]);
    expect(read[3]).toEqual({ kind: 'entry', previous: 4n, entry: { ...entryAt(7, ...changes), previousDigest: digestAt(4) } });
  });

  test('E2: a frame that does not follow on is a gap, whatever it is', () => {
    const reader = new FrameReader(from);
    reader.take(messagesOf(entryAt(7, set('a', '1')))[0] ?? WatchResponse.create());
    const [next] = messagesOf(entryAt(9, set('a', '2')), 8n);
    expect(() => reader.take(next ?? WatchResponse.create())).toThrow(expect.objectContaining({ code: 'log.compacted' }));
    const bookmark = WatchResponse.create({ previous: 6n, revision: 9n, digest: digestAt(9), bookmark: true, last: true });
    expect(() => reader.take(bookmark)).toThrow(expect.objectContaining({ code: 'log.compacted' }));
  });

  test.each([
    ['a key that is none', { changes: [{ key: 'not a key', value: '1' }], digest: ZERO_DIGEST }],
    ['a digest that is none', { digest: 'short' }],
  ])('%s is log.invalid', (_, message) => {
    const reader = new FrameReader(from);
    const whole = WatchResponse.create({ previous: 4n, revision: 5n, last: true, ...message });
    expect(() => reader.take(whole)).toThrow(expect.objectContaining({ code: 'log.invalid' }));
  });

  test('a run of messages: each within the size, one that is larger alone, all of it in order', () => {
    const sizes = [10, MESSAGE_BYTES, 10, MESSAGE_BYTES * 3, MESSAGE_BYTES / 2, MESSAGE_BYTES / 4, MESSAGE_BYTES / 2];
    expect(inMessages(sizes, (size) => size)).toEqual([
      [10],
      [MESSAGE_BYTES],
      [10],
      [MESSAGE_BYTES * 3],
      [MESSAGE_BYTES / 2, MESSAGE_BYTES / 4],
      [MESSAGE_BYTES / 2],
    ]);
    expect(inMessages([], () => 1)).toEqual([]);
  });

  test('what is kept encoded is bounded', () => {
    const encoder = new EntryEncoder(() => true);
    const entries = Array.from({ length: 40 }, (_, i) => entryAt(i + 1, set('a', 'x'.repeat(MESSAGE_BYTES))));
    for (const entry of entries) encoder.encode(entry);
    for (const entry of entries.slice(-10)) encoder.encode(entry);
    expect(encoder.encoded).toBe(40);
    encoder.encode(entryAt(1, set('a', 'x')));
    expect(encoder.encoded).toBe(41);
  });
});

describe('pages of a snapshot', () => {
  const items = [{ key: 'a', value: '1', revision: 3n }];
  const end = { last: true, cursor: { logId: 'log', revision: 4n, digest: digestAt(4) }, timeMs: 5n, count: 1n };

  test.each([
    ['another digest', { ...end, digest: digestAt(1) }],
    ['another count', { ...end, count: 2n, digest: 'c0ffee' }],
  ])('E6: %s: it is no snapshot', (_, last) => {
    const reader = new SnapshotReader();
    expect(reader.take(SnapshotResponse.create({ items }))).toBeUndefined();
    expect(() => reader.take(SnapshotResponse.create(last))).toThrow(expect.objectContaining({ code: 'log.corrupt' }));
  });
});

import { describe, expect, test } from 'vitest';
import { readStats } from '../../../src/adapters/dataplane/stats-rows.js';
import { addressOfWords, encodeTableDelta } from '../../../src/adapters/dataplane/table-codec.js';
import { address, endpoint, listener } from '../../support/listeners.js';

/** The same bytes as kGood in native/test/table_codec_test.cc, which expects the decoder to read them. */
const good = Uint8Array.from([
  ...[72, 70, 84, 68, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],
  ...[7, 0, 0, 0],
  ...[1, 0, 0, 0, 4, 0, 2, 1, 2, 0, 80, 0, 0x30, 0x75, 0, 0, 0xb8, 0x0b, 0, 0],
  ...[0x80, 0xcb, 0xa4, 0, 0x60, 0xea, 0, 0, 0xe8, 3, 0, 0],
  ...[2, 0, 0, 0, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  ...[4, 3, 0, 0, 0x90, 0x1f, 0, 0, 10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  ...[6, 1, 1, 0, 81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
]);

describe('encodeTableDelta', () => {
  test('writes what the native side reads', () => {
    const endpoints = [endpoint(8080, 3, address('10.0.0.2')), endpoint(81, 1, address('::1'), 1)];
    const spec = listener('a/b/c', endpoints, {
      ...{ address: address('10.0.0.1'), listenPort: 80, algorithm: 'least-connections', acceptProxy: true, sendProxy: 2 },
      ...{ drainMs: 30_000, affinityMs: 10_800_000, idleMs: 60_000, maxConnections: 1_000 },
    });
    expect(encodeTableDelta([7], [{ number: 1, spec }])).toEqual(good);
  });

  test('a refusal is one byte of it', () => {
    const spec = listener('a/b/c', []);
    const [serving, refusing] = [spec, { ...spec, refuse: true }].map((each) =>
      encodeTableDelta([], [{ number: 1, spec: each }]),
    );
    const differing = [...(serving ?? [])].flatMap((byte, at) => (byte === refusing?.[at] ? [] : [[at, byte, refusing?.[at]]]));
    expect(differing).toEqual([[25, 0, 1]]);
  });

  test('refuses more endpoints than can be counted', () => {
    const spec = listener(
      'a/b/c',
      Array.from({ length: 65_536 }, () => endpoint(1)),
    );
    expect(() => encodeTableDelta([], [{ number: 1, spec }])).toThrow('a/b/c has 65536 endpoints, at most 65535 are possible');
  });
});

test.each([
  [4, [0x0a00_00ff, 0, 0, 0], '10.0.0.255'],
  [6, [0xfd00_0000, 0, 0, 1], 'fd00::1'],
  [6, [0, 0, 0xffff, 0x0a00_0001], '::ffff:10.0.0.1'],
])('words of family %i: %j', (family, words, text) => {
  expect(addressOfWords(family, words)).toBe(text);
});

test('rows of counters', () => {
  const rows = Float64Array.from([
    ...[9, 1, 2, 3, 4, 5, 6, 7, 8, 10, 21, 22, 23],
    // With times, two endpoints.
    ...[1, 2, ...[5, 0, 1, 2_500_000], ...[4, 2, 1_000_000]],
    ...[4, 0x7f00_0001, 0, 0, 0, 80, 11, 12, 1, 4, 0x7f00_0001, 0, 0, 0, 81, 0, 0, 2],
    ...[8, ...Array(14).fill(0)],
  ]);
  expect(readStats(rows, { dial: [0.1, 1], connection: [60] })).toEqual([
    {
      number: 9,
      ...{ active: 1, completed: 2, failed: 3, refused: 4, reset: 5, drained: 6, bytesIn: 7, bytesOut: 8, dialFailures: 10 },
      ...{ limited: 21, evicted: 22, dropped: 23 },
      times: {
        dial: { bounds: [0.1, 1], counts: [5, 0, 1], sum: 2.5 },
        connection: { bounds: [60], counts: [4, 2], sum: 1 },
      },
      endpoints: [
        { address: '127.0.0.1', port: 80, active: 11, total: 12, draining: true, ejected: false },
        { address: '127.0.0.1', port: 81, active: 0, total: 0, draining: false, ejected: true },
      ],
    },
    {
      number: 8,
      ...{ active: 0, completed: 0, failed: 0, refused: 0, reset: 0, drained: 0, bytesIn: 0, bytesOut: 0, dialFailures: 0 },
      ...{ limited: 0, evicted: 0, dropped: 0 },
      endpoints: [],
    },
  ]);
});

import { expect, test } from 'vitest';
import { encodeZoneDelta } from '../../../src/adapters/dns/zone-codec.js';

/** What native/test/dns_codec_test.cc reads. */
const good = [
  ...Buffer.from('HFDN'),
  ...[1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],
  ...[1, 0x7a, 0, 1, 0x7a, 0, 1, 0x68, 1, 0x7a, 0],
  ...[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 0],
  ...[3, 0, ...Buffer.from('a/b')],
  ...[3, 0, ...Buffer.from('a/c'), 1, 0],
  ...[1, 0x63, 1, 0x7a, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 16, 0],
  ...[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 192, 0, 2, 1],
];

test('a delta byte by byte', () => {
  const body = Uint8Array.of(0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 192, 0, 2, 1);
  const numbers = { refresh: 1, retry: 2, expire: 3, ttl: 5, isReverse: false };
  const bytes = encodeZoneDelta({
    serial: 9,
    apexes: [{ name: ['z'], server: ['z'], mailbox: ['h', 'z'], ...numbers }],
    remove: ['a/b'],
    upsert: [{ id: 'a/c', names: [{ name: ['c', 'z'], answers: [{ type: 1, answers: 1, authority: 0, additional: 0, body }] }] }],
  });
  expect([...bytes]).toEqual(good);
});

test('a delta of 10,000 groups, and one without apexes', () => {
  const upsert = Array.from({ length: 10_000 }, (_, index) => ({
    id: `a/${index}`,
    names: [{ name: [`n${index}`], answers: [] }],
  }));
  const bytes = encodeZoneDelta({ serial: 1, remove: [], upsert });
  expect(Buffer.from(bytes).readUInt32LE(12)).toBe(0xffff_ffff);
  expect(bytes.length).toBeGreaterThan(150_000);
});

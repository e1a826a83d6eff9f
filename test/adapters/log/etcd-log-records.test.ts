import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  decodeApplied,
  decodeEntry,
  decodeHead,
  decodeValue,
  EtcdLogKeys,
  encodeApplied,
  encodeEntry,
  encodeHead,
  encodeValue,
  recordOf,
  summaryOf,
} from '../../../src/adapters/log/etcd-log-records.js';
import { sha256 } from '../../../src/adapters/log/sha256.js';
import { nextEntry } from '../../../src/domain/log/entry.js';
import { logId, logKey, revision, ZERO_REVISION } from '../../../src/domain/log/model.js';
import { EMPTY_HEAD } from '../../../src/domain/log/state.js';

const keys = new EtcdLogKeys('/holdfast/blue/log/');
const number = fc.bigInt({ min: 0n, max: 10n ** 19n }).map(revision);
const text = fc.string({ unit: 'binary' }).map((value) => value.toWellFormed());
const record = nextEntry(EMPTY_HEAD, { changes: [{ key: logKey('a'), value: 'line\nline' }], requestId: 'r"1' }, 5, sha256);

test('entries sort by revision, whatever its length', () => {
  fc.assert(fc.property(number, number, (one, other) => keys.entry(one) < keys.entry(other) === one < other));
});

test('each part stands apart from the others', () => {
  const all = [keys.head, keys.applied, keys.entry(1n), keys.value(logKey('head')), keys.chunk('s', 3)];
  expect(all).toEqual([
    '/holdfast/blue/log/head',
    '/holdfast/blue/log/applied',
    '/holdfast/blue/log/entry/00000000000000000001',
    '/holdfast/blue/log/kv/head',
    '/holdfast/blue/log/stage/s/0003',
  ]);
});

test('law: what is written is read back', () => {
  fc.assert(
    fc.property(number, number, fc.nat(), text, (at, minimum, changes, value) => {
      const head = { logId: logId('log-1'), last: { revision: at, digest: sha256(value), time: changes }, minimum };
      expect(decodeHead(encodeHead(head))).toEqual(head);
      expect(decodeApplied(encodeApplied({ revision: at, changes }))).toEqual({ revision: at, changes });
      expect(decodeValue('a/b', encodeValue(at, value))).toEqual({ key: 'a/b', value, revision: at });
      expect(decodeEntry(encodeEntry({ batch: 'b', text: value }))).toEqual({ batch: 'b', text: value });
    }),
  );
});

test('a staged entry says without its text what an inline one says with it', () => {
  const { entry, text, size } = record;
  const { version, revision, time, previousDigest, requestId } = entry;
  const facts = { version, revision, time, previousDigest, requestId, changes: 1 };
  const staged = { batch: 'b', stage: { id: 'b-1', chunks: 1, digest: entry.digest, size, facts } };
  expect(decodeEntry(encodeEntry(staged))).toEqual(staged);
  const summary = summaryOf({ batch: 'b', text }, revision);
  expect(summaryOf(staged, revision)).toMatchObject(summary);
  expect(recordOf(text, revision)).toEqual(record);
});

test.each<{ what: string; read: () => unknown; code: string }>([
  { what: 'a head that is no JSON', read: () => decodeHead('[1,'), code: 'log.corrupt' },
  { what: 'a head with another digest than a digest', read: () => decodeHead('[1,"x","1","00",0,"1"]'), code: 'log.corrupt' },
  { what: 'a head of a newer version', read: () => decodeHead('[2,"x"]'), code: 'log.newer_schema' },
  { what: 'an applied record below zero', read: () => decodeApplied('["1",-1]'), code: 'log.corrupt' },
  { what: 'a value without a revision', read: () => decodeValue('a', 'value'), code: 'log.corrupt' },
  { what: 'an entry of no kind', read: () => decodeEntry('xb\n'), code: 'log.corrupt' },
  { what: 'an entry without a batch', read: () => decodeEntry('i'), code: 'log.corrupt' },
  { what: 'a reference that is none', read: () => decodeEntry('sb\n{}'), code: 'log.corrupt' },
  { what: 'an entry at the place of another', read: () => recordOf(record.text, ZERO_REVISION), code: 'log.corrupt' },
  {
    what: 'a summary at the place of another',
    read: () => summaryOf({ batch: '', text: record.text }, ZERO_REVISION),
    code: 'log.corrupt',
  },
])('$what is refused', ({ read, code }) => {
  expect(read).toThrow(expect.objectContaining({ code }));
});

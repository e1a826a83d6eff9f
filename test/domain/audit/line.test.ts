import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CHAIN_BEGIN, type LineContent, MAX_LINE_BYTES, nextLine, parseLine } from '../../../src/domain/audit/line.js';
import type { AuditRecord } from '../../../src/domain/audit/model.js';

const sha256 = (text: string) => hash('sha256', text, 'hex');
const digest = 'd'.repeat(64);
const record: AuditRecord = {
  who: 'server:s1 epoch 7',
  tag: 't-1',
  type: 'RUN_WEB_REQUEST',
  payloadDigest: 'a'.repeat(64),
  rule: 'default',
  line: 'decision',
  result: 'allowed',
};

describe('H1: one JSON line', () => {
  test.each<{ content: LineContent; text: string }>([
    {
      content: record,
      text: `{"seq":1,"time":1000,"offset":12,"line":"decision","who":"server:s1 epoch 7","tag":"t-1","type":"RUN_WEB_REQUEST","payload":"${'a'.repeat(64)}","rule":"default","result":"allowed","prev":"${'0'.repeat(64)}"}`,
    },
    {
      content: { line: 'rotated', file: 'audit-7.log', last: 7n, digest },
      text: `{"seq":1,"time":1000,"offset":12,"line":"rotated","file":"audit-7.log","last":7,"digest":"${digest}","prev":"${'0'.repeat(64)}"}`,
    },
    {
      content: { line: 'recovered', file: 'audit.torn-x', bytes: 42, digest },
      text: `{"seq":1,"time":1000,"offset":12,"line":"recovered","file":"audit.torn-x","bytes":42,"digest":"${digest}","prev":"${'0'.repeat(64)}"}`,
    },
    {
      content: { line: 'pruned', to: 9n, digest },
      text: `{"seq":1,"time":1000,"offset":12,"line":"pruned","to":9,"digest":"${digest}","prev":"${'0'.repeat(64)}"}`,
    },
  ])('$content.line', ({ content, text }) => {
    const next = nextLine(CHAIN_BEGIN, content, { now: 1000.9, offset: 12.7 }, sha256);
    expect(next).toEqual({ text, end: { sequence: 1n, time: 1000, digest: sha256(text) } });
    expect(parseLine(text)).toEqual({ sequence: 1n, time: 1000, offset: 12, content, previous: '0'.repeat(64) });
  });

  test('each line carries the digest of the bytes of the one before', () => {
    const first = nextLine(CHAIN_BEGIN, { ...record, tag: 'grüße' }, { now: 5, offset: 0 }, sha256);
    const second = nextLine(first.end, record, { now: 6, offset: 1 }, sha256);
    expect(first.end.digest).toBe(hash('sha256', Buffer.from(first.text, 'utf8'), 'hex'));
    expect(parseLine(second.text)).toMatchObject({ sequence: 2n, previous: first.end.digest });
  });

  test('log time never goes back; the offset tells', () => {
    const later = nextLine({ ...CHAIN_BEGIN, time: 2000 }, record, { now: 1000, offset: 3 }, sha256);
    expect(parseLine(later.text)).toMatchObject({ time: 2000, offset: 3 });
  });

  test('whatever others send, a line stays one line and below its limit', () => {
    const hostile = fc.oneof(fc.string({ unit: 'binary', maxLength: 700 }), fc.constant('\u0000\n\u2028'.repeat(9_999)));
    fc.assert(
      fc.property(hostile, hostile, (type, result) => {
        const { text } = nextLine(
          CHAIN_BEGIN,
          { ...record, who: type, tag: type, type, rule: type, result },
          { now: 1, offset: 1 },
          sha256,
        );
        expect(text).not.toContain('\n');
        expect(Buffer.byteLength(text)).toBeLessThan(MAX_LINE_BYTES);
        expect(parseLine(text)?.content).toMatchObject({
          line: 'decision',
          type: type.length > 512 ? expect.stringMatching(/characters\)$/) : type,
        });
      }),
      { numRuns: 200 },
    );
  });
});

describe('what is no line', () => {
  const good = nextLine(CHAIN_BEGIN, record, { now: 1, offset: 1 }, sha256).text;
  test.each([
    '',
    '{',
    'null',
    '[]',
    '7',
    '"x"',
    '\u0000\u0000\u0000',
    good.slice(0, -1),
    good.replace('"seq":1', '"seq":0'),
    good.replace('"seq":1', '"seq":-1'),
    good.replace('"seq":1', '"seq":1.5'),
    good.replace('"seq":1', '"seq":1e99'),
    good.replace('"seq":1', '"seq":"1"'),
    good.replace('"time":1', '"time":null'),
    good.replace('"offset":1', '"offset":-1'),
    good.replace('"decision"', '"verdict"'),
    good.replace('"rule":"default"', '"rule":5'),
    good.replace('"prev":"0', '"prev":"g'),
    good.replace('"prev":"0', '"prev":"'),
    `{"seq":1,"time":1,"offset":1,"line":"pruned","to":-1,"digest":"${digest}","prev":"${digest}"}`,
    `{"seq":1,"time":1,"offset":1,"line":"rotated","file":"x","digest":"${digest}","prev":"${digest}"}`,
    `{"seq":1,"time":1,"offset":1,"line":"recovered","file":"x","bytes":1,"prev":"${digest}"}`,
  ])('%j', (text) => {
    expect(parseLine(text)).toBeUndefined();
  });
});

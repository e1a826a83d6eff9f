import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { beginCheck, type ChainReport, checkLine, endCheck, type FoundLine } from '../../../src/domain/audit/chain.js';
import { CHAIN_BEGIN, type ChainEnd, type LineContent, nextLine } from '../../../src/domain/audit/line.js';
import type { AuditHead } from '../../../src/domain/audit/model.js';

const sha256 = (text: string) => hash('sha256', text, 'hex');

const decision = (tag: string): LineContent => ({
  who: 'local:0',
  tag,
  type: 'X',
  payloadDigest: 'a'.repeat(64),
  rule: 'r',
  line: 'decision',
  result: 'allowed',
});

interface Written {
  readonly texts: readonly string[];
  readonly ends: readonly ChainEnd[];
}

function write(contents: readonly (LineContent | ((end: ChainEnd) => LineContent))[], from: ChainEnd = CHAIN_BEGIN): Written {
  const texts: string[] = [];
  const ends: ChainEnd[] = [];
  for (const content of contents) {
    const end = ends.at(-1) ?? from;
    const next = nextLine(end, typeof content === 'function' ? content(end) : content, { now: 1, offset: 1 }, sha256);
    texts.push(next.text);
    ends.push(next.end);
  }
  return { texts, ends };
}

const tenOf = (from = CHAIN_BEGIN) =>
  write(
    Array.from({ length: 10 }, (_, i) => decision(`t${i + 1}`)),
    from,
  );
const ten = tenOf();

function check(texts: readonly string[], known?: AuditHead, file = 'audit.log'): ChainReport {
  const lines = texts.map((text, i): FoundLine => ({ file, number: i + 1, text, digest: sha256(text) }));
  return endCheck(lines.reduce(checkLine, beginCheck(known)));
}

/** `kind file:number sequence: problem`, or `whole`. */
function breakOf(report: ChainReport): string {
  const { break: found } = report;
  return found === undefined ? 'whole' : `${found.kind} ${found.file}:${found.number} ${found.sequence}: ${found.problem}`;
}

const without = (index: number) => ten.texts.filter((_, i) => i !== index);
const replaced = (index: number, from: string, to: string) =>
  ten.texts.map((text, i) => (i === index ? text.replace(from, to) : text));
const swapped = (a: number, b: number) => ten.texts.map((text, i) => ten.texts[i === a ? b : i === b ? a : i] ?? text);

describe('the chain', () => {
  test('that is whole', () => {
    expect(check(ten.texts)).toEqual({
      lines: 10,
      first: 1n,
      head: { sequence: 10n, digest: ten.ends[9]?.digest },
      anchor: undefined,
      recovered: 0,
      knownMet: false,
      break: undefined,
    });
  });

  test('of nothing', () => {
    expect(check([])).toMatchObject({ lines: 0, first: undefined, head: undefined, break: undefined });
  });

  test.each<[string, readonly string[], string]>([
    ['a tampered value', replaced(4, '"allowed"', '"denied"'), 'changed audit.log:5 5: line 5 is not as line 6 knows it'],
    ['a tampered digest of the payload', replaced(0, 'aaaa', 'aaab'), 'changed audit.log:1 1: line 1 is not as line 2 knows it'],
    ['a space more', replaced(4, ',', ', '), 'changed audit.log:5 5: line 5 is not as line 6 knows it'],
    ['a tampered number, up', replaced(4, '"seq":5', '"seq":7'), 'missing audit.log:5 5: lines 5 to 6 are missing before line 7'],
    [
      'a tampered number, down',
      replaced(4, '"seq":5', '"seq":3'),
      'out_of_order audit.log:5 5: line 3 stands where line 5 belongs',
    ],
    ['a tampered prev', replaced(4, '"prev":"', '"prev":"0'), 'unreadable audit.log:5 5: this is no line of an audit log'],
    ['a line that is none', replaced(4, '{', '('), 'unreadable audit.log:5 5: this is no line of an audit log'],
    ['a line that is empty', ten.texts.with(4, ''), 'unreadable audit.log:5 5: this is no line of an audit log'],
    ['an empty line more', ten.texts.toSpliced(4, 0, ''), 'unreadable audit.log:5 5: this is no line of an audit log'],
    ['a deleted line', without(4), 'missing audit.log:5 5: line 5 is missing before line 6'],
    ['three deleted lines', ten.texts.toSpliced(2, 3), 'missing audit.log:3 3: lines 3 to 5 are missing before line 6'],
    [
      'a deleted first line',
      without(0),
      'beginning audit.log:0 1: lines 1 to 1 are gone, and no line says that they were pruned',
    ],
    ['swapped neighbours', swapped(4, 5), 'out_of_order audit.log:5 5: line 5 stands behind later ones'],
    ['swapped lines further apart', swapped(2, 8), 'out_of_order audit.log:3 3: line 3 stands behind later ones'],
    ['a swap of the first two', swapped(0, 1), 'out_of_order audit.log:2 3: line 1 stands where line 3 belongs'],
    [
      'a line twice',
      ten.texts.toSpliced(4, 0, ten.texts[4] ?? ''),
      'out_of_order audit.log:6 6: line 5 stands where line 6 belongs',
    ],
    [
      'the same numbers from another log',
      [...ten.texts.slice(0, 4), ...other().slice(4)],
      'changed audit.log:4 4: line 4 is not as line 5 knows it',
    ],
    [
      'a beginning after another line',
      write([decision('x')], { ...CHAIN_BEGIN, digest: 'b'.repeat(64) }).texts,
      'beginning audit.log:1 1: line 1 follows another line',
    ],
  ])('%s is found and named', (_, texts, found) => {
    expect(breakOf(check(texts))).toBe(found);
  });

  test('what stands behind a break is counted, and is not the head', () => {
    expect(check(without(4))).toMatchObject({ lines: 9, head: { sequence: 4n } });
  });

  test('the digest is that of the bytes: what is no UTF-8 looks alike and is not', () => {
    const [first, ...rest] = ten.texts.map((text, i): FoundLine => ({ file: 'f', number: i + 1, text, digest: sha256(text) }));
    if (first === undefined) throw new Error('no line');
    const report = endCheck([{ ...first, digest: 'e'.repeat(64) }, ...rest].reduce(checkLine, beginCheck(undefined)));
    expect(breakOf(report)).toBe('changed f:1 1: line 1 is not as line 2 knows it');
  });

  test('law: whichever byte is changed, line taken or pair exchanged, a break is found no later than the line after', () => {
    const whole = ten.texts.join('\n');
    const byte = fc.record({ at: fc.nat({ max: whole.length - 1 }), by: fc.integer({ min: 33, max: 126 }) });
    const known = ten.ends[9];
    fc.assert(
      fc.property(byte, ({ at, by }) => {
        const changed = `${whole.slice(0, at)}${String.fromCharCode(by)}${whole.slice(at + 1)}`;
        const report = check(changed.split('\n'), known);
        if (changed === whole) expect(report.break).toBeUndefined();
        else expect(Number(report.break?.number)).toBeLessThanOrEqual(whole.slice(0, at).split('\n').length + 1);
      }),
      { numRuns: 500 },
    );
    for (let i = 0; i < 10; i++) {
      expect(check(without(i), known).break).toBeDefined();
      for (let j = 0; j < i; j++) expect(check(swapped(i, j), known).break).toBeDefined();
    }
  });
});

function other(): readonly string[] {
  return write(Array.from({ length: 10 }, (_, i) => decision(`other${i}`))).texts;
}

describe('H2: a head that is known elsewhere', () => {
  const head = (index: number): AuditHead => ({
    sequence: ten.ends[index]?.sequence ?? 0n,
    digest: ten.ends[index]?.digest ?? '',
  });

  test('that is met, as the last line or an earlier one', () => {
    expect(check(ten.texts, head(9))).toMatchObject({ knownMet: true, break: undefined });
    expect(check(ten.texts, head(3))).toMatchObject({ knownMet: true, break: undefined });
  });

  test.each<[string, readonly string[], AuditHead, string]>([
    [
      'a cut tail',
      ten.texts.slice(0, 7),
      head(9),
      'cut audit.log:7 8: lines 8 to 10, which are known to have been there, are gone',
    ],
    ['everything gone', [], head(9), 'cut :0 1: lines 1 to 10, which are known to have been there, are gone'],
    [
      'a changed last line',
      replaced(9, '"allowed"', '"denied"'),
      head(9),
      'other_head audit.log:10 10: line 10 is not the one that is known',
    ],
    ['another log that is longer', [...other()], head(4), 'other_head audit.log:5 5: line 5 is not the one that is known'],
  ])('%s is found and named', (_, texts, known, found) => {
    expect(breakOf(check(texts, known))).toBe(found);
  });
});

describe('H3: pruned files', () => {
  const former = ten.ends[9] ?? CHAIN_BEGIN;
  const rotated: LineContent = { line: 'rotated', file: 'audit-10.log', last: former.sequence, digest: former.digest };
  const after = (pruned: LineContent) => write([rotated, decision('a'), pruned, decision('b')], former).texts;
  const prunedTo = (to: bigint, digest: string): LineContent => ({ line: 'pruned', to, digest });

  test('the check begins at what was pruned, and says so', () => {
    const report = check(after(prunedTo(10n, former.digest)));
    expect(report).toMatchObject({ first: 11n, anchor: { sequence: 10n, digest: former.digest }, break: undefined, lines: 4 });
  });

  test('a line that says so while the files are still there does no harm', () => {
    expect(check([...ten.texts, ...after(prunedTo(10n, former.digest))])).toMatchObject({ anchor: undefined, break: undefined });
    expect(check(after(prunedTo(12n, 'c'.repeat(64)))).break).toBeUndefined();
  });

  test.each<[string, LineContent, string]>([
    [
      'nothing says that they went',
      decision('x'),
      'beginning audit.log:0 1: lines 1 to 10 are gone, and no line says that they were pruned',
    ],
    [
      'more went than was pruned',
      prunedTo(6n, 'c'.repeat(64)),
      'beginning audit.log:0 7: lines 7 to 10 are gone, and no line says that they were pruned',
    ],
    [
      'another line was pruned',
      prunedTo(10n, 'c'.repeat(64)),
      'beginning audit.log:0 10: line 10 was pruned as another than line 11 knows it',
    ],
  ])('%s', (_, content, found) => {
    expect(breakOf(check(after(content)))).toBe(found);
  });

  test('a known head that was pruned is not met, and no break; unless it is the one before the first line', () => {
    const texts = after(prunedTo(10n, former.digest));
    expect(check(texts, { sequence: 3n, digest: 'x' })).toMatchObject({ knownMet: false, break: undefined });
    expect(check(texts, former)).toMatchObject({ break: undefined });
    expect(breakOf(check(texts, { sequence: 10n, digest: 'x' }))).toBe(
      'other_head audit.log:4 10: line 10 is not the one that is known',
    );
  });

  test('ends that crashes tore off are counted', () => {
    const torn = (end: ChainEnd): LineContent => ({ line: 'recovered', file: 'audit.torn-x', bytes: 3, digest: end.digest });
    expect(check(write([decision('a'), torn, decision('b'), torn]).texts)).toMatchObject({ recovered: 2, break: undefined });
  });
});

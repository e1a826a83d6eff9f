import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { entryTime, nextEntry, parseEntry, readEntryFacts } from '../../../src/domain/log/entry.js';
import { ZERO_DIGEST, ZERO_REVISION } from '../../../src/domain/log/model.js';
import { remove, set, sha256, someProposal } from './support.js';

const beginning = { revision: ZERO_REVISION, digest: ZERO_DIGEST, time: 0 };
const code = (name: string) => expect.objectContaining({ code: name });

describe('an entry', () => {
  test('has one canonical text', () => {
    const content = { changes: [set('a/b', '{"x":"é"}'), remove('c')], requestId: 'r"1' };
    const { entry, text } = nextEntry(beginning, content, 1234.9, sha256);
    expect(text).toBe(`[1,"1",1234,"${ZERO_DIGEST}",2,"r\\"1",[["a/b","{\\"x\\":\\"é\\"}"],["c",null]]]`);
    expect(entry).toMatchObject({ version: 1, revision: 1n, time: 1234, digest: sha256(text), requestId: 'r"1' });
  });

  test('law: parsing its text gives it back, and its facts are those of the whole', () => {
    fc.assert(
      fc.property(someProposal, fc.nat(), ({ changes, requestId }, now) => {
        const first = nextEntry(beginning, { changes: [set('x', '1')], requestId: undefined }, 5, sha256).entry;
        const { entry, text } = nextEntry(first, { changes, requestId }, now, sha256);
        expect(parseEntry(text, entry.digest)).toEqual(entry);
        const { version, revision, time, previousDigest } = entry;
        expect(readEntryFacts(text)).toEqual({ version, revision, time, previousDigest, requestId, changes: changes.length });
      }),
    );
  });

  test.each([
    { name: 'forward', now: 20, previous: 10, time: 20 },
    { name: 'still', now: 10, previous: 10, time: 10 },
    { name: 'back', now: 5, previous: 10, time: 10 },
  ])('a clock that goes $name', ({ now, previous, time }) => expect(entryTime(now, previous)).toBe(time));

  const { text, entry } = nextEntry(beginning, { changes: [set('a', '1')], requestId: undefined }, 1, sha256);
  test.each([
    { name: 'of a newer version', text: text.replace('[1,', '[2,'), failure: 'log.newer_schema' },
    { name: 'that ends early', text: text.slice(0, -3), failure: 'log.corrupt' },
    { name: 'with another number of changes', text: text.replace(',1,null', ',2,null'), failure: 'log.corrupt' },
    { name: 'with a number for a value', text: text.replace('"a","1"', '"a",1'), failure: 'log.corrupt' },
    { name: 'of something else', text: '{}', failure: 'log.corrupt' },
  ])('a text $name is refused', ({ text, failure }) => expect(() => parseEntry(text, entry.digest)).toThrow(code(failure)));
});

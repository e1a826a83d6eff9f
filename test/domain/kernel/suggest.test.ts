import { describe, expect, test } from 'vitest';
import { closest } from '../../../src/domain/kernel/suggest.js';

const known = ['nodeName', 'logLevel', 'readyTimeout', 'vip', 'metrics', 'dataplane', 'labels'];

describe('closest', () => {
  test.each<{ name: string; word: string; meant: string | undefined }>([
    { name: 'one letter too few', word: 'logLevl', meant: 'logLevel' },
    { name: 'one letter too many', word: 'metricss', meant: 'metrics' },
    { name: 'another letter', word: 'lagLevel', meant: 'logLevel' },
    { name: 'neighbours swapped', word: 'nodeNmae', meant: 'nodeName' },
    { name: 'another case', word: 'NODENAME', meant: 'nodeName' },
    { name: 'the singular', word: 'label', meant: 'labels' },
    { name: 'two edits', word: 'dataplan', meant: 'dataplane' },
    { name: 'a short name, one edit', word: 'vips', meant: 'vip' },
    { name: 'a short name, two edits', word: 'dip2', meant: undefined },
    { name: 'another word', word: 'timeout', meant: undefined },
    { name: 'nothing', word: '', meant: undefined },
    { name: 'very long', word: 'x'.repeat(1_000_000), meant: undefined },
  ])('$name', ({ word, meant }) => {
    expect(closest(word, known)).toBe(meant);
  });

  test('the nearest wins, the first among equals', () => {
    expect(closest('abcd', ['abxx', 'abcx', 'abxd'])).toBe('abcx');
    expect(closest('abcd', [])).toBeUndefined();
  });
});

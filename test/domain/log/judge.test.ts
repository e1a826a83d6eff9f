import { describe, expect, test } from 'vitest';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { type JudgedView, type Judgement, judge, type KeyState, proposalBytes } from '../../../src/domain/log/judge.js';
import { type LogKey, logKey, type Proposal, revision } from '../../../src/domain/log/model.js';
import { at, proposal, remove, set } from './support.js';

/** At revision 7: a = 1 since 3, b = 2 since 7; request `done` was answered with 5. */
const view: JudgedView = {
  revision: revision(7n),
  get: (key: LogKey) =>
    new Map<LogKey, KeyState>([
      [logKey('a'), { value: '1', revision: revision(3n) }],
      [logKey('b'), { value: '2', revision: revision(7n) }],
    ]).get(key),
  answered: (requestId) => (requestId === 'done' ? revision(5n) : undefined),
};

const append = (...changes: Proposal['changes'][number][]): Judgement => ({ verdict: 'append', changes });
const conflict = (key: string, expected: bigint, actual: bigint): Judgement => ({
  verdict: 'answer',
  result: { outcome: 'conflict', key: logKey(key), expected: revision(expected), actual: revision(actual) },
});
const unchanged: Judgement = { verdict: 'answer', result: { outcome: 'unchanged', revision: revision(7n) } };
const repeated: Judgement = { verdict: 'answer', result: { outcome: 'committed', revision: revision(5n) } };

describe('judge', () => {
  test.each<{ name: string; proposal: Proposal; judgement: Judgement }>([
    { name: 'a new key', proposal: proposal(set('c', '1')), judgement: append(set('c', '1')) },
    { name: 'another value', proposal: proposal(set('a', '2')), judgement: append(set('a', '2')) },
    { name: 'the same value', proposal: proposal(set('a', '1')), judgement: unchanged },
    { name: 'a removal', proposal: proposal(remove('a')), judgement: append(remove('a')) },
    { name: 'the removal of what is absent', proposal: proposal(remove('c')), judgement: unchanged },
    { name: 'nothing', proposal: proposal(), judgement: unchanged },
    {
      name: 'some of each: what changes nothing is dropped',
      proposal: proposal(set('a', '1'), set('c', '3'), remove('d'), remove('b')),
      judgement: append(set('c', '3'), remove('b')),
    },
    {
      name: 'preconditions that hold, on keys that are changed or not',
      proposal: { changes: [set('a', '2')], preconditions: [at('a', 3n), at('b', 7n), at('c', 0n)] },
      judgement: append(set('a', '2')),
    },
    {
      name: 'absence, but it is there',
      proposal: { changes: [], preconditions: [at('a', 0n)] },
      judgement: conflict('a', 0n, 3n),
    },
    {
      name: 'presence, but it is absent',
      proposal: { changes: [], preconditions: [at('c', 2n)] },
      judgement: conflict('c', 2n, 0n),
    },
    {
      name: 'the first of several that do not hold is named',
      proposal: { changes: [], preconditions: [at('a', 3n), at('b', 3n), at('c', 3n)] },
      judgement: conflict('b', 3n, 7n),
    },
    {
      name: 'a conflict comes before "unchanged"',
      proposal: { changes: [set('a', '1')], preconditions: [at('a', 2n)] },
      judgement: conflict('a', 2n, 3n),
    },
    {
      name: 'a repeated request comes before its preconditions',
      proposal: { changes: [set('a', '9')], preconditions: [at('a', 2n)], requestId: 'done' },
      judgement: repeated,
    },
    { name: 'a new request', proposal: { ...proposal(set('a', '9')), requestId: 'new' }, judgement: append(set('a', '9')) },
  ])('$name', ({ proposal, judgement }) => expect(judge(proposal, view)).toEqual(judgement));

  test('limits are named with their numbers', () => {
    const changes = Array.from({ length: 200_001 }, (_, i) => set(`k/${i}`, '1'));
    const tooMany = () => judge({ changes, preconditions: [] }, view);
    expect(tooMany).toThrow(new AgentError('log.too_large', { problem: '200001 changes, at most 200000 are taken at once' }));
    expect(judge({ changes: changes.slice(1), preconditions: [] }, view)).toMatchObject({ verdict: 'append' });
    const big = 'x'.repeat(128 * 1024 * 1024);
    expect(() => judge(proposal(set('a', big), set('b', big)), view)).toThrow(
      '268435458 bytes, at most 268435456 are taken at once',
    );
    expect(judge(proposal(set('a', big), set('b', big.slice(2))), view)).toMatchObject({ verdict: 'append' });
  });

  test('bytes are those of UTF-8 where it could matter', () => {
    const euros = '€'.repeat(86 * 1024 * 1024);
    expect(proposalBytes([set('a', euros), set('b', '😀é')])).toBe(3 * 86 * 1024 * 1024 + 1 + 1 + 6);
    expect(() => judge(proposal(set('a', euros)), view)).toThrow('log.too_large');
  });

  test.each([
    { name: 'a key twice', changes: [set('c', '1'), remove('c')] },
    { name: 'half of a surrogate pair', changes: [set('c', '"\ud83d"')] },
  ])('$name is refused as a mistake of the caller', ({ changes }) =>
    expect(() => judge(proposal(...changes), view)).toThrow(RangeError),
  );
});

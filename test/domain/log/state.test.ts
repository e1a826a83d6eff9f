import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Draft } from '../../../src/domain/log/draft.js';
import type { EntryRecord } from '../../../src/domain/log/entry.js';
import { type Entry, logId, type Proposal, type ProposeResult, ZERO_DIGEST } from '../../../src/domain/log/model.js';
import { LogState, retainedEntry } from '../../../src/domain/log/state.js';
import { at, emptyLog, proposal, remove, set, sha256, someProposal } from './support.js';

/** Drafts `proposals` together and appends what came of it. */
function run(
  state: LogState,
  proposals: readonly Proposal[],
  now = 0,
): { results: ProposeResult[]; records: readonly EntryRecord[] } {
  const draft = new Draft(state, sha256);
  const results = proposals.map((each) => draft.propose(each, { now, others: undefined }));
  state.append(draft.records, state.minimumAfter(draft.records), 0);
  return { results, records: draft.records };
}

const some = fc.array(someProposal, { maxLength: 12 });

describe('a draft', () => {
  test('each proposal sees what its predecessor left', () => {
    const { results } = run(emptyLog(), [
      { changes: [set('a', '1')], preconditions: [at('a', 0n)], requestId: 'r' },
      { changes: [set('a', '2')], preconditions: [at('a', 0n)] },
      { changes: [remove('a')], preconditions: [at('a', 1n)] },
      { changes: [set('a', '1')], preconditions: [at('a', 0n)], requestId: 'r' },
      { changes: [remove('a')], preconditions: [at('a', 0n)] },
    ]);
    expect(results).toEqual([
      { outcome: 'committed', revision: 1n },
      { outcome: 'conflict', key: 'a', expected: 0n, actual: 1n },
      { outcome: 'committed', revision: 2n },
      { outcome: 'committed', revision: 1n },
      { outcome: 'unchanged', revision: 2n },
    ]);
  });

  test('law: a draft that is thrown away leaves no trace', () => {
    fc.assert(
      fc.property(some, some, (before, thrownAway) => {
        const state = emptyLog();
        run(state, before);
        const seen = [state.snapshot(''), state.head, state.minimum, state.answered('r1')];
        const draft = new Draft(state, sha256);
        for (const each of thrownAway) draft.propose(each, { now: 0, others: undefined });
        expect([state.snapshot(''), state.head, state.minimum, state.answered('r1')]).toEqual(seen);
      }),
    );
  });

  test('law: judged in one batch or one by one, the answers and the entries are the same', () => {
    fc.assert(
      fc.property(some, (proposals) => {
        const [together, apart] = [emptyLog(), emptyLog()];
        const batch = run(together, proposals);
        const single = proposals.map((each) => run(apart, [each]));
        expect(batch.results).toEqual(single.flatMap(({ results }) => results));
        expect(batch.records).toEqual(single.flatMap(({ records }) => records));
        expect(together.snapshot('')).toEqual(apart.snapshot(''));
      }),
    );
  });
});

describe('the state', () => {
  test('law: revisions are dense, digests chain, time never falls, and folding the entries gives the snapshot', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(some, fc.nat(1000))), (batches) => {
        const state = emptyLog();
        const entries = batches.flatMap(([proposals, now]) => run(state, proposals, now).records.map(({ entry }) => entry));
        expect(entries.map(({ revision }) => revision)).toEqual(entries.map((_, i) => BigInt(i + 1)));
        expect(entries.map(({ previousDigest }) => previousDigest)).toEqual(
          [ZERO_DIGEST, ...entries.map(({ digest }) => digest)].slice(0, entries.length),
        );
        expect(entries.map(({ time }) => time)).toEqual(entries.map(({ time }) => time).toSorted((a, b) => a - b));
        expect(state.snapshot('').items).toEqual(fold(entries));
        expect(state.head.digest).toBe(entries.at(-1)?.digest ?? ZERO_DIGEST);
      }),
    );
  });

  test('law: a state made from what is stored goes on as the one that stored it', () => {
    fc.assert(
      fc.property(some, some, (before, after) => {
        const state = emptyLog();
        const { records } = run(state, before);
        const { items } = state.snapshot('');
        const retained = records.map(retainedEntry);
        const again = new LogState(
          { logId: logId('test'), last: state.last, items, minimum: state.minimum, retained, newest: records },
          0,
        );
        expect(run(again, after)).toEqual(run(state, after));
        expect(again.snapshot('')).toEqual(state.snapshot(''));
      }),
    );
  });

  test('a snapshot is sorted, has the prefix only, and follows keys that come and go', () => {
    const state = emptyLog();
    run(state, [proposal(set('b/2', '1'), set('a', '1'), set('b/10', '1'), set('bb', '1'), set('c', '1'))]);
    const keys = (prefix: string) => state.snapshot(prefix).items.map(({ key }) => key);
    expect([keys('b/'), keys('b'), keys(''), keys('x'), keys('c')]).toEqual([
      ['b/10', 'b/2'],
      ['b/10', 'b/2', 'bb'],
      ['a', 'b/10', 'b/2', 'bb', 'c'],
      [],
      ['c'],
    ]);
    run(state, [proposal(remove('b/10'), set('b/1', '1'))]);
    expect(keys('b/')).toEqual(['b/1', 'b/2']);
    run(state, [proposal(remove('b/1'))]);
    run(state, [proposal(set('b/1', '3'))]);
    expect(state.snapshot('b/1').items).toEqual([{ key: 'b/1', value: '3', revision: 4n }]);
  });
});

function fold(entries: readonly Entry[]): unknown {
  const values = new Map<string, unknown>();
  for (const { revision, changes } of entries)
    for (const { key, value } of changes) {
      if (value === null) values.delete(key);
      else values.set(key, { key, value, revision });
    }
  return [...values].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item);
}

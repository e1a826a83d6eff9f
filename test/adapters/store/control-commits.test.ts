import { describe, expect, test } from 'vitest';
import { SqliteControlCommits } from '../../../src/adapters/store/sqlite-control-commits.js';
import type { Commit, CommitOutcome } from '../../../src/adapters/store/sqlite-control-protocol.js';
import { StoreWatchers } from '../../../src/adapters/store/store-watchers.js';

const options = { signal: new AbortController().signal };
const commit = (key: string): Commit => ({ conditions: [], writes: [{ key, value: 'x' }] });

/** A file whose every answer a test gives. */
function rig() {
  const batches: (readonly Commit[])[] = [];
  const outcomes: PromiseWithResolvers<CommitOutcome>[] = [];
  const problems: (string | undefined)[] = [];
  const watchers = new StoreWatchers();
  const commits = new SqliteControlCommits({
    write: (batch) => {
      batches.push(batch);
      const outcome = Promise.withResolvers<CommitOutcome>();
      outcomes.push(outcome);
      return outcome.promise;
    },
    watchers,
    report: (problem) => problems.push(problem),
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { batches, outcomes, problems, watchers, commits, turn };
}

const done = (...versions: readonly (bigint | undefined)[]): CommitOutcome => ({
  outcome: 'committed',
  answers: versions.map((version) => ({ version, removed: [] })),
});

describe('SqliteControlCommits', () => {
  test('what comes while a batch is written is the next batch', async () => {
    const { batches, outcomes, commits, turn } = rig();
    const answers = [commits.commit(commit('a'), options), commits.commit(commit('b'), options)];
    await turn();
    answers.push(commits.commit(commit('c'), options), commits.commit(commit('d'), options));
    await turn();
    expect(batches.map((batch) => batch.length)).toEqual([2]);
    outcomes[0]?.resolve(done(1n, undefined));
    await turn();
    outcomes[1]?.resolve(done(2n, 3n));
    expect(await Promise.all(answers)).toEqual([1n, undefined, 2n, 3n]);
    expect(batches.map((batch) => batch.length)).toEqual([2, 2]);
  });

  test.each([
    [{ outcome: 'not_written', problem: 'full' } as const, 'store.unavailable'],
    [{ outcome: 'in_doubt', problem: 'gone' } as const, 'store.outcome_unknown'],
  ])('%j is said to all of the batch', async (outcome, code) => {
    const { outcomes, problems, commits, turn } = rig();
    const answers = [commits.commit(commit('a'), options), commits.commit(commit('b'), options)];
    const checks = answers.map((answer) => expect(answer).rejects.toMatchObject({ code }));
    await turn();
    outcomes[0]?.resolve(outcome);
    await Promise.all(checks);
    expect(problems).toEqual([outcome.problem]);
  });

  test('watchers begin again where it is not known what was written, and only there', async () => {
    const { outcomes, watchers, commits, turn } = rig();
    const watch = watchers.add('', options.signal).read([], 0n, () => {});
    const change = watch.next();
    const failed = commits.commit(commit('a'), options);
    await turn();
    outcomes[0]?.resolve({ outcome: 'not_written', problem: 'full' });
    await expect(failed).rejects.toThrow('full');
    const good = commits.commit(commit('b'), options);
    await turn();
    outcomes[1]?.resolve(done(1n));
    expect(await good).toBe(1n);
    expect((await change).value).toEqual([{ key: 'b', value: 'x', version: 1n }]);
    const lost = commits.commit(commit('c'), options);
    await turn();
    outcomes[2]?.reject(new Error('the thread has ended'));
    await expect(lost).rejects.toMatchObject({ code: 'store.outcome_unknown' });
    await expect(watch.next()).rejects.toMatchObject({ code: 'store.unavailable' });
  });

  test('what was given up before its turn is not written', async () => {
    const { batches, outcomes, commits, turn } = rig();
    const abort = new AbortController();
    const given = commits.commit(commit('a'), options);
    await turn();
    const up = commits.commit(commit('b'), abort);
    abort.abort(new Error('enough'));
    await expect(up).rejects.toThrow('enough');
    outcomes[0]?.resolve(done(1n));
    await given;
    await commits.idle();
    expect(batches).toHaveLength(1);
  });
});

describe('StoreWatchers', () => {
  test('a reader that lets 100,000 changes wait begins again; others go on', async () => {
    const watchers = new StoreWatchers();
    const slow = watchers.add('a', options.signal).read([], 0n, () => {});
    const other = watchers.add('b', options.signal).read([], 0n, () => {});
    const changes = Array.from({ length: 1_001 }, (_, i) => ({ key: `a${i}`, value: 'x', version: 1n }));
    for (let i = 0; i < 100; i += 1) watchers.changed(changes);
    await expect(slow.next()).rejects.toMatchObject({
      code: 'store.unavailable',
      message: expect.stringMatching(/100000 changes/),
    });
    const next = other.next();
    watchers.changed([{ key: 'b', value: 'x', version: 2n }]);
    expect((await next).value).toHaveLength(1);
  });
});

import { describe, expect, test } from 'vitest';
import type { CommitOutcome, LogStore, StoredBatch } from '../../../src/adapters/log/log-store.js';
import { type LogEvent, SqliteOrderedLog } from '../../../src/adapters/log/sqlite-ordered-log.js';
import { logId, type ProposeResult } from '../../../src/domain/log/model.js';
import { emptyState } from '../../../src/domain/log/state.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { options, setting } from './support/test-log.js';

const full: CommitOutcome = { outcome: 'not_written', problem: 'disk full' };
const doubt: CommitOutcome = { outcome: 'in_doubt', problem: 'no descriptor' };
const committed: CommitOutcome = { outcome: 'committed' };
const broken: CommitOutcome = { outcome: 'broken', problem: 'page 7' };

/** A store that keeps nothing and answers what it is told, then `committed`. */
class TellingStore implements LogStore {
  readonly batches: StoredBatch[] = [];
  readonly #answers: CommitOutcome[];

  constructor(answers: readonly CommitOutcome[]) {
    this.#answers = [...answers];
  }

  async open() {
    return { ...emptyState(logId('telling')), newestCopy: undefined };
  }

  async commit(batch: StoredBatch) {
    this.batches.push(batch);
    return this.#answers.shift() ?? committed;
  }

  async resolve() {
    return this.#answers.shift() ?? committed;
  }

  async read() {
    return [];
  }

  async copy(): Promise<never> {
    throw new Error('no copies');
  }

  async copyTo(): Promise<never> {
    throw new Error('no copies');
  }

  async close() {}
}

async function open(answers: readonly CommitOutcome[]) {
  const [clock, store, events] = [new FakeClock(), new TellingStore(answers), [] as LogEvent[]];
  const log = new SqliteOrderedLog({ file: 'none', clock, store, report: (event) => events.push(event) });
  await log.open(options);
  const propose = (key: string) => log.propose(setting(key, '1'), options);
  const settled = (keys: readonly string[]) => Promise.all(keys.map((key) => propose(key).then(describeResult, codeOf)));
  return { log, clock, store, events, propose, settled };
}

const codeOf = (error: { code?: string }) => error.code;
const describeResult = (result: ProposeResult) =>
  result.outcome === 'conflict' ? 'conflict' : `${result.outcome} ${result.revision}`;

describe('a commit that fails', () => {
  test('rejects all of its batch, also what was true only in it, and no revision is consumed', async () => {
    const { settled, events, log } = await open([full]);
    expect(await settled(['a', 'b', 'a'])).toEqual(['log.not_written', 'log.not_written', 'log.not_written']);
    expect(events).toEqual([{ event: 'not_written', problem: 'disk full', proposals: 3 }]);
    expect((await log.snapshot('', options)).items).toEqual([]);
    expect(await settled(['a', 'a', 'b'])).toEqual(['committed 1', 'unchanged 1', 'committed 2']);
    await log.close();
  });

  test.each([
    { name: 'written', last: committed, first: 'committed 1', next: 'committed 2' },
    { name: 'not written', last: full, first: 'log.not_written', next: 'committed 1' },
  ])('in doubt: others are refused at once, it is asked each second, and answered as $name', async ({ last, first, next }) => {
    const { settled, clock, log, events } = await open([doubt, doubt, last]);
    const waiting = settled(['a']);
    await clock.advance(500);
    expect(await settled(['b'])).toEqual(['log.not_written']);
    await clock.advance(1_000);
    expect(await settled(['c'])).toEqual(['log.not_written']);
    await clock.advance(1_000);
    expect(await waiting).toEqual([first]);
    expect(events[0]).toMatchObject({ event: 'in_doubt', problem: 'no descriptor' });
    expect(await settled(['d'])).toEqual([next]);
    await log.close();
  });

  test('in doubt at the close: the answer is that it is not known', async () => {
    const { settled, clock, log } = await open([doubt, doubt, doubt]);
    const waiting = settled(['a']);
    await clock.advance(100);
    await log.close();
    expect(await waiting).toEqual(['log.closed']);
  });

  test('a file found damaged: that batch says so, later ones are not written, reads go on', async () => {
    const { settled, log, events } = await open([committed, broken]);
    expect(await settled(['a'])).toEqual(['committed 1']);
    expect(await settled(['b'])).toEqual(['log.corrupt']);
    expect(await settled(['c'])).toEqual(['log.not_written']);
    expect(events).toMatchObject([{ event: 'broken' }]);
    expect((await log.snapshot('', options)).items).toHaveLength(1);
    await log.close();
  });

  test('what waits while a batch is written goes into the next one, aborted ones left out', async () => {
    const { log, store, propose } = await open([]);
    const abort = new AbortController();
    const first = propose('a');
    await new Promise((resolve) => setImmediate(resolve));
    const others = Promise.all([propose('b'), propose('c')]);
    const aborted = log.propose(setting('x', '1'), { signal: abort.signal });
    abort.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    expect([(await first).outcome, ...(await others).map(({ outcome }) => outcome)]).toEqual(Array(3).fill('committed'));
    expect(store.batches.map(({ records }) => records.length)).toSatisfy(
      (sizes: number[]) => sizes.reduce((a, b) => a + b) === 3,
    );
    await log.close();
  });
});

test('opening after a close, and calls before the open, say log.closed; closing twice and before the open is safe', async () => {
  const log = new SqliteOrderedLog({ file: 'none', clock: new FakeClock(), store: new TellingStore([]) });
  await expect(log.head(options)).rejects.toMatchObject({ code: 'log.closed' });
  await Promise.all([log.close(), log.close()]);
  await log.close();
  await expect(log.open(options)).rejects.toMatchObject({ code: 'log.closed' });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Draft } from '../../../src/domain/log/draft.js';
import { FilteredStream, MOST_SKIPPED, PendingItems, visibleChanges, visibleItems } from '../../../src/domain/log/filter.js';
import {
  type Cursor,
  type Entry,
  type LogFrame,
  type LogKey,
  logKey,
  type Proposal,
  type Revision,
} from '../../../src/domain/log/model.js';
import type { LogState } from '../../../src/domain/log/state.js';
import { emptyLog, proposal, remove, set, sha256, someProposal } from './support.js';

function append(state: LogState, ...proposals: readonly Proposal[]): readonly Entry[] {
  const draft = new Draft(state, sha256);
  for (const each of proposals) draft.propose(each, { now: 0, others: undefined });
  state.append(draft.records, state.minimumAfter(draft.records), 0);
  return draft.records.map(({ entry }) => entry);
}

const entryFrame = (entry: Entry): LogFrame => ({ kind: 'entry', previous: (entry.revision - 1n) as Revision, entry });
const bookmarkFrame = ({ revision, digest }: Cursor, ageMs = 0): LogFrame => ({
  ...{ kind: 'bookmark', previous: revision, revision, digest, head: revision, ageMs },
});

/** What somebody holds who reads frames: every one of them has to follow on. */
class Reader {
  at: Cursor;
  readonly #items = new PendingItems([]);

  constructor(from: Cursor) {
    this.at = from;
  }

  read(frame: LogFrame): void {
    expect(frame.previous).toBe(this.at.revision);
    const { revision, digest } = frame.kind === 'entry' ? frame.entry : frame;
    if (frame.kind === 'entry') {
      expect(frame.entry.previousDigest).toBe(this.at.digest);
      this.#items.fold(frame.entry);
    }
    this.at = { logId: this.at.logId, revision, digest };
  }

  items() {
    return this.#items.items();
  }
}

const keys = fc.subarray(['a', 'b', 'c/1', 'c/2'].map((key) => logKey(key)));

describe('a filtered stream', () => {
  test('E2, law: filter and fold is fold and filter, at every frame, and every frame follows on the one before it', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(someProposal, fc.boolean())), keys, (steps, seen) => {
        const reads = (key: LogKey) => seen.includes(key);
        const state = emptyLog();
        const stream = new FilteredStream(state.head);
        const reader = new Reader(state.head);
        const send = (frame: LogFrame) => {
          const sent = stream.take(frame, frame.kind === 'entry' ? visibleChanges(frame.entry, reads) : []);
          if (sent !== undefined) reader.read(sent);
        };
        for (const [each, bookmark] of steps) {
          for (const entry of append(state, each)) send(entryFrame(entry));
          if (bookmark) send(bookmarkFrame(state.head));
          if (bookmark) expect(reader.at).toEqual(state.head);
          expect(reader.items()).toEqual(visibleItems(state.snapshot('').items, reads));
        }
      }),
    );
  });

  test('what nobody may see is not in a frame, nor its predecessor as a revision of the stream', () => {
    const state = emptyLog();
    const stream = new FilteredStream(state.head);
    const reads = (key: LogKey) => key.startsWith('seen/');
    const entries = append(
      state,
      proposal(set('hidden/1', '1')),
      proposal(set('seen/1', '1'), set('hidden/2', '2')),
      proposal(remove('seen/1')),
    );
    const sent = entries.map((entry) => stream.take(entryFrame(entry), visibleChanges(entry, reads)));
    expect(sent[0]).toBeUndefined();
    expect(sent.slice(1)).toMatchObject([
      { kind: 'entry', previous: 0n, entry: { revision: 2n, changes: [set('seen/1', '1')] } },
      { kind: 'entry', previous: 2n, entry: { revision: 3n, changes: [remove('seen/1')] } },
    ]);
  });

  test('E2: after 1,000 entries of which nothing is seen a bookmark leads on', () => {
    const state = emptyLog();
    const stream = new FilteredStream(state.head);
    const entries = Array.from({ length: 2 * MOST_SKIPPED }, (_, i) => append(state, proposal(set('hidden', String(i))))[0]);
    const sent = entries.flatMap((entry) => (entry === undefined ? [] : [stream.take(entryFrame(entry), [])]));
    expect(sent.flatMap((frame, index) => (frame === undefined ? [] : [[index, frame.kind, frame.previous]]))).toEqual([
      [999, 'bookmark', 0n],
      [1_999, 'bookmark', 1_000n],
    ]);
    expect([stream.at, stream.head]).toEqual([2_000n, 2_000n]);
  });

  test('a bookmark carries what the log says of itself; a frame that does not follow is a mistake', () => {
    const state = emptyLog();
    const stream = new FilteredStream(state.head);
    append(state, proposal(set('a', '1')));
    expect(() => stream.take(bookmarkFrame(state.head), [])).toThrow('does not follow');
    const begin = new FilteredStream(state.head);
    const ahead = { ...bookmarkFrame(state.head, 700), head: 9n as Revision };
    expect(begin.take(ahead, [])).toEqual(ahead);
    expect([begin.head, begin.ageMs]).toEqual([9n, 700]);
  });

  test('nothing is copied when all is seen', () => {
    const [entry] = append(emptyLog(), proposal(set('a', '1'), set('b', '2')));
    expect(entry && visibleChanges(entry, () => true)).toBe(entry?.changes);
  });
});

test('pending items, law: a snapshot kept up with entries is the newer snapshot', () => {
  fc.assert(
    fc.property(fc.array(someProposal), fc.array(someProposal), (before, after) => {
      const state = emptyLog();
      append(state, ...before);
      const pending = new PendingItems(state.snapshot('').items);
      for (const each of after) for (const entry of append(state, each)) pending.fold(entry);
      expect(pending.items()).toEqual(state.snapshot('').items);
    }),
  );
});

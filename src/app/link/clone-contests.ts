import {
  type Contest,
  type ContestAnswer,
  contestKey,
  contestPrefix,
  decodeContest,
  encodeContest,
} from '../../domain/link/contest.js';
import { CLONE_MS } from '../../domain/link/fence.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore, StoreChange } from '../../ports/store/control-store.js';
import { PrefixView } from '../store/prefix-view.js';

/** On top of the 7 s, for the way of the answer through the store: a beat may come in the last moment. */
const ANSWER_MS = 1_000;

export interface CloneContestsParts {
  readonly store: ControlStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Id of this replica. */
  readonly server: string;
  /** Of a stream of this replica: resolves when it is known, undefined when it stays silent for 7 s. Does not throw. */
  readonly answer: (contest: Contest) => Promise<ContestAnswer | undefined>;
}

/** Asks the replica that has a node's stream whether that lives, and answers others (engine.md B4). */
export class CloneContests {
  readonly #parts: CloneContestsParts;
  readonly #view: PrefixView;
  readonly #waiting = new Map<string, (answer: ContestAnswer) => void>();
  readonly #stop = new AbortController();

  constructor(parts: CloneContestsParts) {
    this.#parts = parts;
    const changed = (changes: readonly StoreChange[]) => this.#changed(changes);
    this.#view = new PrefixView({ ...parts, prefix: contestPrefix, changed });
  }

  start(): void {
    this.#view.start();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#view.stop();
  }

  /** Whether the stream at the replica that is asked goes on beating; takes 8 s at most. @throws AgentError `store.unavailable` */
  async goesOnBeating(contest: Contest, options: CallOptions): Promise<boolean> {
    const { clock, store } = this.#parts;
    const key = contestKey(contest.nid);
    const over = new AbortController();
    const answered = new Promise<ContestAnswer>((resolve) => this.#waiting.set(contest.id, resolve));
    const silent = clock.sleep(CLONE_MS + ANSWER_MS, { signal: AbortSignal.any([over.signal, options.signal]) }).catch(() => {});
    try {
      await store.commit([], [{ key, value: encodeContest(contest) }], options);
      return (await Promise.race([answered, silent])) === 'beats';
    } finally {
      over.abort();
      this.#waiting.delete(contest.id);
      // What stays is overwritten by the next one.
      await store.commit([], [{ key, value: null }], { signal: this.#stop.signal }).catch(() => {});
    }
  }

  #changed(changes: readonly StoreChange[]): void {
    for (const { value, version } of changes) {
      if (value === undefined) continue;
      const contest = decodeContest(value);
      if (contest.answer !== undefined) this.#waiting.get(contest.id)?.(contest.answer);
      // What was there before this process may have been asked long ago.
      else if (contest.asked === this.#parts.server && this.#view.hasLoaded) void this.#answer(contest, version);
    }
  }

  /** Only as long as it is still asked: whoever asked has removed it otherwise, or asks anew. */
  async #answer(contest: Contest, version: bigint): Promise<void> {
    const { answer: find, logger, store } = this.#parts;
    const answer = await find(contest);
    if (answer === undefined || this.#stop.signal.aborted) return;
    const key = contestKey(contest.nid);
    try {
      await store.commit([{ key, version }], [{ key, value: encodeContest({ ...contest, answer }) }], this.#stop);
    } catch (error) {
      if (!this.#stop.signal.aborted)
        logger.warn('a replica that asked for a stream could not be answered', { error, nid: contest.nid });
    }
  }
}

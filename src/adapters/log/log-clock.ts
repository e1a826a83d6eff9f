import { errorCodes } from '../../domain/kernel/errors.js';
import { clockProblem, judgeTime, type ProposerTime } from '../../domain/log/time.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';

/** The clock that a log gives its entries their time by, and what is wrong with it (engine.md E19). */
export class LogClock {
  readonly #clock: Clock;
  readonly #others: () => number | undefined;

  /** `others`: the newest clock of the other servers that live. */
  constructor(clock: Clock, others: () => number | undefined = () => undefined) {
    this.#clock = clock;
    this.#others = others;
  }

  time(): ProposerTime {
    return { now: this.#clock.now(), others: this.#others() };
  }

  /** `head`: log time of the newest entry. As of now: a clock that was set is well. */
  problems(head: number): readonly StatusProblem[] {
    const reason = clockProblem(judgeTime(this.time(), head));
    if (reason === undefined) return [];
    return [{ subject: 'clock', reason, since: undefined, remedy: errorCodes['log.clock_ahead'].remedy }];
  }
}

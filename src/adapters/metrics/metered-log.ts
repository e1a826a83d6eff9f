import type { Cursor, LogFrame, Proposal, ProposeResult, Snapshot } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { OwnedLog } from '../../ports/log/ordered-log.js';
import { type CallFigures, CallMeter } from './call-meter.js';

/** A log that counts and times what it is asked. */
export class MeteredLog implements OwnedLog {
  readonly #log: OwnedLog;
  readonly #meter: CallMeter<'propose' | 'snapshot' | 'head' | 'newest'>;

  constructor(log: OwnedLog, clock: Clock) {
    this.#log = log;
    this.#meter = new CallMeter(['propose', 'snapshot', 'head', 'newest'], clock);
  }

  figures(): CallFigures {
    return this.#meter.figures();
  }

  open(options: CallOptions): Promise<void> {
    return this.#log.open(options);
  }

  close(): Promise<void> {
    return this.#log.close();
  }

  propose(proposal: Proposal, options: CallOptions): Promise<ProposeResult> {
    return this.#meter.measure('propose', options, () => this.#log.propose(proposal, options));
  }

  snapshot(prefix: string, options: CallOptions): Promise<Snapshot> {
    return this.#meter.measure('snapshot', options, () => this.#log.snapshot(prefix, options));
  }

  head(options: CallOptions): Promise<Cursor> {
    return this.#meter.measure('head', options, () => this.#log.head(options));
  }

  newest(options: CallOptions): Promise<Cursor> {
    return this.#meter.measure('newest', options, () => this.#log.newest(options));
  }

  watch(from: Cursor, options: CallOptions): AsyncIterable<LogFrame> {
    return this.#log.watch(from, options);
  }

  problems(): readonly StatusProblem[] {
    return this.#log.problems();
  }
}

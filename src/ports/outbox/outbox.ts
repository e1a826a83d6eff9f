import type { OutboxEntry, OutboxRecord, OutboxSequence, OutboxStats } from '../../domain/outbox/model.js';
import type { CallOptions } from '../call-options.js';

/** Events and log lines on their way to a sink. At least once: an entry leaves only after the sink has confirmed it, or counted as dropped. */
export interface Outbox {
  /**
   * Takes `entry` as the newest and gives it its number. One that is full makes room or waits, as its policy says. Entries stand in
   * the order of the calls. On abort it is taken or not.
   */
  append(entry: OutboxEntry, options: CallOptions): Promise<OutboxSequence>;

  /**
   * The oldest records after `after`, at most `limit`, in order; empty when there are none. A gap in the numbers is what was dropped.
   * Changes nothing: the same call again gives what is still held.
   * @throws RangeError when `limit` is no positive whole number
   */
  read(after: OutboxSequence, limit: number, options: CallOptions): Promise<readonly OutboxRecord[]>;

  /**
   * The sink has everything up to and with `upTo`, so that is let go. Less than what was confirmed before changes nothing.
   * @throws RangeError when no entry has had that number
   */
  confirm(upTo: OutboxSequence, options: CallOptions): Promise<void>;

  /** Resolves as soon as an entry has had a number above `after`, which may be at once. Rejects on abort with the signal's reason. */
  changed(after: OutboxSequence, options: CallOptions): Promise<void>;

  /** What was appended before the call survives the process when it resolves, if the outbox outlives it at all. */
  flush(options: CallOptions): Promise<void>;

  stats(): OutboxStats;
}

import type { Brand } from '../kernel/brand.js';

/** Number of a record in its outbox: 1, 2, 3 … without gaps, never used twice. 0 is "before the first". */
export type OutboxSequence = Brand<bigint, 'OutboxSequence'>;

export const ZERO_SEQUENCE = 0n as OutboxSequence;

/** @throws RangeError when `value` is negative. */
export function outboxSequence(value: bigint): OutboxSequence {
  if (value < 0n) throw new RangeError(`not a sequence number: ${value}`);
  return value as OutboxSequence;
}

/** The severities of RFC 5424 that sinks know by these names. */
export type Severity = 'debug' | 'info' | 'warning' | 'error' | 'critical';

/** Something to tell a sink. */
export interface OutboxEntry {
  /** When it happened, milliseconds since the Unix epoch. */
  readonly time: number;
  /** An event is told by the daemon; a log line is taken from a program. */
  readonly kind: 'event' | 'log';
  /** Where it comes from; order is kept within a stream. `agent`, `container/default/web-0/web`. */
  readonly stream: string;
  readonly severity: Severity;
  readonly message: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** An entry that an outbox holds. The receiver drops doubles by its number. */
export interface OutboxRecord extends OutboxEntry {
  readonly sequence: OutboxSequence;
}

export interface OutboxStats {
  /** Records that are held, which no sink has confirmed. */
  readonly depth: number;
  readonly capacity: number;
  /** Records that had to go before a sink confirmed them, since the outbox was made. */
  readonly dropped: bigint;
  readonly nextSequence: OutboxSequence;
}

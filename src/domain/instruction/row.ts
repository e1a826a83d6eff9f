import type { Epoch } from '../link/model.js';
import type { InstructionKey, RepeatClass } from './model.js';

/**
 * received -> started -> finished -> handed -> acked (engine.md A1). `received`, `started` and `finished` are durable before what follows
 * them; `handed` and `acked` may be lost, which only repeats a send.
 */
export const rowStates = ['received', 'started', 'finished', 'handed', 'acked'] as const;
export type RowState = (typeof rowStates)[number];

/** How it ended: `unknown` may have taken effect, `refused` and `cancelled` have not. */
export type Outcome = 'done' | 'failed' | 'refused' | 'cancelled' | 'unknown';

/** One instruction in the journal, without its payload and its reply, which have shorter lives. */
export interface Row extends InstructionKey {
  readonly type: string;
  /** SHA-256 in hex of type and payload. */
  readonly digest: string;
  readonly payloadDigest: string;
  /** Who asked, as the audit log says it. */
  readonly who: string;
  readonly lanes: readonly string[];
  readonly repeat: RepeatClass;
  readonly epoch: Epoch | undefined;
  /** Wall clock, milliseconds. */
  readonly receivedAt: number;
  /** After which it may not be started; wall clock, undefined where the server said nothing. Only `expiresAtBoot` is exact. */
  readonly expiresAt: number | undefined;
  /** The same on the boot-time clock of `boot`, which no setting of the wall clock moves (engine.md A11). */
  readonly expiresAtBoot?: number | undefined;
  /** How long an older server waits for the answer, milliseconds. */
  readonly waiterMs: number;
  readonly state: RowState;
  /** 0 before the first start. */
  readonly attempt: number;
  /** Boot id of the kernel under which it was received. */
  readonly boot: string;
  /** The runner's task that carries its effect, hex; undefined for one without. */
  readonly task: string | undefined;
  /** The task goes on after the answer, which says that it runs. */
  readonly background: boolean;
  /** How far it was, for people: `body <sha256>`. */
  readonly step: string | undefined;
  readonly outcome: Outcome | undefined;
  readonly finishedAt: number | undefined;
  readonly ackedAt: number | undefined;
}

type New = Omit<Row, 'state' | 'attempt' | 'step' | 'outcome' | 'finishedAt' | 'ackedAt'>;

export function receivedRow(row: New): Row {
  return {
    ...row,
    ...{ state: 'received', attempt: 0 },
    ...{ step: undefined, outcome: undefined, finishedAt: undefined, ackedAt: undefined },
  };
}

/** @throws RangeError when it has ended: no instruction starts again after its result. */
export function startedRow(row: Row): Row {
  if (row.state !== 'received' && row.state !== 'started') throw new RangeError(`${row.tag} is ${row.state} and cannot start`);
  return { ...row, state: 'started', attempt: row.attempt + 1 };
}

/** @throws RangeError when it has ended before: the first result stands. */
export function finishedRow(row: Row, outcome: Outcome, now: number): Row {
  if (row.state !== 'received' && row.state !== 'started') throw new RangeError(`${row.tag} is ${row.state} and cannot finish`);
  return { ...row, state: 'finished', outcome, finishedAt: now };
}

/** Only a finished one changes: an acknowledgement of anything else says nothing (engine.md C1). */
export function handedRow(row: Row): Row {
  return row.state === 'finished' ? { ...row, state: 'handed' } : row;
}

export function ackedRow(row: Row, now: number): Row {
  return row.state === 'finished' || row.state === 'handed' ? { ...row, state: 'acked', ackedAt: now } : row;
}

/** What stays when its reply goes: the tag, its digest, how it ended and when (engine.md A9). */
export function tombstoneOf(row: Row): Row {
  return { ...row, payloadDigest: '', who: '', lanes: [], boot: '', task: undefined, step: undefined };
}

export function isFinished({ state }: Row): boolean {
  return state === 'finished' || state === 'handed' || state === 'acked';
}

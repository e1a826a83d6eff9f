import type { RowState } from '../../domain/instruction/row.js';
import type { JournalFacts } from '../../domain/link/model.js';

export interface InstructionView {
  readonly tag: string;
  readonly type: string;
  readonly state: RowState;
  readonly attempt: number;
  readonly outcome: string | undefined;
  /** Wall clock, milliseconds. */
  readonly receivedAt: number;
  readonly finishedAt: number | undefined;
  /** Of one that waits. */
  readonly waitsFor: string | undefined;
}

export interface InstructionSnapshot {
  readonly journal: JournalFacts | undefined;
  readonly waiting: number;
  readonly running: number;
  readonly unconfirmed: number;
  /** Since the start, by name. */
  readonly counts: Readonly<Record<string, number>>;
  /** Unfinished ones, then those whose reply is kept. */
  readonly instructions: readonly InstructionView[];
}

/** What a node knows of instructions, for those who operate it. */
export interface InstructionMemory {
  /** As of now, from memory. */
  snapshot(): InstructionSnapshot;
}

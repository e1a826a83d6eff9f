import type { InstructionKey } from '../../domain/instruction/model.js';
import type { JournalChange, JournalFacts, OpenedJournal, TombstoneLimits } from '../../ports/instruction/journal.js';

/** A call to the journal's thread. */
export type JournalCall =
  | { readonly call: 'open'; readonly now: number }
  | { readonly call: 'commit'; readonly commits: readonly (readonly JournalChange[])[] }
  | { readonly call: 'find'; readonly keys: readonly InstructionKey[] }
  | { readonly call: 'reply' | 'setAside' | 'payload'; readonly key: InstructionKey }
  | { readonly call: 'vipGeneration'; readonly fleet: string }
  | { readonly call: 'prune'; readonly limits: TombstoneLimits }
  | { readonly call: 'close' };

export interface OpenedFile extends OpenedJournal {
  readonly facts: JournalFacts;
  /** Where a damaged file was put. */
  readonly setAside: string | undefined;
}

export interface CommitResult {
  readonly facts: JournalFacts;
  /** Of each commit; undefined when it is durable. */
  readonly problems: readonly (string | undefined)[];
}

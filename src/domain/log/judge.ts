import { AgentError } from '../kernel/errors.js';
import {
  type Change,
  type LogKey,
  MAX_BYTES_PER_PROPOSAL,
  MAX_CHANGES_PER_PROPOSAL,
  type Proposal,
  type ProposeResult,
  type Revision,
  ZERO_REVISION,
} from './model.js';

export interface KeyState {
  readonly value: string;
  /** Where the value was last changed. */
  readonly revision: Revision;
}

/** The state on which a proposal is judged. */
export interface JudgedView {
  readonly revision: Revision;
  /** Undefined when the key is absent. */
  get(key: LogKey): KeyState | undefined;
  /** Revision of the retained entry that was made for `requestId`. */
  answered(requestId: string): Revision | undefined;
}

export type Judgement =
  | { readonly verdict: 'append'; readonly changes: readonly Change[] }
  | { readonly verdict: 'answer'; readonly result: ProposeResult };

/**
 * What becomes of `proposal` on `view`. Checks that need no view come first, then the repeat of a request (which gets its first
 * answer even if its preconditions no longer hold), then preconditions, in order; then what changes nothing is dropped.
 * @throws AgentError `log.too_large`; RangeError for a proposal that no state could make valid: a key twice, an unpaired surrogate
 */
export function judge(proposal: Proposal, view: JudgedView): Judgement {
  checkProposal(proposal);
  const first = proposal.requestId === undefined ? undefined : view.answered(proposal.requestId);
  if (first !== undefined) return answer({ outcome: 'committed', revision: first });
  for (const { key, revision: expected } of proposal.preconditions) {
    const actual = view.get(key)?.revision ?? ZERO_REVISION;
    if (actual !== expected) return answer({ outcome: 'conflict', key, expected, actual });
  }
  const changes = proposal.changes.filter(({ key, value }) => (view.get(key)?.value ?? null) !== value);
  if (changes.length === 0) return answer({ outcome: 'unchanged', revision: view.revision });
  return { verdict: 'append', changes };
}

/** What no state could make valid. @throws as `judge` does of it */
export function checkProposal(proposal: Proposal): void {
  checkLimits(proposal);
  checkChanges(proposal.changes);
}

function answer(result: ProposeResult): Judgement {
  return { verdict: 'answer', result };
}

function checkLimits({ changes, preconditions }: Proposal): void {
  const count = Math.max(changes.length, preconditions.length);
  if (count > MAX_CHANGES_PER_PROPOSAL)
    throw new AgentError('log.too_large', { problem: `${count} changes, at most ${MAX_CHANGES_PER_PROPOSAL} are taken at once` });
  const bytes = proposalBytes(changes);
  if (bytes > MAX_BYTES_PER_PROPOSAL)
    throw new AgentError('log.too_large', { problem: `${bytes} bytes, at most ${MAX_BYTES_PER_PROPOSAL} are taken at once` });
}

function checkChanges(changes: readonly Change[]): void {
  const seen = new Set<LogKey>();
  for (const { key, value } of changes) {
    if (seen.has(key)) throw new RangeError(`a key twice in one proposal: ${key}`);
    seen.add(key);
    // It has no UTF-8 form: what is stored would differ from what was judged.
    if (value?.isWellFormed() === false) throw new RangeError(`not well-formed text at ${key}`);
  }
}

/** Keys and values as UTF-8. A UTF-16 unit is at most 3 bytes, so that few proposals are counted through. */
export function proposalBytes(changes: readonly Change[]): number {
  const units = changes.reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0), 0);
  if (units * 3 <= MAX_BYTES_PER_PROPOSAL) return units;
  return changes.reduce((sum, { key, value }) => sum + key.length + utf8Length(value ?? ''), 0);
}

export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    // A surrogate pair is two units and four bytes: one more for each unit.
    if (unit >= 0x80) bytes += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2;
  }
  return bytes;
}

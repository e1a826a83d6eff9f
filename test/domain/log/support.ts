import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { type Change, digest, logId, logKey, type Precondition, type Proposal, revision } from '../../../src/domain/log/model.js';
import { emptyState, LogState } from '../../../src/domain/log/state.js';

export const sha256 = (text: string) => digest(createHash('sha256').update(text).digest('hex'));
export const set = (key: string, value: string): Change => ({ key: logKey(key), value });
export const remove = (key: string): Change => ({ key: logKey(key), value: null });
export const at = (key: string, number: bigint): Precondition => ({ key: logKey(key), revision: revision(number) });
export const proposal = (...changes: readonly Change[]): Proposal => ({ changes, preconditions: [] });
export const emptyLog = () => new LogState(emptyState(logId('test')), 0);

const keys = fc.constantFrom('a', 'b', 'c/1', 'c/2').map(logKey);
const values = fc.option(fc.oneof(fc.constantFrom('1', '2'), fc.string({ unit: 'grapheme' })), { nil: null });
const changes = fc.uniqueArray(fc.record({ key: keys, value: values }), { selector: ({ key }) => key, maxLength: 4 });
const preconditions = fc.array(fc.record({ key: keys, revision: fc.bigInt(0n, 3n).map(revision) }), { maxLength: 1 });

export const someProposal: fc.Arbitrary<Proposal> = fc.record(
  { changes, preconditions, requestId: fc.constantFrom('r1', 'r2', 'r"3\\') },
  { requiredKeys: ['changes', 'preconditions'] },
);

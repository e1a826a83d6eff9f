import { expect, test } from 'vitest';
import { restartProblem, type UnitState } from '../../../src/domain/service/model.js';

const running = (startedAt: bigint): UnitState => ({ isKnown: true, isActive: true, startedAt, text: 'active (running)' });
const down: UnitState = { isKnown: true, isActive: false, startedAt: 2n, text: 'failed (failed)' };

test.each<[string, UnitState, UnitState, UnitState, string | undefined]>([
  ['stays up', running(1n), running(2n), running(2n), undefined],
  ['did not run before', { ...down, startedAt: 0n }, running(2n), running(2n), undefined],
  ['does not come up', running(1n), down, down, 'it is failed (failed) after the restart'],
  ['was not restarted', running(1n), running(1n), running(1n), 'it was not restarted'],
  ['ends soon', running(1n), running(2n), down, 'it is failed (failed) soon after the restart'],
  ['is started again and again', running(1n), running(2n), running(3n), 'it ended soon after the restart and was started again'],
])('a unit that %s', (_, before, after, settled, problem) => {
  expect(restartProblem(before, after, settled)).toBe(problem);
});

import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { clockAnswer } from '../../../src/adapters/certificate/unary-call.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';

const NOW = Date.UTC(2026, 0, 31, 12);
const said = new AgentError('certificate.expired', { problem: 'certificate aa expired', remedy: 'another one' });

function answer(date?: string): ServiceError {
  const metadata = new Metadata();
  if (date !== undefined) metadata.set('date', date);
  return Object.assign(new Error('x'), { code: status.UNAUTHENTICATED, details: 'x', metadata });
}

test('F3: a clock here that differs from the server is named beside what it said', () => {
  const told = clockAnswer(said, answer(new Date(NOW - 2 * 3_600_000).toUTCString()), NOW);
  expect(told.code).toBe('certificate.expired');
  expect(told.facts.problem).toMatch(/^certificate aa expired; this machine's clock is 2 h ahead of the server's/);
  expect(told.remedy).toBe('another one');
});

test.each([
  ['a clock that is right', new Date(NOW + 60_000).toUTCString()],
  ['no date', undefined],
  ['a date that is none', 'yesterday'],
])('%s changes nothing', (_, date) => {
  expect(clockAnswer(said, answer(date), NOW)).toBe(said);
});

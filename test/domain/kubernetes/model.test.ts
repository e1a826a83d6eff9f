import { expect, test } from 'vitest';
import { failureText, kubectlAnswer, type ProgramEnd } from '../../../src/domain/kubernetes/model.js';

const end = (facts: Partial<ProgramEnd>): ProgramEnd => ({
  ...{ exitCode: 0, timedOut: false, stdout: '', stderr: '', dropped: 0 },
  ...facts,
});

test.each<[string, Partial<ProgramEnd>, string, string]>([
  ['what it printed', { stdout: 'a\n', stderr: 'Warning: old\n' }, 'get', 'KUBECTL_COMMAND_RESPONSE a\n'],
  [
    'what it said, when it printed nothing',
    { stderr: 'No resources found\n' },
    'get',
    'KUBECTL_COMMAND_RESPONSE No resources found\n',
  ],
  ['that something is missing', { stdout: 'a', dropped: 7 }, 'get', 'KUBECTL_COMMAND_RESPONSE a\n[cut here: 7 bytes more]'],
  ['differences are no failure', { exitCode: 1, stdout: '- a\n' }, 'diff', 'KUBECTL_COMMAND_RESPONSE - a\n'],
  ['a diff that failed', { exitCode: 2, stderr: 'no' }, 'diff', 'ERROR kubectl: exit code 2: no'],
  ['exit code 1 of another verb', { exitCode: 1, stdout: 'a' }, 'get', 'ERROR kubectl: exit code 1: a'],
  ['a failure', { exitCode: 1, stdout: 'a', stderr: 'error: no\n' }, 'get', 'ERROR kubectl: exit code 1: error: no'],
  ['a death', { exitCode: -1 }, 'get', 'ERROR kubectl: it was killed'],
  ['a time-out', { exitCode: -1, timedOut: true, stderr: 'x' }, 'wait', 'ERROR kubectl: it was ended as it took too long: x'],
])('%s', (_, facts, verb, expected) => {
  const answer = kubectlAnswer(end(facts), verb);
  const text =
    answer.kind === 'json' ? `${answer.type} ${answer.value.response}` : `ERROR ${'text' in answer ? answer.text : ''}`;
  expect(text).toBe(expected);
});

test('A15: what a failure says stays within an error', () => {
  expect(failureText('kubectl', end({ exitCode: 1, stderr: 'x'.repeat(1_000_000) })).length).toBeLessThan(33 * 1024);
});

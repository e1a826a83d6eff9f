import { describe, expect, test } from 'vitest';
import {
  directiveOf,
  formatPlace,
  type InstallCommand,
  listProblem,
  mayRun,
  parsePlace,
  refusalOf,
  resultOf,
  warningsIn,
} from '../../../src/domain/install/model.js';

export const command = (id: number, text: string, more: Partial<InstallCommand> = {}): InstallCommand => ({
  ...{ id, command: text, after: 0, matches: '', doesNotMatch: '', ignoreFailure: false },
  ...more,
});

test.each([
  ['echo STATUS_UPDATE:INSTALLING', { do: 'status', text: 'INSTALLING' }],
  ['echo "STATUS_UPDATE:Installing packages"', { do: 'status', text: 'Installing packages' }],
  ["  echo 'STATUS_UPDATE:X' ", { do: 'status', text: 'X' }],
  ['echo PROGRESS_UPDATE:40%', { do: 'progress', percent: 40 }],
  ['echo "PROGRESS_UPDATE: 100%"', { do: 'progress', percent: 100 }],
  ['echo PROGRESS_UPDATE:999%', { do: 'progress', percent: 100 }],
  // A shell has to say what these are.
  ['echo STATUS_UPDATE:$(hostname)', { do: 'run' }],
  ['echo STATUS_UPDATE:X && reboot', { do: 'run' }],
  ['echo STATUS_UPDATE:X; true', { do: 'run' }],
  ['echo STATUS_UPDATE:X > /f', { do: 'run' }],
  ['echo PROGRESS_UPDATE:x%', { do: 'run' }],
  ['true # echo STATUS_UPDATE:X', { do: 'run' }],
])('%s', (text, directive) => expect(directiveOf(text)).toEqual(directive));

describe('a list that is not begun', () => {
  test.each<[string, readonly InstallCommand[]]>([
    ['it is empty', []],
    ['command 1 is there twice', [command(1, 'a'), command(1, 'b')]],
    ['command 2 is no command', [command(1, 'a'), command(2, ' \n')]],
    ['command 1 is no command', [command(1, 'a\0b')]],
    ['command 1 comes after 2, which is not before it', [command(1, 'a', { after: 2 }), command(2, 'b')]],
    ['command 1 comes after 1, which is not before it', [command(1, 'a', { after: 1 })]],
    ['the condition of command 2 is no regular expression', [command(1, 'a'), command(2, 'b', { after: 1, matches: '(' })]],
    ['it has 2001 commands, 2000 are taken', Array.from({ length: 2_001 }, (_, id) => command(id + 1, 'a'))],
  ])('%s', (problem, list) => expect(listProblem(list)).toBe(problem));
  test('none', () => expect(listProblem([command(1, 'a'), command(2, 'b', { after: 1, matches: '^x$' })])).toBeUndefined());
});

describe('conditions on the result of an earlier command', () => {
  const results = { 1: 'active', 2: '' };
  test.each<[Partial<InstallCommand>, boolean]>([
    [{}, true],
    [{ after: 1 }, true],
    [{ after: 1, matches: '^active$' }, true],
    [{ after: 1, matches: '^inactive$' }, false],
    [{ after: 1, doesNotMatch: 'active' }, false],
    [{ after: 1, doesNotMatch: 'failed' }, true],
    [{ after: 1, matches: 'act', doesNotMatch: 'ive' }, false],
    [{ after: 2, matches: '^$' }, true],
    // It did not run itself.
    [{ after: 3 }, false],
    [{ after: 3, doesNotMatch: 'x' }, false],
  ])('%j: %s', (more, runs) => expect(mayRun(command(9, 'x', more), results)).toBe(runs));
});

test('results are trimmed and cut, warnings are lines of their own', () => {
  expect(resultOf('  active\n')).toBe('active');
  expect(resultOf('x'.repeat(10_000))).toHaveLength(4_096);
  expect(warningsIn('a\nNODELOG_WARN: swap is on\nx NODELOG_WARN: no\nNODELOG_WARN:\nNODELOG_WARN:b')).toEqual([
    'swap is on',
    'b',
  ]);
});

test('the place is read as it was written, and nothing else is one', () => {
  const place = { digest: 'd', finished: 3, failed: 1, results: { 1: 'active' } };
  expect(parsePlace(formatPlace(place))).toEqual(place);
  for (const text of [
    '',
    '{',
    'null',
    '{}',
    '[]',
    JSON.stringify({ ...place, finished: -1 }),
    JSON.stringify({ ...place, failed: 'x' }),
  ]) {
    expect(parsePlace(text)).toBeUndefined();
  }
});

test.each([
  ['WAIT_FOR_CONTROL_PLANE: none is ready', 'wait'],
  ['FIRST_NODE_CLAIM_RELEASED: n2 has it', 'released'],
  ['no install plan is configured', undefined],
  ['x WAIT_FOR_CONTROL_PLANE: ', undefined],
])('%s', (details, expected) => expect(refusalOf(details)).toBe(expected));

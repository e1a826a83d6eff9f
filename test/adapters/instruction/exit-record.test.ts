import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseExitRecord } from '../../../src/adapters/instruction/exit-record.js';

const lines = {
  head: 'holdfast-exit 1',
  exitCode: 'exit-code 3',
  signal: 'signal 0',
  timedOut: 'timed-out 0',
  cancelled: 'cancelled 0',
  startError: 'start-error -',
  stdout: 'stdout 5 7',
  stderr: 'stderr 0 0',
  end: 'end\n',
};
const record = (changes: Partial<typeof lines> = {}) => Object.values({ ...lines, ...changes }).join('\n');

describe('an exit record', () => {
  test('is what native/test/exit_record_test.cc expects', () => {
    expect(parseExitRecord(record())).toEqual({
      exitCode: 3,
      signal: undefined,
      timedOut: false,
      cancelled: false,
      startError: undefined,
      stdout: { kept: 5, dropped: 7 },
      stderr: { kept: 0, dropped: 0 },
    });
  });

  test('tells what ended it', () => {
    expect(
      parseExitRecord(
        record({ exitCode: 'exit-code -1', signal: 'signal 9', timedOut: 'timed-out 1', cancelled: 'cancelled 1' }),
      ),
    ).toMatchObject({ exitCode: -1, signal: 9, timedOut: true, cancelled: true });
    expect(parseExitRecord(record({ startError: 'start-error E2BIG' }))).toMatchObject({ startError: 'E2BIG' });
  });

  test('A4: of a cut one nothing is believed', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: record().length - 1 }), (length) => {
        expect(parseExitRecord(record().slice(0, length))).toBeUndefined();
      }),
    );
  });

  test.each([
    ['nothing', ''],
    ['the reserved bytes', '\n'.repeat(512)],
    ['another version', record({ head: 'holdfast-exit 2' })],
    ['something in front', `\n${record()}`],
    ['something behind', `${record()}\n`],
    ['an exit code that is none', record({ exitCode: 'exit-code x' })],
    ['a missing number', record({ stdout: 'stdout 5' })],
    ['another order', record({ stdout: 'stderr 0 0', stderr: 'stdout 5 7' })],
  ])('with %s is none', (_, text) => {
    expect(parseExitRecord(text)).toBeUndefined();
  });

  test('whatever stands in it, it is a record or none, and never an error', () => {
    const line = fc.oneof(...Object.values(lines).map((each) => fc.constant(each)), fc.string());
    fc.assert(
      fc.property(fc.array(line), (some) => {
        const text = some.join('\n');
        expect(parseExitRecord(text) !== undefined).toBe(text === record());
      }),
    );
  });
});

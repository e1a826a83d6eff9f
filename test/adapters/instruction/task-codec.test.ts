import { describe, expect, test } from 'vitest';
import { encodeTask } from '../../../src/adapters/instruction/task-codec.js';
import { task } from '../../support/tasks.js';

const echo = task('a', ['/bin/echo', 'hi'], {
  env: { A: 'b' },
  files: { script: new Uint8Array([0, 0xff, 0x0a]) },
  timeoutMs: 65_536,
  maxOutputBytes: 100,
});

describe('a task for the runner', () => {
  test('is what native/test/task_codec_test.cc reads', () => {
    const bytes = encodeTask(echo);
    expect(bytes.subarray(0, 12).toString('latin1')).toBe('HFTASK1\n\x44\0\0\0');
    expect(bytes.subarray(12).toString('latin1')).toBe(
      [
        '\0\0\x01\0\x64\0\0\0',
        '\x01\0\0\0/',
        '\x02\0\0\0\x09\0\0\0/bin/echo\x02\0\0\0hi',
        '\x01\0\0\0\x03\0\0\0A=b',
        '\x01\0\0\0\x06\0\0\0script\x03\0\0\0\0\xff\n',
      ].join(''),
    );
  });

  test('has lengths in bytes, not in characters', () => {
    const bytes = encodeTask({ ...echo, argv: ['/é'], env: {}, files: {} });
    expect(bytes.subarray(12).toString('latin1')).toContain('\x01\0\0\0\x03\0\0\0/\xc3\xa9');
  });

  test('cuts numbers that have no room', () => {
    const bytes = encodeTask({ ...echo, timeoutMs: 1e12, maxOutputBytes: Number.MAX_SAFE_INTEGER });
    expect(bytes.subarray(12, 20).toString('hex')).toBe('ffffffffffffffff');
  });

  test('takes a part of a millisecond for a whole one', () => {
    expect(encodeTask({ ...echo, timeoutMs: 0.5 }).readUInt32LE(12)).toBe(1);
  });

  test('is refused over 64 MiB', () => {
    const files = { big: new Uint8Array(64 * 1024 * 1024) };
    expect(() => encodeTask({ ...echo, files })).toThrow(/^instruction.not_started: a task of 67108\d{3} bytes is too large/);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { printable, printableLines } from '../../../src/domain/kernel/printable.js';

describe('text of others for people', () => {
  test.each([
    ['a service, 80 % ä 日 🙂', 'a service, 80 % ä 日 🙂', 'as it is'],
    ['\u001b[2J\u001b]0;title\u0007', '\\u001b[2J\\u001b]0;title\\u0007', 'what commands a terminal'],
    ['\u009b31m\u007f', '\\u009b31m\\u007f', 'what commands an old one'],
    ['ok\r\nerror: no', 'ok\\u000d\\u000aerror: no', 'a line of its own'],
    ['a\u2028b\u2029c', 'a\\u2028b\\u2029c', "Unicode's separators"],
    ['\u202egnp.exe\u2066\u200f', '\\u202egnp.exe\\u2066\\u200f', 'what runs backwards'],
    ['\0', '\\u0000', 'nothing at all'],
  ])('%j is shown as %j: %s', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  test('of several lines: they stay, with their tabs', () => {
    expect(printableLines('a\n\tb\r\u001b[1A')).toBe('a\n\tb\\u000d\\u001b[1A');
  });

  test('law: inside of JSON it is the same value; again, it changes nothing', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const json = JSON.stringify(text);
        expect(JSON.parse(printable(json))).toBe(text);
        expect(printable(printable(text))).toBe(printable(text));
        expect(printable(text)).not.toMatch(/\p{Cc}/u);
      }),
    );
  });
});

import { describe, expect, test } from 'vitest';
import { clockProblem } from '../../../src/domain/certificate/clock-skew.js';
import { DAY, HOUR, MINUTE, NOW } from './support.js';

describe('F3: a clock that is off is named for what it is', () => {
  test.each<{ name: string; serverTime: number; problem: string | undefined }>([
    {
      name: 'two hours behind',
      serverTime: NOW + 2 * HOUR,
      problem: "this machine's clock is 2 h behind the server's: it says 2026-01-31T12:00:00Z, the server's 2026-01-31T14:00:00Z",
    },
    {
      name: 'two hours ahead',
      serverTime: NOW - 2 * HOUR,
      problem:
        "this machine's clock is 2 h ahead of the server's: it says 2026-01-31T12:00:00Z, the server's 2026-01-31T10:00:00Z",
    },
    { name: 'a bit off, which breaks nothing', serverTime: NOW + 4 * MINUTE, problem: undefined },
    { name: 'right', serverTime: NOW, problem: undefined },
  ])('by the date of an answer: $name', ({ serverTime, problem }) => {
    expect(clockProblem({ now: NOW, serverTime })).toBe(problem);
  });

  test('by the certificate of a server that did not answer: behind', () => {
    const serverCertificate = { notBefore: NOW + 2 * HOUR, notAfter: NOW + 90 * DAY };
    expect(clockProblem({ now: NOW, serverCertificate })).toBe(
      "this machine's clock says 2026-01-31T12:00:00Z, but the server's certificate is valid from 2026-01-31T14:00:00Z to 2026-05-01T12:00:00Z: the clock is at least 2 h behind",
    );
  });

  test('by the certificate of a server that did not answer: ahead, or it has expired', () => {
    const serverCertificate = { notBefore: NOW - 90 * DAY, notAfter: NOW - 2 * HOUR };
    expect(clockProblem({ now: NOW, serverCertificate })).toBe(
      "this machine's clock says 2026-01-31T12:00:00Z, but the server's certificate is valid from 2025-11-02T12:00:00Z to 2026-01-31T10:00:00Z: it has expired, or the clock is 2 h or more ahead",
    );
  });

  test('a certificate that is refused for something else says nothing about clocks, and no evidence neither', () => {
    expect(clockProblem({ now: NOW, serverCertificate: { notBefore: NOW - DAY, notAfter: NOW + DAY } })).toBeUndefined();
    expect(clockProblem({ now: NOW })).toBeUndefined();
  });

  test('an answer tells more than a certificate', () => {
    const serverCertificate = { notBefore: NOW + HOUR, notAfter: NOW + DAY };
    expect(clockProblem({ now: NOW, serverTime: NOW, serverCertificate })).toBeUndefined();
  });
});

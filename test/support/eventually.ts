import { expect } from 'vitest';

/** Asks until the answer is right, for 10 s: a machine that has other things to do takes its time. */
export function eventually<Result>(probe: () => Result) {
  return expect.poll(probe, { timeout: 10_000 });
}

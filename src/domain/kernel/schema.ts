import { z } from 'zod';
import { durationMs, formatDuration } from './duration.js';
import { MAX_PROBLEMS } from './limits.js';
import type { PortNumber } from './network.js';
import { closest } from './suggest.js';

/** The parameters of an issue whose message is the whole sentence. */
export const SENTENCE = { sentence: true } as const;

/** An object whose unknown keys are errors with a suggestion, or named as not built yet. */
export function object<Shape extends z.ZodRawShape>(shape: Shape, planned: readonly string[] = []) {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return 'a mapping';
      return JSON.stringify(issue.keys.slice(0, MAX_PROBLEMS).map((key) => unknownKey(key, known, planned)));
    },
  });
}

function unknownKey(key: string, known: readonly string[], planned: readonly string[]): readonly [string, string] {
  if (planned.includes(key)) return [key, 'this key is not built yet in this version; remove it'];
  const near = closest(key, known);
  const hint = near === undefined ? `; the keys here are ${known.join(', ')}` : `; did you mean ${near}?`;
  return [key, `unknown key${hint}`];
}

export const port = z
  .number('a port number, 1 to 65535')
  .refine((value) => Number.isInteger(value) && value >= 1 && value <= 65_535, 'a port number, 1 to 65535')
  .transform((value) => value as PortNumber);

export function wholeNumber(least: number, most: number) {
  const expected = `a whole number from ${least} to ${most}`;
  return z.number(expected).refine((value) => Number.isInteger(value) && value >= least && value <= most, expected);
}

/** A duration as written; its bounds are in the message. */
export function durationBetween(leastMs: number, mostMs: number) {
  const expected = `a duration such as 30s or 5m, from ${formatDuration(leastMs)} to ${formatDuration(mostMs)}`;
  return z.string(expected).refine((text) => {
    const ms = durationMs(text);
    return ms !== undefined && ms >= leastMs && ms <= mostMs;
  }, expected);
}

export function oneOf<const Name extends string>(...names: readonly [Name, ...Name[]]) {
  const expected = names.length === 1 ? names[0] : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
  return z.enum(names, expected);
}

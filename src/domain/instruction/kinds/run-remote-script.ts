import { z } from 'zod';
import { built } from './kind.js';

const SECOND = 1_000;
const USUAL_TIMEOUT_S = 15 * 60;
const GREATEST_TIMEOUT_S = 60 * 60;

/** 512 characters at most and no `..`: it becomes a part of a URL. */
const script = z
  .string('text')
  .min(1, 'a script name')
  .max(512, 'at most 512 characters')
  .regex(/^[\w.\-/]+$/, 'a script name: letters, digits, _ . - and /')
  .refine((text) => !text.includes('..'), 'a script name without ..');

export const runRemoteScript = built({
  type: 'RUN_REMOTE_SCRIPT',
  schema: z.object({
    script,
    params: z.record(z.string(), z.unknown(), 'a map').nullish(),
    runInBackground: z.boolean('true or false').nullish(),
    timeoutSeconds: z.int('a whole number').nullish(),
    sha256: z
      .string('text')
      .regex(/^(?:[0-9a-fA-F]{64})?$/, '64 hex digits')
      .nullish(),
    lane: z
      .string('text')
      .regex(/^[\w.-]{0,64}$/, 'a lane: 1 to 64 letters, digits, _ . -')
      .nullish(),
    repeatable: z.boolean('true or false').nullish(),
  }),
  scheduling: { lanes: [], slot: 'script', deadlineMs: GREATEST_TIMEOUT_S * SECOND, repeat: 'never' },
  work({ script, params, runInBackground, timeoutSeconds, sha256, lane, repeatable }) {
    const timeoutMs = timeoutOf(timeoutSeconds ?? 0);
    const background = runInBackground ?? false;
    return {
      plan: {
        do: 'run_script',
        ...{ script, params: params ?? {}, timeoutMs, background },
        sha256: sha256 ? sha256.toLowerCase() : undefined,
      },
      subject: { kind: 'script', name: script },
      lanes: lane ? [`script/${lane}`] : [],
      deadlineMs: timeoutMs,
      // Whoever waits for a script waits as long as it may run (engine.md A11).
      waiterMs: timeoutMs,
      repeat: repeatable === true && !background ? 'repeat' : 'never',
    };
  },
});

/** Left out or 0 is the usual one; more than the greatest is the greatest, as older servers expect. */
function timeoutOf(seconds: number): number {
  return (seconds <= 0 ? USUAL_TIMEOUT_S : Math.min(seconds, GREATEST_TIMEOUT_S)) * SECOND;
}

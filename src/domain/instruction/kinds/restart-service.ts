import { z } from 'zod';
import { built } from './kind.js';

const USUAL_DELAY_S = 2;
const GREATEST_DELAY_S = 60;

export const restartService = built({
  type: 'RESTART_SERVICE',
  mayBeEmpty: true,
  schema: z.object({
    delaySeconds: z
      .int('a whole number')
      .min(0, 'at least 0')
      .max(GREATEST_DELAY_S, `at most ${GREATEST_DELAY_S}`)
      .default(USUAL_DELAY_S),
  }),
  scheduling: { lanes: ['agent'], slot: 'urgent', deadlineMs: 60_000, repeat: 'never' },
  work: ({ delaySeconds }) => ({ plan: { do: 'restart_service', delaySeconds } }),
});

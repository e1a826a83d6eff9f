import { z } from 'zod';
import { MAX_GENERATION } from './model.js';

/** An int64, exact: beyond 2^53 it is read as a bigint. */
export const generation = z
  .union([z.number().int(), z.bigint()], 'a whole number')
  .transform((value) => BigInt(value))
  .refine((value) => value >= -MAX_GENERATION - 1n && value <= MAX_GENERATION, 'an int64');

/** What VIP_ASSIGN and VIP_RELEASE say. */
export const vipPayload = z.object({ generation });

/** What `AmIVIPHolder` is answered with. */
export const holderAnswer = z.object({ isHolder: z.boolean('true or false'), generation });

import { z } from 'zod';
import { object, oneOf } from '../kernel/schema.js';
import { type InstructionPolicy, policyTypes, USUAL_POLICY } from './policy.js';

const types = z.array(oneOf(...policyTypes), 'a list of instruction types');
const pattern = z.string('a script name').regex(/^[\w.\-/]*\*?$/, 'a script name, which may end in *');
const patterns = z.array(pattern, 'a list of script names');

/** Of `instructions` in the configuration: `allow`, `deny`, and `scripts` with the same two. */
export const instructionPolicySchema = object({
  allow: types.optional(),
  deny: types.default([...USUAL_POLICY.deny]),
  scripts: object({ allow: patterns.optional(), deny: patterns.default([]) }).default({ deny: [] }),
}).transform(
  ({ allow, deny, scripts }): InstructionPolicy => ({ allow, deny, scripts: { allow: scripts.allow, deny: scripts.deny } }),
);

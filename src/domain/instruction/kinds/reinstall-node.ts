import { z } from 'zod';
import { built } from './kind.js';

const MAX_COMMAND = 64 * 1024;

export const reinstallNode = built({
  type: 'REINSTALL_NODE',
  schema: z.object({
    reinstallCommand: z
      .string('text')
      .max(MAX_COMMAND, `at most ${MAX_COMMAND} characters`)
      .refine((command) => command.trim() !== '', 'empty')
      .refine((command) => !command.includes('\0'), 'a NUL is in it'),
  }),
  // It may hold the token of the next registration.
  secret: true,
  scheduling: { lanes: ['*'], slot: 'urgent', deadlineMs: undefined, repeat: 'never' },
  work: ({ reinstallCommand }) => ({ plan: { do: 'reinstall_node', command: reinstallCommand } }),
});

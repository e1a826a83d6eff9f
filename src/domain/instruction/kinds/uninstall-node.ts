import { z } from 'zod';
import { built } from './kind.js';

export const uninstallNode = built({
  type: 'UNINSTALL_NODE',
  mayBeEmpty: true,
  // Whatever is sent along.
  schema: z.unknown(),
  scheduling: { lanes: ['*'], slot: 'urgent', deadlineMs: undefined, repeat: 'never' },
  work: () => ({ plan: { do: 'uninstall_node' } }),
});

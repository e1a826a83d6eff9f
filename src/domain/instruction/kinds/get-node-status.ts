import { z } from 'zod';
import { built } from './kind.js';

export const getNodeStatus = built({
  type: 'GET_NODE_STATUS',
  schema: z.object({}),
  scheduling: { lanes: [], slot: 'read', deadlineMs: 10_000, repeat: 'read' },
  work: () => ({ plan: { do: 'report_status' } }),
});

import { z } from 'zod';
import { built } from './kind.js';

export const getClusterJoinCmd = built({
  type: 'GET_CLUSTER_JOIN_CMD',
  schema: z.object({ asCp: z.boolean('true or false').nullish() }),
  scheduling: { lanes: ['kubeadm'], slot: 'work', deadlineMs: 90_000, repeat: 'repeat' },
  secret: true,
  work: ({ asCp }) => ({ plan: { do: 'join_command', asControlPlane: asCp ?? false } }),
});

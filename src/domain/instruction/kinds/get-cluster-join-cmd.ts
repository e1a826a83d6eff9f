import { unbuilt } from './kind.js';

export const getClusterJoinCmd = unbuilt({
  type: 'GET_CLUSTER_JOIN_CMD',
  scheduling: { lanes: ['kubeadm'], slot: 'work', deadlineMs: 90_000, repeat: 'repeat' },
});

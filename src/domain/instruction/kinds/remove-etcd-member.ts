import { unbuilt } from './kind.js';

export const removeEtcdMember = unbuilt({
  type: 'REMOVE_ETCD_MEMBER',
  scheduling: { lanes: ['etcd'], slot: 'work', deadlineMs: 120_000, repeat: 'probe' },
});

import { unbuilt } from './kind.js';

export const upgradeNodeK8s = unbuilt({
  type: 'UPGRADE_NODE_K8S',
  scheduling: { lanes: ['k8s-packages', 'kubeadm', 'etcd', 'kubectl'], slot: 'work', deadlineMs: 3_600_000, repeat: 'probe' },
  // A failure is `success`=false, never `ERROR`.
  failure: (message) => ({
    kind: 'json',
    type: 'UPGRADE_NODE_K8S_RESPONSE',
    value: { success: false, message, previousVersion: '', newVersion: '' },
  }),
});

import { type AbsolutePath, under } from '../kernel/paths.js';
import type { Argv, Removal } from '../uninstall/model.js';

/** kubeadm asks etcd and the API server first, each with its own patience. */
const RESET_MS = 10 * 60_000;
const STOP_MS = 60_000;

/** Only what kubeadm itself knows as its own; packages and images stay, for the next install. */
export const kubernetesRemoval: Removal = {
  capability: 'kubernetes',
  steps({ root }, scope) {
    if (scope === 'cleanup') return [];
    const inRoot = (path: string) => under(root, path as AbsolutePath);
    // kubeadm makes it where it joins a machine, and takes it away last.
    const joined: Argv = ['test', '-e', inRoot('/etc/kubernetes/kubelet.conf')];
    const volumes = inRoot('/var/lib/kubelet');
    return [
      {
        do: 'run',
        argv: ['systemctl', 'stop', '--', 'kubelet.service'],
        onlyIf: joined,
        timeoutMs: STOP_MS,
        what: 'stops the kubelet, where kubeadm has joined this machine',
      },
      // kubeadm cannot remove a folder that a volume is mounted in.
      { do: 'unmount_below', path: volumes, what: `volumes of pods that are mounted below ${volumes}` },
      {
        do: 'run',
        argv: ['kubeadm', 'reset', '--force'],
        onlyIf: joined,
        timeoutMs: RESET_MS,
        what: 'takes the machine out of Kubernetes, where kubeadm has joined it',
      },
      {
        do: 'remove_file',
        path: inRoot('/etc/kubernetes/enc/cert-upload-key.txt'),
        what: 'the key that control planes join with',
      },
    ];
  },
};

import type { Listener, PreflightRole } from './model.js';

export const GIB = 1024 ** 3;

/** What `kubeadm init` and `kubeadm join` call, and the agent. */
export const PROGRAMS = ['conntrack', 'ip', 'iptables', 'modprobe', 'mount', 'nft', 'nsenter', 'systemctl'] as const;
export const MEMORY_GIB: Readonly<Record<PreflightRole, number>> = { 'control-plane': 2, worker: 1 };
/** Images of a release take 4 GiB; two releases stand side by side during an upgrade, and a control plane has etcd beside them. */
export const DISK_GIB: Readonly<Record<PreflightRole, number>> = { 'control-plane': 20, worker: 10 };

/** Folders that are written to; several on one filesystem count once. */
export const FOLDERS = ['/', '/var/lib/containerd', '/var/lib/kubelet', '/var/lib/etcd', '/var/log'] as const;

/** A module, and what shows that its code is there although no module of that name is (built in). */
export const MODULES: Readonly<Record<string, readonly string[]>> = {
  overlay: ['/sys/module/overlay'],
  br_netfilter: ['/sys/module/br_netfilter', '/proc/sys/net/bridge'],
  nf_conntrack: ['/sys/module/nf_conntrack', '/proc/sys/net/netfilter/nf_conntrack_max'],
  nf_tables: ['/sys/module/nf_tables'],
};

export const CONTROLLERS = ['cpu', 'cpuset', 'memory', 'pids'] as const;

export const SYSCTLS: Readonly<Record<string, string>> = {
  'net.ipv4.ip_forward': '1',
  'net.bridge.bridge-nf-call-iptables': '1',
};

/** What Kubernetes' own programs, and distributions of it, have. */
export const CLUSTER_PATHS = [
  '/etc/kubernetes/admin.conf',
  '/etc/kubernetes/kubelet.conf',
  '/etc/kubernetes/manifests/kube-apiserver.yaml',
  '/var/lib/etcd/member',
  '/etc/rancher/k3s',
  '/etc/rancher/rke2',
  '/var/snap/microk8s',
] as const;

const tcp = (port: number): Listener => ({ protocol: 'tcp', port });

/** API server, etcd and its peers, controller manager, scheduler; of both, the kubelet. */
export const PORTS: Readonly<Record<PreflightRole, readonly Listener[]>> = {
  'control-plane': [6443, 2379, 2380, 10_250, 10_257, 10_259].map(tcp),
  worker: [10_250].map(tcp),
};

/** By name, the bit of capabilities(7). */
export const CAPABILITIES: Readonly<Record<string, bigint>> = {
  CAP_DAC_OVERRIDE: 1n,
  CAP_KILL: 5n,
  CAP_NET_BIND_SERVICE: 10n,
  CAP_NET_ADMIN: 12n,
  CAP_NET_RAW: 13n,
  CAP_SYS_ADMIN: 21n,
  CAP_SYS_RESOURCE: 24n,
};

const states = ['ready', 'not_ready', 'cordoned', 'not_installed', 'unknown'] as const;
/** How Kubernetes stands on a node, as heartbeats say it. */
export type NodeState = (typeof states)[number];

export function isNodeState(value: unknown): value is NodeState {
  return states.some((state) => state === value);
}

/** What a node is in its cluster. */
export interface Roles {
  readonly isCp: boolean;
  readonly isWorker: boolean;
  readonly status: NodeState;
}

/** What a Node object of Kubernetes says, as far as roles follow from it. */
export interface KubernetesNode {
  readonly spec?: { readonly unschedulable?: unknown; readonly taints?: unknown } | undefined;
  readonly status?: { readonly conditions?: unknown } | undefined;
}

/** Of kubeadm's control planes, whose own Pods alone may run there. */
const CONTROL_PLANE_TAINTS = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/** `isCp` is known on the machine; a control plane without its taint is a worker as well. */
export function rolesOf(node: KubernetesNode, isCp: boolean): Roles {
  const tainted = list(node.spec?.taints).some(
    ({ key, effect }) => CONTROL_PLANE_TAINTS.some((taint) => taint === key) && effect === 'NoSchedule',
  );
  const ready = list(node.status?.conditions).find(({ type }) => type === 'Ready')?.status;
  return { isCp, isWorker: !(isCp && tainted), status: stateOf(ready, node.spec?.unschedulable === true) };
}

function stateOf(ready: unknown, unschedulable: boolean): NodeState {
  if (ready !== 'True') return ready === 'False' ? 'not_ready' : 'unknown';
  return unschedulable ? 'cordoned' : 'ready';
}

function list(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'object' && item !== null) : [];
}

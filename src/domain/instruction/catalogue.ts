import { applyCr } from './kinds/apply-cr.js';
import { applyOperator } from './kinds/apply-operator.js';
import { deleteCr } from './kinds/delete-cr.js';
import { getClusterJoinCmd } from './kinds/get-cluster-join-cmd.js';
import { getNodeStatus } from './kinds/get-node-status.js';
import { installHelmChart } from './kinds/install-helm-chart.js';
import type { Kind } from './kinds/kind.js';
import { reinstallNode } from './kinds/reinstall-node.js';
import { removeEtcdMember } from './kinds/remove-etcd-member.js';
import { restartService } from './kinds/restart-service.js';
import { runKubectlCommand } from './kinds/run-kubectl-command.js';
import { runRemoteScript } from './kinds/run-remote-script.js';
import { runWebRequest } from './kinds/run-web-request.js';
import { setVpnPeers } from './kinds/set-vpn-peers.js';
import { uninstallHelmChart } from './kinds/uninstall-helm-chart.js';
import { uninstallNode } from './kinds/uninstall-node.js';
import { updateDnsmasq } from './kinds/update-dnsmasq.js';
import { upgradeNodeK8s } from './kinds/upgrade-node-k8s.js';
import { vipAssign } from './kinds/vip-assign.js';
import { vipRelease } from './kinds/vip-release.js';

/** Every type of instruction, one line each. */
export const catalogue: readonly Kind[] = [
  setVpnPeers,
  getNodeStatus,
  getClusterJoinCmd,
  applyOperator,
  applyCr,
  deleteCr,
  runKubectlCommand,
  runRemoteScript,
  installHelmChart,
  uninstallHelmChart,
  runWebRequest,
  uninstallNode,
  reinstallNode,
  removeEtcdMember,
  updateDnsmasq,
  upgradeNodeK8s,
  vipAssign,
  vipRelease,
  restartService,
];

const byType: ReadonlyMap<string, Kind> = new Map(catalogue.map((kind) => [kind.type, kind]));

/** Undefined for a type that this version does not know. */
export function kindOf(type: string): Kind | undefined {
  return byType.get(type);
}

/** Whether what it says and answers is sealed in the journal; of a type that this version does not know, nobody can tell. */
export function isSecret(type: string): boolean {
  return kindOf(type)?.secret ?? false;
}

import type { DnsmasqPlan } from '../dnsmasq/model.js';
import type { EtcdRemovalPlan } from '../etcd/model.js';
import type { HelmInstallPlan, HelmUninstallPlan } from '../kubernetes/helm.js';
import type { KubectlTask, KubernetesPlan } from '../kubernetes/model.js';
import type { UpgradePlan } from '../kubernetes/upgrade.js';
import type { OverlayPlanned } from '../overlay/plan.js';
import type { RemovalPlan } from '../uninstall/model.js';
import type { VipPlan } from '../vip/model.js';

/** What is to be done, for the shell to do. */
export type Plan =
  | { readonly do: 'report_status' }
  | ScriptPlan
  | WebPlan
  | DnsmasqPlan
  | EtcdRemovalPlan
  | KubernetesPlan
  | { readonly do: 'join_command'; readonly asControlPlane: boolean }
  | HelmInstallPlan
  | HelmUninstallPlan
  | OverlayPlanned
  | RemovalPlan
  | UpgradePlan
  | VipPlan
  | { readonly do: 'restart_service'; readonly delaySeconds: number };

/** Those whose program has a runner: it goes on when this process dies, and is adopted by the next (engine.md A4). */
export type TaskPlan = ScriptPlan | KubectlTask | HelmInstallPlan;

export function isTask(plan: Plan): plan is TaskPlan {
  return plan.do === 'run_script' || plan.do === 'kubectl_once' || plan.do === 'helm_install';
}

export interface ScriptPlan {
  readonly do: 'run_script';
  readonly script: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly timeoutMs: number;
  /** It is answered as soon as it runs, and its end is not reported. */
  readonly background: boolean;
  /** Of the body, in hex; another body is refused. */
  readonly sha256: string | undefined;
}

export interface WebPlan {
  readonly do: 'web_request';
  readonly url: string;
  readonly method: string;
  readonly body: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

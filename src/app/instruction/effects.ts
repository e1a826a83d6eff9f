import { type Answer, NO_CONTENT } from '../../domain/instruction/model.js';
import type { Plan, WebPlan } from '../../domain/instruction/plan.js';
import type { Row } from '../../domain/instruction/row.js';
import { cutForJson, MAX_TEXTS_JSON } from '../../domain/instruction/text.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ServiceManager } from '../../ports/instruction/service-manager.js';
import type { TaskExit, TaskId } from '../../ports/instruction/task-runner.js';
import type { WebClient } from '../../ports/outbound/web-client.js';
import type { DnsmasqEffect } from '../dnsmasq/dnsmasq-effect.js';
import type { EtcdRemovalEffect } from '../etcd/etcd-removal-effect.js';
import { type HelmEffect, helmTaskAnswer } from '../kubernetes/helm-effect.js';
import type { JoinEffect } from '../kubernetes/join-effect.js';
import { type KubernetesEffect, kubectlTaskAnswer } from '../kubernetes/kubernetes-effect.js';
import type { UpgradeEffect } from '../kubernetes/upgrade-effect.js';
import type { OverlayEffect } from '../overlay/overlay-effect.js';
import type { RemovalEffect } from '../uninstall/removal-effect.js';
import type { VipEffect } from '../vip/vip-effect.js';
import { type ScriptEffect, scriptAnswer } from './script-effect.js';

/** A web page's body that is asked for: in JSON and base64 it becomes 12 MiB at least. */
const MAX_BODY_BYTES = 9 * 1024 * 1024;

/** What an effect knows of its instruction. */
export interface EffectContext extends CallOptions {
  /** Of the only program that it may start. */
  readonly task: TaskId;
  /** On the boot-time clock; undefined for what an earlier process has received. */
  readonly receivedAt: number | undefined;
  /** How far an earlier attempt was. */
  readonly step: string | undefined;
  /** Durable when it resolves. */
  reached(step: string): Promise<void>;
}

export interface EffectResult {
  readonly answer: Answer;
  /** What is done when the answer is on its way (engine.md A16b). */
  readonly afterwards?: ((options: CallOptions) => Promise<void>) | undefined;
}

/** What each capability does for an instruction. */
export interface CapabilityEffects {
  readonly dnsmasq: DnsmasqEffect;
  readonly etcd: EtcdRemovalEffect;
  readonly helm: HelmEffect;
  readonly join: JoinEffect;
  readonly kubernetes: KubernetesEffect;
  readonly overlay: Pick<OverlayEffect, 'run'>;
  readonly upgrade: Pick<UpgradeEffect, 'run'>;
  readonly removal: RemovalEffect;
  readonly vip: Pick<VipEffect, 'run'>;
}

export interface EffectParts extends CapabilityEffects {
  readonly web: WebClient;
  readonly services: ServiceManager;
  readonly scripts: ScriptEffect;
  readonly nodeIsReady: () => boolean;
}

/** Carries plans out. What it throws is the instruction's failure. */
export class Effects {
  readonly #parts: EffectParts;

  constructor(parts: EffectParts) {
    this.#parts = parts;
  }

  async run(plan: Plan, context: EffectContext): Promise<EffectResult> {
    const { nodeIsReady, scripts, services, kubernetes, helm, join, overlay, dnsmasq, etcd, removal, upgrade, vip } = this.#parts;
    switch (plan.do) {
      case 'report_status':
        return { answer: { kind: 'json', type: 'NODE_STATUS', value: { nodeIsReady: nodeIsReady() } } };
      case 'run_script':
        return { answer: await scripts.run(plan, context) };
      case 'kubernetes_apply':
      case 'kubernetes_delete':
      case 'kubectl':
      case 'kubectl_once':
        return { answer: await kubernetes.run(plan, context) };
      case 'helm_install':
        return { answer: await helm.install(plan, context) };
      case 'helm_uninstall':
        return { answer: await helm.uninstall(plan, context) };
      case 'join_command':
        return { answer: await join.run(plan.asControlPlane, context) };
      case 'set_overlay':
        return { answer: await overlay.run(plan, context) };
      case 'update_dnsmasq':
        return { answer: await dnsmasq.run(plan, context) };
      case 'remove_etcd_member':
        return { answer: await etcd.run(plan, context) };
      case 'upgrade_node':
        return { answer: await upgrade.run(plan, context) };
      case 'uninstall_node':
      case 'reinstall_node':
        return removal.run(plan, context);
      case 'assign_vip':
      case 'release_vip':
        return { answer: await vip.run(plan, context) };
      case 'web_request':
        return { answer: await this.#webRequest(plan, context) };
      case 'restart_service': {
        const { delaySeconds } = plan;
        await services.check(context);
        return {
          answer: { kind: 'json', type: 'RESTART_SCHEDULED', value: { scheduled: true, delaySeconds } },
          afterwards: (options) => services.restart(delaySeconds, options),
        };
      }
    }
  }

  /**
   * What an instruction without a task of its own was accepted with, whose answer an earlier process had no time for; undefined when its
   * effect has not begun, or cannot be known.
   */
  async accepted({ type }: Row, task: TaskId, options: CallOptions): Promise<EffectResult | undefined> {
    if (type !== 'UNINSTALL_NODE' && type !== 'REINSTALL_NODE') return undefined;
    // Whoever starts this process sees to it that the order is carried out.
    return (await this.#parts.removal.isOrdered(task, options)) ? { answer: NO_CONTENT } : undefined;
  }

  /** What is answered for a task of an earlier process, whose end has been learnt. */
  ended(type: string, exit: TaskExit): Answer {
    switch (type) {
      case 'RUN_KUBECTL_COMMAND':
        return kubectlTaskAnswer(exit);
      case 'INSTALL_HELM_CHART':
        return helmTaskAnswer(exit);
      default:
        return scriptAnswer(exit);
    }
  }

  async #webRequest({ url, method, headers, body, timeoutMs }: WebPlan, { signal }: CallOptions): Promise<Answer> {
    const request = { url, method, headers, body, timeoutMs, maxBytes: MAX_BODY_BYTES, guarded: true };
    const { status, body: bytes } = await this.#parts.web.request(request, { signal });
    const responseBody = cutForJson(new TextDecoder().decode(bytes), MAX_TEXTS_JSON);
    return { kind: 'json', type: 'RUN_WEB_REQUEST', value: { responseBody, responseStatusCode: String(status) } };
  }
}

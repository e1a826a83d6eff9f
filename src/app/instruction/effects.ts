import type { Answer } from '../../domain/instruction/model.js';
import type { Plan, WebPlan } from '../../domain/instruction/plan.js';
import { cutForJson, MAX_TEXTS_JSON } from '../../domain/instruction/text.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ServiceManager } from '../../ports/instruction/service-manager.js';
import type { TaskId } from '../../ports/instruction/task-runner.js';
import type { WebClient } from '../../ports/outbound/web-client.js';
import type { OverlayEffect } from '../overlay/overlay-effect.js';
import type { ScriptEffect } from './script-effect.js';

/** A web page's body that is asked for: in JSON and base64 it becomes 12 MiB at least. */
const MAX_BODY_BYTES = 9 * 1024 * 1024;

/** What an effect knows of its instruction. */
export interface EffectContext extends CallOptions {
  /** Of the only program that it may start. */
  readonly task: TaskId;
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

export interface EffectParts {
  readonly web: WebClient;
  readonly services: ServiceManager;
  readonly scripts: ScriptEffect;
  readonly overlay: Pick<OverlayEffect, 'run'>;
  readonly nodeIsReady: () => boolean;
}

/** Carries plans out. What it throws is the instruction's failure. */
export class Effects {
  readonly #parts: EffectParts;

  constructor(parts: EffectParts) {
    this.#parts = parts;
  }

  async run(plan: Plan, context: EffectContext): Promise<EffectResult> {
    const { nodeIsReady, overlay, scripts, services } = this.#parts;
    switch (plan.do) {
      case 'report_status':
        return { answer: { kind: 'json', type: 'NODE_STATUS', value: { nodeIsReady: nodeIsReady() } } };
      case 'run_script':
        return { answer: await scripts.run(plan, context) };
      case 'set_overlay':
        return { answer: await overlay.run(plan, context) };
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

  async #webRequest({ url, method, headers, body, timeoutMs }: WebPlan, { signal }: CallOptions): Promise<Answer> {
    const request = { url, method, headers, body, timeoutMs, maxBytes: MAX_BODY_BYTES, guarded: true };
    const { status, body: bytes } = await this.#parts.web.request(request, { signal });
    const responseBody = cutForJson(new TextDecoder().decode(bytes), MAX_TEXTS_JSON);
    return { kind: 'json', type: 'RUN_WEB_REQUEST', value: { responseBody, responseStatusCode: String(status) } };
  }
}

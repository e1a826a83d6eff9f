import { AgentError } from '../../domain/kernel/errors.js';
import type { HostPort } from '../../domain/kernel/network.js';
import type { ApiServer, RunningBalancer, RuntimeStep } from '../../domain/loadbalancer/model.js';
import { nameServers } from '../../domain/loadbalancer/names.js';
import { planServing, type WantedServing } from '../../domain/loadbalancer/plan.js';
import { type BalancerSettings, mayReplace, renderConfig } from '../../domain/loadbalancer/render.js';
import type { UnitState } from '../../domain/service/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { BalancerConfig } from '../../ports/loadbalancer/balancer-config.js';
import type { BalancerRuntime } from '../../ports/loadbalancer/balancer-runtime.js';
import type { Logger } from '../../ports/logger.js';
import type { Units } from '../../ports/service/units.js';

export const HAPROXY_UNIT = 'haproxy.service';
/** HAProxy loads a file in well under a second. */
const SERVED_MS = 10_000;
const LOOK_MS = 100;
/** Added, then seen to be; drained, then removed. One more for what another hand does meanwhile. */
const PASSES = 4;

export interface BalancerKeeperParts {
  readonly config: BalancerConfig;
  readonly runtime: BalancerRuntime;
  readonly units: Units;
  readonly settings: Omit<BalancerSettings, 'hasIpv6'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Hex. */
  readonly sha256: (text: string) => string;
}

/** What a look at HAProxy, or a change of it, came to. */
export type BalancerReading =
  | { readonly state: 'absent' | 'waiting' }
  | { readonly state: 'serving'; readonly servers: readonly ApiServer[]; readonly running: RunningBalancer };

/** Brings HAProxy to a list: the file first, then the process, by its runtime API where that can do it (engine.md J1). */
export class BalancerKeeper {
  readonly #parts: BalancerKeeperParts;
  #reloads = 0;
  #changes = 0;

  constructor(parts: BalancerKeeperParts) {
    this.#parts = parts;
  }

  /** Since this process began. */
  counts(): { readonly reloads: number; readonly changes: number } {
    return { reloads: this.#reloads, changes: this.#changes };
  }

  /**
   * One at a time. A list that is undefined or empty leaves the newest one in force, also that of an earlier process. Nothing is taken for
   * done that was not seen to be: after a failure or a crash at any step, the same call goes on from what there is.
   * @throws AgentError `loadbalancer.*`, `service.*`, `command.*`
   */
  async bring(list: readonly HostPort[] | undefined, options: CallOptions): Promise<BalancerReading> {
    const { config, runtime } = this.#parts;
    const unit = await this.#unit(options);
    if (unit?.isKnown !== true) return { state: 'absent' };
    const before = await config.remembered(options);
    const isEmpty = list === undefined || list.length === 0;
    if (isEmpty && before === undefined) return { state: 'waiting' };
    const placed = await config.read(options);
    if (placed !== undefined && !mayReplace(placed, before !== undefined)) {
      throw new AgentError('loadbalancer.foreign', {
        problem: 'the configuration of HAProxy is of somebody else, and serves something',
      });
    }
    const running = await runtime.observe(options);
    const names = (running?.servers ?? []).map(({ name }) => name);
    const servers = isEmpty ? (before ?? []) : nameServers(list, before ?? [], names);
    const wanted = await this.#place(servers, { before, placed }, options);
    return { state: 'serving', servers, running: await this.#serve(wanted, { isActive: unit.isActive, running }, options) };
  }

  /** Undefined where nobody runs services. */
  async #unit(options: CallOptions): Promise<UnitState | undefined> {
    try {
      return await this.#parts.units.state(HAPROXY_UNIT, options);
    } catch (error) {
      if (error instanceof AgentError && error.code === 'service.unmanaged') return undefined;
      throw error;
    }
  }

  /** The list is remembered before the file is placed, and neither before HAProxy takes it. */
  async #place(
    servers: readonly ApiServer[],
    { before, placed }: { readonly before: readonly ApiServer[] | undefined; readonly placed: string | undefined },
    options: CallOptions,
  ): Promise<WantedServing> {
    const { config, settings, sha256, logger } = this.#parts;
    const { text, description } = renderConfig(servers, { ...settings, hasIpv6: await config.hasIpv6(options) }, sha256);
    if (text !== placed) {
      const problem = await config.test(text, options);
      if (problem !== undefined) throw new AgentError('loadbalancer.refused', { problem });
    }
    if (JSON.stringify(before) !== JSON.stringify(servers)) await config.remember(servers, options);
    if (text !== placed) {
      await config.place(text, options);
      logger.info('the configuration of HAProxy was written', { servers: servers.length, former: placed?.length });
    }
    return { servers, description };
  }

  async #serve(
    wanted: WantedServing,
    before: { readonly isActive: boolean; readonly running: RunningBalancer | undefined },
    options: CallOptions,
  ): Promise<RunningBalancer> {
    let { isActive, running } = before;
    for (let pass = 0; pass < PASSES; pass++) {
      const plan = planServing(wanted, isActive, running);
      if (plan.do === 'change') {
        // A server whose last connections are still ending goes with the next look.
        const isThere = plan.steps.every((step) => step.do === 'remove' && pass === PASSES - 1);
        if (running !== undefined && isThere) return running;
        running = (await this.#change(plan.steps, options)) ?? (await this.#load(wanted, running, 'reload', options));
      } else {
        if (plan.do === 'reload') this.#parts.logger.info('HAProxy is reloaded', { because: plan.because });
        running = await this.#load(wanted, running, plan.do === 'start' ? 'restart' : 'reload', options);
        isActive = true;
      }
    }
    throw new AgentError('loadbalancer.not_served', { problem: 'its servers do not stay as they are set' });
  }

  /** Undefined when the runtime API does not do it: a reload does. */
  async #change(steps: readonly RuntimeStep[], options: CallOptions): Promise<RunningBalancer | undefined> {
    const { runtime, logger } = this.#parts;
    try {
      for (const step of steps) await runtime.change(step, options);
    } catch (error) {
      options.signal.throwIfAborted();
      logger.warn('HAProxy is reloaded, since its runtime API refuses a change', { error });
      return undefined;
    }
    this.#changes += 1;
    return runtime.observe(options);
  }

  /** Resolves when another worker than before serves what is wanted. */
  async #load(
    { description }: WantedServing,
    before: RunningBalancer | undefined,
    how: 'restart' | 'reload',
    options: CallOptions,
  ): Promise<RunningBalancer> {
    const { units, runtime, clock } = this.#parts;
    await units[how](HAPROXY_UNIT, options);
    this.#reloads += 1;
    for (let waited = 0; waited < SERVED_MS; waited += LOOK_MS) {
      const running = await runtime.observe(options);
      if (running !== undefined && running.pid !== before?.pid && running.description === description) return running;
      await clock.sleep(LOOK_MS, options);
    }
    throw new AgentError('loadbalancer.not_served', {
      problem: `it was asked to ${how}, and no worker of it has taken the file`,
    });
  }
}

import { ipv4Range } from '../../domain/kernel/network.js';
import type { Clock } from '../../ports/clock.js';
import type { LocalRoutes } from '../../ports/dataplane/local-routes.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import { messageOf } from '../agent/managed-subsystem.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { Subsystem } from '../agent/subsystem.js';

export interface VipRoutesParts {
  readonly routes: LocalRoutes;
  readonly view: StateView;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
}

/** A third hand may take a route away. */
const LOOK_AGAIN_MS = 60_000;

/** Makes the addresses of services this machine's own, as the log names their range; before listeners are bound to them. */
export class VipRoutesSubsystem implements Subsystem, ProblemSource {
  readonly name = 'vip-routes';
  readonly #parts: VipRoutesParts;
  readonly #loop: ReconcileLoop;
  #range: string | undefined;
  #problem: StatusProblem | undefined;
  #unsubscribe: () => void = () => {};

  constructor(parts: VipRoutesParts) {
    const { clock, random, logger } = parts;
    this.#parts = parts;
    const run = async () => this.#set();
    this.#loop = new ReconcileLoop({ name: this.name, run, clock, random, logger, leastGapMs: 0, greatestGapMs: LOOK_AGAIN_MS });
  }

  async start(): Promise<void> {
    const { view } = this.#parts;
    this.#unsubscribe = view.onChange(() => {
      if (view.state.vipRange !== this.#range) this.#loop.markDirty();
    });
    this.#loop.start();
  }

  async ready(): Promise<void> {}

  /** The routes stay: services are reached while the agent restarts. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#loop.stop();
  }

  problems(): readonly StatusProblem[] {
    return this.#problem === undefined ? [] : [this.#problem];
  }

  #set(): void {
    const { routes, view, clock } = this.#parts;
    const { vipRange } = view.state;
    const range = vipRange === undefined ? undefined : ipv4Range(vipRange);
    // Nothing known is no reason to take anything away.
    if (range === undefined) return;
    try {
      routes.set([range]);
      this.#range = vipRange;
      this.#problem = undefined;
    } catch (error) {
      const remedy = 'run the agent as root or with CAP_NET_ADMIN; it is tried again by itself';
      this.#problem ??= { subject: 'vip routes', reason: messageOf(error), since: clock.now(), remedy };
      throw error;
    }
  }
}

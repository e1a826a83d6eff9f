import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { Subsystem } from '../agent/subsystem.js';
import type { EnrolmentService } from './enrolment-service.js';
import type { EnrolmentView } from './enrolment-view.js';
import { sweepEnrolment } from './sweep.js';

export interface EnrolmentSubsystemConfig {
  readonly store: ControlStore;
  readonly view: EnrolmentView;
  readonly service: EnrolmentService;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
}

const SWEEP_MS = 6 * 60 * 60_000;

/** Knows nodes and revocations from its readiness on: a port that judges certificates is to be opened only then. */
export class EnrolmentSubsystem implements Subsystem {
  readonly name = 'enrolment';
  readonly #config: EnrolmentSubsystemConfig;
  readonly #sweeping: ReconcileLoop;
  readonly #stopper = new AbortController();
  #following: Promise<void> = Promise.resolve();

  constructor(config: EnrolmentSubsystemConfig) {
    this.#config = config;
    const { clock, logger, random, store } = config;
    this.#sweeping = new ReconcileLoop({
      name: 'sweep of tokens and revocations',
      run: async (signal) => {
        await sweepEnrolment(store, clock.now(), { signal });
      },
      clock,
      logger,
      random,
      leastGapMs: SWEEP_MS,
      greatestGapMs: SWEEP_MS,
    });
  }

  async start(): Promise<void> {
    this.#following = this.#config.view.follow(this.#stopper.signal);
    this.#sweeping.start(this.#stopper.signal);
  }

  async ready(signal: AbortSignal): Promise<void> {
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    await Promise.race([this.#config.view.loaded(), aborted]);
  }

  async stop(): Promise<void> {
    this.#stopper.abort();
    await Promise.all([this.#following, this.#sweeping.stop(), this.#config.service.stop()]);
  }
}

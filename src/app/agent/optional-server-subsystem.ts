import { AgentError } from '../../domain/kernel/errors.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { DrivingServer } from '../../ports/driving/server.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import { messageOf } from './managed-subsystem.js';
import { ReconcileLoop } from './reconcile-loop.js';
import type { Subsystem } from './subsystem.js';

/** A server that stands needs nothing more; this is how often it is looked at nevertheless. */
const LOOK_AGAIN_MS = 60_000;

export interface OptionalServerParts {
  readonly name: string;
  readonly server: DrivingServer;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
}

/** A server that traffic does not need: while it cannot serve, that is a problem in `status`, and it is tried again with back-off. */
export class OptionalServerSubsystem implements Subsystem, ProblemSource {
  readonly name: string;
  readonly #server: DrivingServer;
  readonly #loop: ReconcileLoop;

  constructor({ name, server, clock, random, logger }: OptionalServerParts) {
    this.name = name;
    this.#server = server;
    const run = () => server.start();
    this.#loop = new ReconcileLoop({ name, run, clock, random, logger, leastGapMs: 0, greatestGapMs: LOOK_AGAIN_MS });
  }

  /** Resolves when the first attempt has ended, well or not. */
  async start(): Promise<void> {
    this.#loop.start();
    await this.#loop.settled();
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#server.stop();
  }

  problems(): readonly StatusProblem[] {
    const failure = this.#loop.status().error;
    if (failure === undefined) return [];
    const { error, since } = failure;
    const { reason, remedy } =
      error instanceof AgentError
        ? { reason: error.facts.problem ?? error.message, remedy: error.remedy }
        : { reason: messageOf(error), remedy: 'see the log of the daemon; it is tried again by itself' };
    return [{ subject: this.name, reason, since, remedy }];
  }
}

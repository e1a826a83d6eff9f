import { AgentError } from '../../domain/kernel/errors.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import { withinBudget } from './budget.js';
import type { Subsystem } from './subsystem.js';

const startBudgetMs = 10_000;
const usualStopBudgetMs = 10_000;

export type SubsystemPhase = 'registered' | 'starting' | 'started' | 'ready' | 'failed' | 'stopping' | 'stopped';

/** A subsystem as `status` shows it. `started` is not `ready` yet. */
export interface SubsystemState {
  readonly name: string;
  readonly phase: SubsystemPhase;
  /** When it entered that phase, milliseconds since the Unix epoch. */
  readonly since: number;
  /** Why it failed, or is not ready yet. */
  readonly reason?: string;
}

/** One subsystem and how far it is. What it throws is thrown on, and is its state's reason. */
export class ManagedSubsystem {
  readonly name: string;
  readonly #subsystem: Subsystem;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #state: SubsystemState;

  constructor(subsystem: Subsystem, clock: Clock, logger: Logger) {
    this.name = subsystem.name;
    this.#subsystem = subsystem;
    this.#clock = clock;
    this.#logger = logger.child({ subsystem: subsystem.name });
    this.#state = { name: this.name, phase: 'registered', since: clock.now() };
  }

  state(): SubsystemState {
    return this.#state;
  }

  reset(): void {
    this.#enter('registered');
  }

  /** Rejects when it fails, when its budget is over, and at once when `stop` ends. */
  async start(stop: AbortSignal): Promise<void> {
    this.#enter('starting');
    try {
      await withinBudget(
        this.#clock,
        startBudgetMs,
        `the start of ${this.name}`,
        (signal) => this.#subsystem.start(signal),
        stop,
      );
    } catch (error) {
      if (stop.aborted) throw error;
      // Whoever started it is told; only what nobody foresaw is worth its stack in the log as well.
      throw this.#fail('did not start', error, error instanceof AgentError ? 'debug' : 'error');
    }
    this.#enter('started');
  }

  async ready(stop: AbortSignal): Promise<void> {
    try {
      await this.#subsystem.ready(stop);
    } catch (error) {
      if (stop.aborted) return;
      throw this.#fail('is not ready', error);
    }
    if (this.#state.phase === 'started') this.#enter('ready');
  }

  /** It may become ready later; until then `reason` says why it is not. */
  stillPending(reason: string): void {
    this.#state = { ...this.#state, reason };
  }

  /** Rejects when it fails or its budget is over. What made the start fail stays its state's reason. */
  async stop(): Promise<void> {
    const before = this.#state;
    if (before.phase !== 'failed') this.#enter('stopping');
    const budgetMs = this.#subsystem.stopBudgetMs ?? usualStopBudgetMs;
    try {
      await withinBudget(this.#clock, budgetMs, `the stop of ${this.name}`, (signal) => this.#subsystem.stop(signal));
    } catch (error) {
      throw this.#fail('did not stop', error);
    }
    if (before.phase !== 'failed') this.#enter('stopped');
  }

  #enter(phase: SubsystemPhase): void {
    this.#state = { name: this.name, phase, since: this.#clock.now() };
    this.#logger.debug(`subsystem is ${phase}`);
  }

  #fail(what: string, error: unknown, level: 'debug' | 'error' = 'error'): unknown {
    const reason = `${what}: ${messageOf(error)}`;
    this.#state = { name: this.name, phase: 'failed', since: this.#clock.now(), reason };
    this.#logger[level](`subsystem ${what}`, { error });
    return error;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

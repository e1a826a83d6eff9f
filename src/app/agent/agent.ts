import type { Mode } from '../../domain/config/model.js';
import type { Identity } from '../../domain/identity/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Severity } from '../../domain/outbox/model.js';
import type { Clock } from '../../ports/clock.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { Logger } from '../../ports/logger.js';
import type { Outbox } from '../../ports/outbox/outbox.js';
import { withinBudget } from './budget.js';
import { ManagedSubsystem, messageOf, type SubsystemState } from './managed-subsystem.js';
import { Readiness } from './readiness.js';
import type { Subsystem } from './subsystem.js';

const flushBudgetMs = 10_000;

export interface AgentConfig {
  readonly identity: Identity;
  readonly orderedLog: OrderedLog;
  readonly mode?: Mode;
  readonly logger: Logger;
  /** Makes the outbox that the agent and its subsystems tell what happens. */
  readonly outbox: (capacity: number) => Outbox;
  readonly outboxCapacity?: number;
  readonly readyTimeoutMs?: number;
  readonly clock: Clock;
}

/** Something that threw in its stop, or did not come to its end. */
export interface StopFailure {
  readonly name: string;
  readonly error: unknown;
}

/** `idle` before a start and after one that failed; `stopped` is for good. */
type Phase = 'idle' | 'starting' | 'running' | 'stopping' | 'stopped';

/** Starts the parts of a node in the order of their registration and stops them in reverse, whatever any of them does. */
export class Agent {
  readonly #identity: Identity;
  readonly #orderedLog: OrderedLog;
  readonly #mode: Mode;
  readonly #logger: Logger;
  readonly #outbox: Outbox;
  readonly #clock: Clock;
  readonly #readyTimeoutMs: number;
  readonly #subsystems: ManagedSubsystem[] = [];
  #phase: Phase = 'idle';
  #run = new AbortController();
  #readiness = new Readiness();
  #starting: Promise<void> = Promise.resolve();
  #unwindFailures: readonly StopFailure[] = [];
  #stopping: Promise<readonly StopFailure[]> | undefined;

  /** @throws AgentError `agent.incomplete` when a part that it cannot do without is missing */
  constructor(config: AgentConfig) {
    const missing = (['identity', 'orderedLog', 'logger', 'outbox', 'clock'] as const).filter((part) => config[part] == null);
    if (missing.length > 0) throw new AgentError('agent.incomplete', { problem: `missing: ${missing.join(', ')}` });
    this.#identity = config.identity;
    this.#orderedLog = config.orderedLog;
    this.#mode = config.mode ?? 'production';
    this.#logger = config.logger;
    this.#outbox = config.outbox(config.outboxCapacity ?? 4096);
    this.#clock = config.clock;
    this.#readyTimeoutMs = config.readyTimeoutMs ?? 30_000;
  }

  identity(): Identity {
    return this.#identity;
  }

  orderedLog(): OrderedLog {
    return this.#orderedLog;
  }

  mode(): Mode {
    return this.#mode;
  }

  outbox(): Outbox {
    return this.#outbox;
  }

  /** In the order of their registration. */
  states(): readonly SubsystemState[] {
    return this.#subsystems.map((subsystem) => subsystem.state());
  }

  /** @throws AgentError `agent.invalid_subsystem`, `agent.duplicate_subsystem`, `agent.late_registration` */
  register(subsystem: Subsystem): void {
    if (subsystem == null || typeof subsystem.name !== 'string' || subsystem.name === '') {
      throw new AgentError('agent.invalid_subsystem', { problem: 'there is no subsystem, or it has no name' });
    }
    const { name } = subsystem;
    if (this.#phase !== 'idle') throw new AgentError('agent.late_registration', { problem: `${name} comes after the start` });
    if (this.#subsystems.some((each) => each.name === name)) {
      throw new AgentError('agent.duplicate_subsystem', { problem: `${name} is registered already` });
    }
    this.#subsystems.push(new ManagedSubsystem(subsystem, this.#clock, this.#logger));
  }

  /**
   * Resolves when every subsystem has started; `ready` tells of more. When one fails, it and those before it are stopped in reverse
   * before this rejects, and the agent may be started again.
   * @throws AgentError `agent.start_failed`, `agent.already_started`, `agent.stopped` when it was stopped meanwhile
   */
  start(): Promise<void> {
    if (this.#phase !== 'idle') {
      return Promise.reject(new AgentError('agent.already_started', { problem: `the agent is ${this.#phase}` }));
    }
    this.#phase = 'starting';
    const started = this.#start();
    this.#starting = started.catch(() => {});
    return started;
  }

  /**
   * Resolves when all subsystems have stopped or used up their budgets, and says which failed. Safe before `start`, where it does
   * nothing, while it runs, and twice.
   */
  stop(): Promise<readonly StopFailure[]> {
    if (this.#phase === 'idle') return Promise.resolve([]);
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  /** Resolves when every subsystem serves, when the time for that is over, when the start failed, or when the agent stops; never rejects. */
  ready(): Promise<void> {
    return this.#readiness.settled;
  }

  /** Why not all was ready when `ready` settled; `states` tells how it is now. */
  readyError(): AgentError | undefined {
    return this.#readiness.error;
  }

  async #start(): Promise<void> {
    this.#run = new AbortController();
    this.#readiness = this.#readiness.next();
    this.#unwindFailures = [];
    for (const subsystem of this.#subsystems) subsystem.reset();
    const touched: ManagedSubsystem[] = [];
    try {
      for (const subsystem of this.#subsystems) {
        this.#run.signal.throwIfAborted();
        touched.push(subsystem);
        await subsystem.start(this.#run.signal);
      }
      this.#run.signal.throwIfAborted();
    } catch (error) {
      const failure = this.#startError(error, touched.at(-1)?.name);
      this.#unwindFailures = await this.#stopAll(touched);
      this.#phase = this.#run.signal.aborted ? 'stopped' : 'idle';
      this.#readiness.settle(failure);
      throw failure;
    }
    // Without an await since the last look at the signal: a stop from here on finds the agent running.
    this.#phase = 'running';
    this.#tell('info', 'agent started');
    void this.#watchReadiness(this.#readiness, this.#run.signal);
  }

  #startError(error: unknown, name = ''): AgentError {
    if (this.#run.signal.aborted) {
      return new AgentError('agent.stopped', { problem: 'the agent was stopped while it started' }, { cause: error });
    }
    const problem = `${name} did not start: ${messageOf(error)}`;
    return new AgentError('agent.start_failed', { problem, subsystem: name }, { cause: error });
  }

  async #watchReadiness(readiness: Readiness, stop: AbortSignal): Promise<void> {
    const error = await readiness.watch(this.#subsystems, this.#readyTimeoutMs, this.#clock, stop);
    if (error === undefined) this.#tell('info', 'agent ready');
    else if (!stop.aborted) this.#tell('warning', error.message);
    readiness.settle(error);
  }

  async #stop(): Promise<readonly StopFailure[]> {
    const running = this.#phase === 'running';
    this.#run.abort(new AgentError('agent.stopped', { problem: 'the agent stops' }));
    if (!running) {
      // The start undoes itself; what of that failed is told here.
      await this.#starting;
      return this.#unwindFailures;
    }
    this.#phase = 'stopping';
    this.#tell('info', 'agent stops');
    const failures = await this.#stopAll(this.#subsystems);
    this.#phase = 'stopped';
    return failures;
  }

  async #stopAll(subsystems: readonly ManagedSubsystem[]): Promise<readonly StopFailure[]> {
    const failures: StopFailure[] = [];
    for (const subsystem of subsystems.toReversed()) {
      try {
        await subsystem.stop();
      } catch (error) {
        failures.push({ name: subsystem.name, error });
        this.#tell('error', `${subsystem.name} did not stop: ${messageOf(error)}`, { subsystem: subsystem.name });
      }
    }
    try {
      // After the last stop, so that what the teardown told is kept as well.
      await withinBudget(this.#clock, flushBudgetMs, 'the flush of the outbox', (signal) => this.#outbox.flush({ signal }));
    } catch (error) {
      failures.push({ name: 'outbox', error });
      this.#logger.error('the outbox was not flushed', { error });
    }
    return failures;
  }

  /** In the daemon's own log and, as an event, on the way to the sinks. Nothing waits for it. */
  #tell(severity: Severity, message: string, labels: Readonly<Record<string, string>> = {}): void {
    const level = severity === 'warning' ? 'warn' : severity === 'error' ? 'error' : 'info';
    this.#logger[level](message, labels);
    this.#outbox
      .append(
        {
          time: this.#clock.now(),
          kind: 'event',
          stream: 'agent',
          severity,
          message,
          labels: { node: this.#identity.nodeId, ...labels },
        },
        { signal: new AbortController().signal },
      )
      .catch((error: unknown) => this.#logger.warn('an event was not taken by the outbox', { error }));
  }
}

import { AgentError } from '../../domain/kernel/errors.js';
import type { Clock } from '../../ports/clock.js';
import { type ManagedSubsystem, messageOf } from './managed-subsystem.js';

/** What one start came to. `settled` never rejects; why not all was ready stands in `error`. */
export class Readiness {
  readonly #deferred = Promise.withResolvers<void>();
  #isSettled = false;
  #error: AgentError | undefined;

  get settled(): Promise<void> {
    return this.#deferred.promise;
  }

  get error(): AgentError | undefined {
    return this.#error;
  }

  /** For the next start: who has waited since before the first one waits on. */
  next(): Readiness {
    return this.#isSettled ? new Readiness() : this;
  }

  settle(error?: AgentError): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#error = error;
    this.#deferred.resolve();
  }

  /** Waits for all at the same time, at most `timeoutMs`, and says what is amiss. Those that are late run on and may become ready later. */
  async watch(
    subsystems: readonly ManagedSubsystem[],
    timeoutMs: number,
    clock: Clock,
    stop: AbortSignal,
  ): Promise<AgentError | undefined> {
    const pending = new Set(subsystems);
    const failures: { readonly name: string; readonly error: unknown }[] = [];
    const waits = subsystems.map(async (subsystem) => {
      await subsystem.ready(stop).catch((error: unknown) => failures.push({ name: subsystem.name, error }));
      pending.delete(subsystem);
    });
    const timer = new AbortController();
    // Ends early, without an error, when the agent stops or everything is ready.
    const timeout = clock.sleep(timeoutMs, { signal: AbortSignal.any([stop, timer.signal]) }).catch(() => {});
    await Promise.race([Promise.all(waits), timeout]);
    timer.abort();
    return stop.aborted ? stoppedEarly() : notReady([...pending], failures, timeoutMs);
  }
}

function stoppedEarly(): AgentError {
  return new AgentError('agent.stopped', { problem: 'the agent was stopped before it was ready' });
}

function notReady(
  pending: readonly ManagedSubsystem[],
  failures: readonly { readonly name: string; readonly error: unknown }[],
  timeoutMs: number,
): AgentError | undefined {
  if (pending.length === 0 && failures.length === 0) return undefined;
  for (const subsystem of pending) subsystem.stillPending(`not ready within ${timeoutMs} ms`);
  const parts = failures.map(({ name, error }) => `${name} is not ready: ${messageOf(error)}`);
  if (pending.length > 0) parts.push(`not ready within ${timeoutMs} ms: ${pending.map(({ name }) => name).join(', ')}`);
  const problem = parts.join('; ');
  return failures[0] === undefined
    ? new AgentError('agent.not_ready', { problem })
    : new AgentError('agent.not_ready', { problem }, { cause: failures[0].error });
}

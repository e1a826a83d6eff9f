import { AgentError } from '../../domain/kernel/errors.js';
import type { Clock } from '../../ports/clock.js';

/**
 * Runs `step` for at most `budgetMs`, then rejects with `agent.timed_out` whether or not it heeds its signal. The end of `stop` only
 * ends that signal: the step is waited for, so that nothing is undone while it is still being done.
 */
export async function withinBudget(
  clock: Clock,
  budgetMs: number,
  what: string,
  step: (signal: AbortSignal) => Promise<void>,
  stop?: AbortSignal,
): Promise<void> {
  stop?.throwIfAborted();
  const budget = new AbortController();
  const timer = new AbortController();
  const overdue = clock.sleep(budgetMs, { signal: timer.signal }).then(() => {
    const error = new AgentError('agent.timed_out', { problem: `${what} did not finish within ${budgetMs} ms` });
    budget.abort(error);
    throw error;
  });
  try {
    await Promise.race([run(step, stop === undefined ? budget.signal : AbortSignal.any([budget.signal, stop])), overdue]);
  } finally {
    timer.abort();
  }
}

/** A step that throws before its first await rejects like any other. */
async function run(step: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
  await step(signal);
}

import type { StepFailure } from '../../domain/kubernetes/upgrade.js';
import type { Clock } from '../../ports/clock.js';
import { messageOf } from '../agent/managed-subsystem.js';
import type { EffectContext } from '../instruction/effects.js';
import { NETWORK_WAITS_MS } from './step-tasks.js';

/** What a step says when it is done. */
export interface StepDone {
  readonly done: string;
}
export type StepEnd = StepDone | StepFailure;

export interface StepContext extends EffectContext {
  /** An earlier attempt may have begun this step. */
  readonly isAgain: boolean;
  /** Something is not as it should be, and the step goes on. */
  readonly warn: (message: string) => void;
}

/** What asks the network, as often as the programs that do. */
export async function patiently<T>(work: () => Promise<T>, clock: Clock, { signal, warn }: StepContext): Promise<T> {
  for (const wait of NETWORK_WAITS_MS) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      warn(againText(messageOf(error), wait));
      await clock.sleep(wait, { signal });
    }
  }
  return work();
}

/** For people. */
export function againText(problem: string, waitMs: number): string {
  return `${problem}; it is tried again in ${waitMs / 1_000} s`;
}

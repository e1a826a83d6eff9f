/** A part of the node that the agent starts in order and stops in reverse. */
export interface Subsystem {
  /** Unique in its agent; errors and `status` name it. */
  readonly name: string;
  /** How long `stop` may take; 10 s when it is not said. */
  readonly stopBudgetMs?: number;
  /**
   * Returns promptly, within 10 s: long work is owned by the subsystem. `signal` ends when the budget is over or the agent is stopped
   * meanwhile, not when `start` has returned. On rejection the agent still calls `stop`.
   */
  start(signal: AbortSignal): Promise<void>;
  /** Settles when it serves, or never can; called once after each start. `signal` ends when the agent stops. */
  ready(signal: AbortSignal): Promise<void>;
  /** Everything is released when it resolves. Safe before `start`, after a failed one, and twice. `signal` ends with the budget. */
  stop(signal: AbortSignal): Promise<void>;
}

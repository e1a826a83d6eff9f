/** A service of this machine. */
export interface UnitState {
  readonly isKnown: boolean;
  readonly isActive: boolean;
  /** Of its main process, microseconds since boot; 0 when it never ran. */
  readonly startedAt: bigint;
  /** Its state in its manager's words. */
  readonly text: string;
}

/** Why a restarted unit is not trusted, undefined when it is: states before, just after, and when it has settled. */
export function restartProblem(before: UnitState, after: UnitState, settled: UnitState): string | undefined {
  if (!after.isActive) return `it is ${after.text} after the restart`;
  if (after.startedAt === before.startedAt) return 'it was not restarted';
  if (!settled.isActive) return `it is ${settled.text} soon after the restart`;
  return settled.startedAt === after.startedAt ? undefined : 'it ended soon after the restart and was started again';
}

import { formatDuration } from '../../domain/kernel/duration.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import { messageOf } from '../agent/managed-subsystem.js';
import type { LinkState } from './link-subsystem.js';

const SUBJECT = 'link';
/** Without an answered heartbeat for so long nothing may be taken for granted (V2). */
const UNANSWERED_MS = 15_000;
/** The ordered log takes no more than that for granted. */
const SKEW_MS = 5_000;
const FOR_A_LOG = 'see the log of the daemon; it is tried again by itself';

/** What is wrong with the link and with what is said over it. */
export function linkProblems(
  state: LinkState,
  rolesFailure: { readonly error: unknown; readonly since: number } | undefined,
  clock: Pick<Clock, 'monotonic' | 'now'>,
): readonly StatusProblem[] {
  const ofRoles =
    rolesFailure === undefined
      ? []
      : [
          problem(
            `the roles of this node are carried over: ${reasonOf(rolesFailure.error)}`,
            rolesFailure.since,
            rolesFailure.error,
          ),
        ];
  return [...(state.connected === undefined ? lost(state) : connected(state.connected, clock)), ...ofRoles];
}

function lost({ lastError, lostSince }: LinkState): readonly StatusProblem[] {
  // It has only just begun.
  if (lastError === undefined) return [];
  return [problem(`no link to the control plane: ${reasonOf(lastError.error)}`, lostSince, lastError.error)];
}

function connected(
  { skewMs, lastBeat, since, server, supersededBy }: NonNullable<LinkState['connected']>,
  clock: Pick<Clock, 'monotonic' | 'now'>,
): readonly StatusProblem[] {
  const silentMs = lastBeat === undefined ? 0 : clock.monotonic() - lastBeat.answeredAt;
  const problems: StatusProblem[] = [];
  if (silentMs >= UNANSWERED_MS) {
    const reason = `the control plane has not answered a heartbeat for ${formatDuration(Math.floor(silentMs / 1_000) * 1_000)}`;
    problems.push({ subject: SUBJECT, reason, since: clock.now() - silentMs, remedy: FOR_A_LOG });
  }
  if (supersededBy !== undefined) {
    const reason = `the control plane is at epoch ${server?.epoch}, behind ${supersededBy}: what it instructs is dropped`;
    const remedy = 'look whether its store was put back from a copy; register this node again if it stays so';
    problems.push({ subject: SUBJECT, reason, since, remedy });
  }
  if (skewMs !== undefined && Math.abs(skewMs) >= SKEW_MS) {
    const by = formatDuration(Math.round(Math.abs(skewMs) / 1_000) * 1_000);
    const reason = `the clock of this machine is ${by} ${skewMs > 0 ? 'behind' : 'ahead of'} that of the control plane`;
    problems.push({ subject: SUBJECT, reason, since, remedy: 'set the clocks of both by NTP' });
  }
  return problems;
}

function problem(reason: string, since: number | undefined, error: unknown): StatusProblem {
  return { subject: SUBJECT, reason, since, remedy: error instanceof AgentError ? error.remedy : FOR_A_LOG };
}

function reasonOf(error: unknown): string {
  return error instanceof AgentError ? (error.facts.problem ?? error.message) : messageOf(error);
}

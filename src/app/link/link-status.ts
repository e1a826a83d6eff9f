import { AgentError } from '../../domain/kernel/errors.js';
import type { Clock } from '../../ports/clock.js';
import type { LinkStatus } from '../../ports/driving/operations.js';
import { messageOf } from '../agent/managed-subsystem.js';
import type { LinkState } from './link-subsystem.js';

/** A chain of causes longer than this says nothing more. */
const MOST_CAUSES = 4;

/** The link, for those who operate the node. */
export function linkStatus(
  { connected, lostSince, nextAttemptAt, lastError }: LinkState,
  clock: Pick<Clock, 'monotonic'>,
): LinkStatus {
  return {
    connected: connected === undefined ? undefined : connectedStatus(connected, clock),
    lostSince,
    nextAttemptAt,
    lastError: lastError === undefined ? undefined : { message: withCauses(lastError.error), at: lastError.at },
  };
}

function connectedStatus(
  { since, address: { host, port }, server, skewMs, lastBeat }: NonNullable<LinkState['connected']>,
  clock: Pick<Clock, 'monotonic'>,
): NonNullable<LinkStatus['connected']> {
  return {
    since,
    address: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
    server: server === undefined ? undefined : { id: server.server, fleet: server.fleet, epoch: server.epoch },
    skewMs,
    beatMs: lastBeat === undefined ? undefined : Math.max(0, clock.monotonic() - lastBeat.answeredAt),
  };
}

/** Each sentence once: many errors repeat what made them. */
function withCauses(error: unknown): string {
  const sentences: string[] = [];
  let cause = error;
  for (let depth = 0; cause !== undefined && depth < MOST_CAUSES; depth++) {
    const sentence = cause instanceof AgentError ? (cause.facts.problem ?? cause.message) : messageOf(cause);
    if (!sentences.some((said) => said.includes(sentence))) sentences.push(sentence);
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return sentences.join(': ');
}

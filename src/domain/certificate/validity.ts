import type { CertificateFacts } from './model.js';

export type Validity = Pick<CertificateFacts, 'notBefore' | 'notAfter'>;

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Clocks of new machines may be so far behind ours. */
export const BACKDATED_MS = 10 * MINUTE_MS;

/** An older agent, whose key is made for it, renews only when it starts: it gets a year. Roots live ten. */
const lifetimes = {
  ownKey: 90 * DAY_MS,
  madeKey: 365 * DAY_MS,
  server: 90 * DAY_MS,
  admin: 365 * DAY_MS,
  root: 3_652 * DAY_MS,
} as const;

/** `ownKey`: the node made the key and sent a request. `madeKey`: we made it. */
export type Lifetime = keyof typeof lifetimes;

/** @param now wall clock, milliseconds */
export function validityOf(lifetime: Lifetime, now: number): Validity {
  return { notBefore: now - BACKDATED_MS, notAfter: now + lifetimes[lifetime] };
}

/** Nobody renews the certificate of a person unasked: a year, or less where that is asked for. */
export const MAX_ADMIN_TTL_MS = lifetimes.admin;
export const MIN_ADMIN_TTL_MS = MINUTE_MS;

const EARLIEST_RENEWAL_MS = 30 * DAY_MS;
const JITTER = 0.1;

/**
 * When to ask for the next certificate: when 30 days or a third of the lifetime are left, whichever is less, so that a short-lived one
 * is not asked for at once.
 * @param jitter -1 to 1, stands for 10 % of that span earlier or later: nodes that registered together do not come back together
 */
export function renewalTime({ notBefore, notAfter }: Validity, jitter: number): number {
  const left = Math.min(EARLIEST_RENEWAL_MS, (notAfter - notBefore) / 3);
  return notAfter - left * (1 + JITTER * jitter);
}

const MIN_GAP_MS = MINUTE_MS;
const MAX_PER_DAY = 10;

/** Times of renewals that still count, with the one at `now`. */
export function withRenewal(renewals: readonly number[], now: number): readonly number[] {
  return [...counting(renewals, now), now];
}

/** When the next renewal may be: `now` if at once, one a minute and ten a day at most. */
export function nextRenewalAt(renewals: readonly number[], now: number): number {
  const counted = counting(renewals, now);
  const afterGap = (counted.at(-1) ?? Number.NEGATIVE_INFINITY) + MIN_GAP_MS;
  const tenth = counted.length < MAX_PER_DAY ? undefined : counted.at(-MAX_PER_DAY);
  return Math.max(now, afterGap, tenth === undefined ? now : tenth + DAY_MS);
}

/** Those of the last day. A time in the future is of a clock that was set back since, and would hold renewals up for as long. */
function counting(renewals: readonly number[], now: number): readonly number[] {
  return renewals.filter((time) => time <= now && time > now - DAY_MS);
}

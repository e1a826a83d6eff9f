import { formatInstant, roughly } from '../kernel/instant.js';
import type { Validity } from './validity.js';

/** Certificates are dated back by ten minutes: a clock that is off by less than half of that breaks nothing. */
const NOTEWORTHY_MS = 5 * 60_000;

/** What this machine knows of another's time. All wall clock, milliseconds. */
export interface ClockEvidence {
  readonly now: number;
  /** The `date` of an answer. */
  readonly serverTime?: number | undefined;
  /** Of the certificate that the server showed, when it did not answer. */
  readonly serverCertificate?: Validity | undefined;
}

/** Says in a sentence that this machine's clock is off, as far as can be known; `undefined` when nothing speaks for it. */
export function clockProblem({ now, serverTime, serverCertificate }: ClockEvidence): string | undefined {
  if (serverTime !== undefined) return betweenClocks(now, serverTime);
  if (serverCertificate === undefined) return undefined;
  const { notBefore, notAfter } = serverCertificate;
  const says = `this machine's clock says ${formatInstant(now)}`;
  const valid = `the server's certificate is valid from ${formatInstant(notBefore)} to ${formatInstant(notAfter)}`;
  if (now < notBefore) return `${says}, but ${valid}: the clock is at least ${roughly(notBefore - now)} behind`;
  if (now > notAfter) return `${says}, but ${valid}: it has expired, or the clock is ${roughly(now - notAfter)} or more ahead`;
  return undefined;
}

function betweenClocks(now: number, serverTime: number): string | undefined {
  const skew = serverTime - now;
  if (Math.abs(skew) < NOTEWORTHY_MS) return undefined;
  const relation = skew > 0 ? 'behind' : 'ahead of';
  const times = `it says ${formatInstant(now)}, the server's ${formatInstant(serverTime)}`;
  return `this machine's clock is ${roughly(skew)} ${relation} the server's: ${times}`;
}

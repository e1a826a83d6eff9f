import type { HeldCertificate, NodeRecord } from './records.js';
import type { Revocation } from './revocation.js';
import { withRenewal } from './validity.js';

/** Streams that are being moved over, and calls that are under way, need no longer. */
export const RETIRED_AFTER_MS = 5 * 60_000;

/** A node's record after a change, and what its certificates' change refuses from now on. */
export interface Succession {
  readonly record: NodeRecord;
  readonly revocations: readonly Revocation[];
}

/**
 * The node has called with the certificate `serial`. The one before is retired by the use of its successor, never by its issue: a node
 * that died before it had stored the new one comes back with the old one. `undefined` when this changes nothing.
 * @param now wall clock, milliseconds
 */
export function afterUse(record: NodeRecord, serial: string, now: number): Succession | undefined {
  const { current, pending, ...rest } = record;
  if (pending?.serial === serial) {
    return { record: { ...rest, current: { ...pending, firstUsed: now } }, revocations: [retirement(current, now)] };
  }
  if (current.serial !== serial || current.firstUsed !== undefined) return undefined;
  return { record: { ...record, current: { ...current, firstUsed: now } }, revocations: [] };
}

/** The node was given `next`. One that it was given before and never used is replaced. */
export function afterIssue(record: NodeRecord, next: HeldCertificate, now: number): Succession {
  const { pending } = record;
  return {
    record: { ...record, pending: next, renewals: withRenewal(record.renewals, now) },
    revocations: pending === undefined ? [] : [replacement(pending, now)],
  };
}

/** The node was given `next` in place of its first one, whose key nobody kept. */
export function afterReissue(record: NodeRecord, next: HeldCertificate, now: number): Succession {
  return { record: { ...record, current: next }, revocations: [replacement(record.current, now)] };
}

/** Of everything that a registration which is over was given. */
export function registrationEnd({ registration, current, pending }: NodeRecord, reason: string, now: number): Revocation {
  const until = Math.max(current.notAfter, pending?.notAfter ?? 0);
  return { of: 'registration', id: registration, from: now, kind: 'revoked', reason, until };
}

function retirement({ serial, notAfter }: HeldCertificate, now: number): Revocation {
  const reason = 'a newer certificate of this node is in use';
  return { of: 'serial', id: serial, from: now + RETIRED_AFTER_MS, kind: 'retired', reason, until: notAfter };
}

function replacement({ serial, notAfter }: HeldCertificate, now: number): Revocation {
  const reason = 'it was replaced before it was used';
  return { of: 'serial', id: serial, from: now, kind: 'revoked', reason, until: notAfter };
}

import { nodeKey, revocationKey, revocationPrefix } from '../../domain/certificate/records.js';
import { type Revocation, stricter } from '../../domain/certificate/revocation.js';
import { decodeNode, decodeRevocation } from '../../domain/certificate/schema.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Nid } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ControlStore, FormerStore } from '../../ports/store/control-store.js';
import { writeRevocation } from './record-store.js';

export interface CarriedRevocations {
  /** What the store that was put back did not know, or less strictly. Retired ones, which follow from renewals, are carried but not told. */
  readonly revoked: readonly Revocation[];
  /** Why nothing was read of the former store; undefined when all of it was. */
  readonly problem: string | undefined;
}

/** Of one commit. */
const BATCH = 50;

/**
 * Keeps what was revoked after a backup was made revoked when it is put back. @throws AgentError `store.*` of the store that is put back;
 * one that is replaced is often damaged, which is no reason to fail
 */
export async function carryRevocations(
  former: FormerStore | undefined,
  store: ControlStore,
  options: CallOptions,
): Promise<CarriedRevocations> {
  if (former === undefined) return { revoked: [], problem: 'none was here' };
  let known: readonly Revocation[];
  try {
    known = (await former.list(revocationPrefix, options)).map(({ key, value }) => decodeRevocation(key, value));
  } catch (error) {
    if (!(error instanceof AgentError)) throw error;
    return { revoked: [], problem: error.message };
  }
  const carried: Revocation[] = [];
  for (const revocation of known) {
    const kept = await afterwards(revocation, store, options);
    if (kept !== undefined) carried.push(kept);
  }
  for (let at = 0; at < carried.length; at += BATCH)
    await store.commit([], carried.slice(at, at + BATCH).map(writeRevocation), options);
  return { revoked: carried.filter(({ kind }) => kind === 'revoked'), problem: undefined };
}

/** What is to stand in the store that is put back; undefined when it needs no change. */
async function afterwards(revocation: Revocation, store: ControlStore, options: CallOptions): Promise<Revocation | undefined> {
  const key = revocationKey(revocation.of, revocation.id);
  const stored = await store.get(key, options);
  if (stored !== undefined) {
    const own = decodeRevocation(key, stored.value);
    const both = stricter(own, revocation);
    return both === own ? undefined : both;
  }
  return revocation.of === 'node' && (await isRegisteredSince(revocation, store, options)) ? undefined : revocation;
}

/** Serials and registrations never come back; a node does, with a token for it. */
async function isRegisteredSince({ id, from }: Revocation, store: ControlStore, options: CallOptions): Promise<boolean> {
  const key = nodeKey(id as Nid);
  const stored = await store.get(key, options);
  return stored !== undefined && decodeNode(key, stored.value).registered > from;
}

import { FIRST_ADMIN_KEY } from '../../domain/certificate/records.js';
import type { Aid } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Pair } from '../../ports/certificate/pair-store.js';
import type { Clock } from '../../ports/clock.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import { adminRecord } from './admin-certificate-service.js';
import type { OwnCertificates } from './own-certificates.js';
import { writeAdmin } from './record-store.js';

export interface FirstAdminConfig {
  readonly store: ControlStore;
  readonly own: OwnCertificates;
  readonly clock: Clock;
  readonly account: Aid;
  /** Puts the pair where people find it, in place of one that never counted. */
  readonly keep: (pair: Pair, options: CallOptions) => Promise<void>;
  /** Takes it away again. */
  readonly discard: () => Promise<void>;
}

const NAME = 'first';

/**
 * Makes the first certificate of an admin, once for a control plane however many replicas it has, so that somebody can make the others
 * from elsewhere. False when it was made before. A crash on the way makes another one at the next start: what is not in the store is in
 * nobody's hands.
 * @throws AgentError `certificate.failed`, `store.*`; what `keep` throws
 */
export async function makeFirstAdmin(
  { store, own, clock, account, keep, discard }: FirstAdminConfig,
  options: CallOptions,
): Promise<boolean> {
  if ((await store.get(FIRST_ADMIN_KEY, options)) !== undefined) return false;
  const now = clock.now();
  const pair = await own.admin(account, NAME, 'admin', options);
  await keep(pair, options);
  const identity = { role: 'admin', aid: account, name: NAME, grade: 'admin' } as const;
  const record = adminRecord({ ...pair, identity }, now, 'server');
  const writes = [{ key: FIRST_ADMIN_KEY, value: record.serial }, writeAdmin(record)];
  if ((await store.commit([{ key: FIRST_ADMIN_KEY, version: 0n }], writes, options)) !== undefined) return true;
  await discard();
  return false;
}

import { FIRST_ADMIN_KEY } from '../../domain/certificate/records.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Aid } from '../../domain/link/model.js';
import type { AuditLog } from '../../ports/audit/audit-log.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Pair } from '../../ports/certificate/pair-store.js';
import type { Clock } from '../../ports/clock.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import { adminRecord } from './admin-certificate-service.js';
import type { OwnCertificates, OwnPair } from './own-certificates.js';
import { writeAdmin } from './record-store.js';

export interface FirstAdminConfig {
  readonly store: ControlStore;
  readonly own: OwnCertificates;
  readonly clock: Clock;
  readonly account: Aid;
  readonly audit: Pick<AuditLog, 'append'>;
  /** Id of this replica. */
  readonly server: string;
  /** Hex. */
  readonly sha256: (text: string) => string;
  /** Puts the pair where people find it, in place of one that never counted. */
  readonly keep: (pair: Pair, options: CallOptions) => Promise<void>;
  /** Takes it away again. */
  readonly discard: () => Promise<void>;
}

const NAME = 'first';

/**
 * Makes the first certificate of an admin, once for a control plane however many replicas it has, so that somebody can make the others
 * from elsewhere. False when it was made before. A crash on the way makes another one at the next start: what is not in the store is in
 * nobody's hands. That it is made is in the audit log before it is on the disk, how it ended afterwards (engine.md H1).
 * @throws AgentError `audit.not_written`, and there is none; `certificate.failed`, `store.*`; what `keep` throws
 */
export async function makeFirstAdmin(config: FirstAdminConfig, options: CallOptions): Promise<boolean> {
  const { store, own, account, audit, server, sha256 } = config;
  if ((await store.get(FIRST_ADMIN_KEY, options)) !== undefined) return false;
  const pair = await own.admin(account, NAME, 'admin', options);
  const payloadDigest = sha256(JSON.stringify([account, NAME, 'admin']));
  const about = { who: `server:${server}`, tag: pair.serial, type: 'admin.create_certificate admin', rule: 'first start' };
  const record = { ...about, payloadDigest };
  await audit.append({ ...record, line: 'decision', result: 'allowed' }, options);
  try {
    const isMade = await keepFirst(config, pair, options);
    await audit.append({ ...record, line: 'outcome', result: isMade ? 'done' : 'another replica was first' }, options);
    return isMade;
  } catch (error) {
    const result = error instanceof AgentError ? error.code : 'failed';
    await audit.append({ ...record, line: 'outcome', result }, options).catch(() => {});
    throw error;
  }
}

/** Whether it counts: one replica's does. */
async function keepFirst(
  { store, clock, account, keep, discard }: FirstAdminConfig,
  pair: OwnPair,
  options: CallOptions,
): Promise<boolean> {
  await keep(pair, options);
  const identity = { role: 'admin', aid: account, name: NAME, grade: 'admin' } as const;
  const record = adminRecord({ ...pair, identity }, clock.now(), 'server');
  const writes = [{ key: FIRST_ADMIN_KEY, value: record.serial }, writeAdmin(record)];
  if ((await store.commit([{ key: FIRST_ADMIN_KEY, version: 0n }], writes, options)) !== undefined) return true;
  await discard();
  return false;
}

import type { CertificateFacts } from '../../domain/certificate/model.js';
import { certificateName, SERIAL_BYTES, serialOf } from '../../domain/certificate/names.js';
import { type AdminRecord, adminKey, adminPrefix } from '../../domain/certificate/records.js';
import type { Revocations } from '../../domain/certificate/revocation.js';
import { decodeAdmin } from '../../domain/certificate/schema.js';
import { MAX_ADMIN_TTL_MS, MIN_ADMIN_TTL_MS, validityOf } from '../../domain/certificate/validity.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { roughly } from '../../domain/kernel/instant.js';
import type { Aid } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { CertificateAuthority } from '../../ports/certificate/certificate-authority.js';
import type { Clock } from '../../ports/clock.js';
import type { AdminCertificateCall, AdminCertificateFacts, AdminCertificates } from '../../ports/driving/admin-certificates.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import { writeAdmin } from './record-store.js';

export interface AdminCertificateServiceConfig {
  readonly store: ControlStore;
  /** That of admins. */
  readonly authority: CertificateAuthority;
  readonly revocations: Revocations;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Of the control plane. */
  readonly account: Aid;
}

export class AdminCertificateService implements AdminCertificates {
  readonly #config: AdminCertificateServiceConfig;

  constructor(config: AdminCertificateServiceConfig) {
    this.#config = config;
  }

  async create({ name, grade, ttlMs, csr, by }: AdminCertificateCall, options: CallOptions) {
    const { account, authority, clock, randomBytes, store } = this.#config;
    const identity = { role: 'admin', aid: account, name: checkedName(name), grade } as const;
    if (!(ttlMs >= MIN_ADMIN_TTL_MS && ttlMs <= MAX_ADMIN_TTL_MS)) {
      const problem = `such a certificate lives ${roughly(MIN_ADMIN_TTL_MS)} to ${roughly(MAX_ADMIN_TTL_MS)}`;
      throw new AgentError('certificate.admin_invalid', { problem });
    }
    const key = await authority.proveKey(csr, options);
    const now = clock.now();
    const facts: CertificateFacts = {
      identity,
      serial: serialOf(randomBytes(SERIAL_BYTES)),
      ...validityOf('admin', now),
      notAfter: now + ttlMs,
    };
    const certificate = await authority.issue({ ...facts, key }, options);
    const record = adminRecord(facts, now, by);
    // It is known before anybody has it: what is not in the list cannot be revoked.
    const done = await store.commit([{ key: adminKey(record.serial), version: 0n }], [writeAdmin(record)], options);
    if (done === undefined) throw new AgentError('certificate.failed', { problem: `serial ${record.serial} is taken` });
    return { certificate, ca: authority.root, facts: this.#factsOf(record) };
  }

  async list(options: CallOptions): Promise<readonly AdminCertificateFacts[]> {
    const stored = await this.#config.store.list(adminPrefix, options);
    return stored
      .map(({ key, value }) => this.#factsOf(decodeAdmin(key, value)))
      .sort((a, b) => (a.name === b.name ? a.issuedAt - b.issuedAt : a.name < b.name ? -1 : 1));
  }

  #factsOf({ serial, aid, name, grade, issued, notAfter, by }: AdminRecord): AdminCertificateFacts {
    const revoked = this.#config.revocations.find('serial', serial)?.reason;
    return { serial, aid, name, grade, issuedAt: issued, expiresAt: notAfter, by, revoked };
  }
}

/** What is kept of an admin's certificate. @param now wall clock, milliseconds; RangeError for one of somebody else */
export function adminRecord({ identity, serial, notAfter }: CertificateFacts, now: number, by: string): AdminRecord {
  if (identity.role !== 'admin') throw new RangeError(`a certificate of the role ${identity.role}`);
  return { serial, aid: identity.aid, name: identity.name, grade: identity.grade, issued: now, notAfter, by };
}

function checkedName(name: string): string {
  try {
    return certificateName(name);
  } catch (cause) {
    const problem = `${JSON.stringify(name)} is no name: 1 to 63 letters, digits, ., _ and -, beginning with a letter or digit`;
    throw new AgentError('certificate.admin_invalid', { problem }, { cause });
  }
}

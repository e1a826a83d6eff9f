import type { CertificateIdentity } from '../../../src/domain/certificate/model.js';
import type { HeldCertificate, NodeRecord } from '../../../src/domain/certificate/records.js';
import type { Revocation, Revocations } from '../../../src/domain/certificate/revocation.js';
import { aid, nid, registrationId } from '../../../src/domain/link/model.js';

export const NOW = Date.UTC(2026, 0, 31, 12);
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const nodeIdentity = {
  role: 'node',
  aid: aid('acme'),
  nid: nid('n1'),
  registration: registrationId('r1'),
} as const satisfies CertificateIdentity;

export const held = (serial: string, more: Partial<HeldCertificate> = {}): HeldCertificate => ({
  serial,
  fingerprint: `key of ${serial}`,
  issued: NOW,
  notAfter: NOW + 90 * DAY,
  ...more,
});

export const nodeRecord = (more: Partial<NodeRecord> = {}): NodeRecord => ({
  nid: nodeIdentity.nid,
  aid: nodeIdentity.aid,
  registration: nodeIdentity.registration,
  machineId: 'm1',
  os: 'debian-12',
  hostCidrs: ['10.0.0.0/24'],
  address: '192.0.2.1',
  registered: NOW,
  current: held('aa'),
  renewals: [],
  ...more,
});

export const revocation = (more: Partial<Revocation>): Revocation => ({
  of: 'serial',
  id: 'aa',
  from: NOW,
  kind: 'revoked',
  reason: 'its key was seen elsewhere',
  until: NOW + DAY,
  ...more,
});

export const revocations = (...all: readonly Revocation[]): Revocations => ({
  find: (of, id) => all.find((each) => each.of === of && each.id === id),
});

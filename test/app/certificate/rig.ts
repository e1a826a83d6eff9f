import { createHash } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { type EnrolmentEvent, EnrolmentService } from '../../../src/app/certificate/enrolment-service.js';
import { EnrolmentView } from '../../../src/app/certificate/enrolment-view.js';
import { IssuerAuthority } from '../../../src/app/certificate/issuer-authority.js';
import { RegistrationService } from '../../../src/app/certificate/registration-service.js';
import { TokenService } from '../../../src/app/certificate/token-service.js';
import type { AuditRecord } from '../../../src/domain/audit/model.js';
import { type NodeRecord, nodeKey } from '../../../src/domain/certificate/records.js';
import { decodeNode } from '../../../src/domain/certificate/schema.js';
import { aid, type Nid, nid } from '../../../src/domain/link/model.js';
import type { RegisterCall } from '../../../src/ports/driving/enrolment.js';
import type { PeerNode } from '../../../src/ports/driving/node-streams.js';
import { FakeCertificateAuthority } from '../../fakes/fake-certificate-authority.js';
import { fakeCsr, parseFakeCertificate } from '../../fakes/fake-certificates.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { FakeLogger } from '../../fakes/fake-logger.js';

export const { signal } = new AbortController();
export const options = { signal };
export const MINUTE = 60_000;
export const DAY = 24 * 60 * MINUTE;
export const acme = aid('acme');
export const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** Bytes that are never the same twice, and always the same in a test. */
export function countingBytes(): (count: number) => Uint8Array {
  let calls = 0;
  return (count) => {
    calls += 1;
    return Uint8Array.from(createHash('sha512').update(String(calls)).digest().subarray(0, count));
  };
}

/** One replica of a control plane over a store. */
export function enrolmentRig({
  store = new FakeControlStore(),
  clock = new FakeClock(),
  randomBytes = countingBytes(),
}: {
  store?: FakeControlStore;
  clock?: FakeClock;
  randomBytes?: (count: number) => Uint8Array;
} = {}) {
  const logger = new FakeLogger();
  const authority = new FakeCertificateAuthority();
  const view = new EnrolmentView({ store, clock, logger, random: () => 0 });
  const events: EnrolmentEvent[] = [];
  const registered: Nid[] = [];
  const audited: AuditRecord[] = [];
  const audit = {
    failure: undefined as unknown,
    append: async (record: AuditRecord) => {
      if (audit.failure !== undefined) throw audit.failure;
      audited.push(record);
    },
  };
  const parts = { store, clock, logger, sha256, randomBytes };
  const onRegistered = async ({ nid: id }: { readonly nid: Nid }) => void registered.push(id);
  const service = new EnrolmentService({
    ...parts,
    view,
    authority: new IssuerAuthority({ certificate: authority.root, privateKey: '' }, authority),
    audit,
    onEvent: (event) => events.push(event),
    onRegistered,
  });
  const stopper = new AbortController();
  const following = view.follow(stopper.signal);
  onTestFinished(async () => {
    stopper.abort();
    await service.stop();
    await following;
  });
  const tokens = new TokenService(parts);
  const registrations = new RegistrationService({ store, clock });

  const token = async (replace?: Nid, ttlMs = 60 * MINUTE) => (await tokens.create({ aid: acme, ttlMs, replace }, options)).token;
  const register = (call: Partial<RegisterCall> & { readonly token: string }) =>
    service.register({ ...machine('m1'), ...call }, options);
  const record = async (id: string): Promise<NodeRecord | undefined> => {
    const stored = await store.get(nodeKey(nid(id)), options);
    return stored === undefined ? undefined : decodeNode(stored.key, stored.value);
  };
  /** Everything that was committed has been seen. */
  const seen = async () => {
    await service.settled();
    await clock.advance(0);
  };
  return {
    ...parts,
    authority,
    view,
    service,
    tokens,
    registrations,
    events,
    registered,
    audit,
    audited,
    logger,
    token,
    register,
    record,
    seen,
  };
}

export const machine = (machineId: string): Omit<RegisterCall, 'token'> => ({
  machineId,
  aid: 'acme',
  os: 'debian-12',
  hostCidrs: ['10.0.0.0/24'],
  csr: fakeCsr(`key of ${machineId}`),
  address: '192.0.2.1',
});

/** Who calls with this certificate. */
export function peer(certificate: string): PeerNode {
  const { identity, serial, notAfter } = parseFakeCertificate(certificate);
  if (identity?.role !== 'node') throw new Error('no node');
  return { identity, serial, notAfter, address: '192.0.2.1:40000' };
}

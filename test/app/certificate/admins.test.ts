import { describe, expect, test } from 'vitest';
import { AdminCertificateService } from '../../../src/app/certificate/admin-certificate-service.js';
import { ControlPlaneIdentity } from '../../../src/app/certificate/control-plane-identity.js';
import { makeFirstAdmin } from '../../../src/app/certificate/first-admin.js';
import { OwnCertificates } from '../../../src/app/certificate/own-certificates.js';
import { sweepEnrolment } from '../../../src/app/certificate/sweep.js';
import type { AdminGrade } from '../../../src/domain/certificate/model.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';
import { FakeAuditLog } from '../../fakes/fake-audit-log.js';
import { FakeAuthorityMaker, FakeCertificateAuthority } from '../../fakes/fake-certificate-authority.js';
import { fakeCsr, parseFakeCertificate } from '../../fakes/fake-certificates.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { FakeSealer } from '../../fakes/fake-sealer.js';
import { acme, countingBytes, DAY, enrolmentRig, MINUTE, options } from './rig.js';

function adminsRig() {
  const rig = enrolmentRig();
  const authority = new FakeCertificateAuthority();
  const admins = new AdminCertificateService({ ...rig, authority, revocations: rig.view, account: acme });
  const create = (name: string, grade: AdminGrade = 'operator', ttlMs = 90 * DAY) =>
    admins.create({ name, grade, ttlMs, csr: fakeCsr(`key of ${name}`), by: 'local:0' }, options);
  return { ...rig, authority, admins, create };
}

describe('certificates of admins', () => {
  test('F1, G1: of a key from a request, with account, name and role', async () => {
    const { clock, create, authority } = adminsRig();
    const { certificate, ca, facts } = await create('alice');
    expect(parseFakeCertificate(certificate)).toMatchObject({
      identity: { role: 'admin', aid: acme, name: 'alice', grade: 'operator' },
      serial: facts.serial,
      notBefore: clock.now() - 10 * MINUTE,
      notAfter: clock.now() + 90 * DAY,
    });
    expect(ca).toBe(authority.root);
    expect(facts).toEqual({
      ...{ serial: expect.stringMatching(/^[0-9a-f]{32}$/), aid: acme, name: 'alice', grade: 'operator', by: 'local:0' },
      ...{ issuedAt: clock.now(), expiresAt: clock.now() + 90 * DAY, revoked: undefined },
    });
  });

  test('are listed by name and time, with what became of them', async () => {
    const { admins, clock, create, registrations, seen, view } = adminsRig();
    await view.loaded();
    await create('bob');
    const { facts } = await create('alice');
    await clock.advance(1);
    await create('alice', 'admin');
    expect(await registrations.revokeCertificate(facts.serial, 'she has left', options)).toBe(true);
    await seen();
    expect((await admins.list(options)).map(({ name, grade, revoked }) => [name, grade, revoked])).toEqual([
      ['alice', 'operator', 'she has left'],
      ['alice', 'admin', undefined],
      ['bob', 'operator', undefined],
    ]);
  });

  test.each([0, MINUTE - 1, 365 * DAY + 1, Number.NaN, -1])('none lives %d ms', async (ttlMs) => {
    const { create, store } = adminsRig();
    await expect(create('alice', 'viewer', ttlMs)).rejects.toMatchObject({
      code: 'certificate.admin_invalid',
      facts: { problem: 'such a certificate lives 60 s to 365 days' },
    });
    expect(store.dump()).not.toContain('enrol/admin/');
  });

  test.each(['', 'alice:admin', 'a/b', '-a', 'a@b', 'x'.repeat(64)])('nobody is called %j', async (name) => {
    await expect(adminsRig().create(name)).rejects.toMatchObject({ code: 'certificate.admin_invalid' });
  });

  test('a request that proves no key makes nothing', async () => {
    const { admins, store } = adminsRig();
    const call = { name: 'alice', grade: 'admin', ttlMs: DAY, csr: new Uint8Array(3), by: 'local:0' } as const;
    await expect(admins.create(call, options)).rejects.toMatchObject({ code: 'certificate.csr_invalid' });
    expect(store.dump()).not.toContain('enrol/admin/');
  });

  test('F4: one that could not be written down is given to nobody', async () => {
    const { create, store } = adminsRig();
    store.setUnavailable(true);
    await expect(create('alice')).rejects.toMatchObject({ code: 'store.unavailable' });
  });

  test('the sweep forgets them a day after their end', async () => {
    const { admins, clock, create, store } = adminsRig();
    await create('alice', 'viewer', DAY);
    await clock.advance(2 * DAY - 1);
    await sweepEnrolment(store, clock.now(), options);
    expect(await admins.list(options)).toHaveLength(1);
    await clock.advance(2);
    await sweepEnrolment(store, clock.now(), options);
    expect(await admins.list(options)).toEqual([]);
  });
});

describe('the first admin', () => {
  async function replica(store: FakeControlStore, randomBytes = countingBytes()) {
    const clock = new FakeClock();
    const maker = new FakeAuthorityMaker();
    const authorities = await new ControlPlaneIdentity({ store, sealer: new FakeSealer(), maker, clock, randomBytes }).open(
      options,
    );
    const own = new OwnCertificates({ maker, authorities, clock, randomBytes });
    const disk: { pair: Pair | undefined } = { pair: undefined };
    const audit = new FakeAuditLog();
    await audit.open(options);
    const config = {
      ...{ store, own, clock, account: acme, audit, server: 's1', sha256: (text: string) => `digest of ${text}` },
      keep: async (pair: Pair) => {
        disk.pair = pair;
      },
      discard: async () => {
        disk.pair = undefined;
      },
    };
    return { config, disk, audit, first: () => makeFirstAdmin(config, options) };
  }

  test('is made once for a control plane, and may do everything', async () => {
    const store = new FakeControlStore();
    const { disk, audit, first } = await replica(store);
    expect(await first()).toBe(true);
    const { identity, serial } = parseFakeCertificate(disk.pair?.certificate ?? '');
    expect(identity).toEqual({ role: 'admin', aid: acme, name: 'first', grade: 'admin' });
    expect(store.dump()).toContain(`enrol/admin/${serial}`);
    expect(store.dump()).not.toContain(disk.pair?.privateKey);
    const record = { who: 'server:s1', tag: serial, type: 'admin.create_certificate admin', rule: 'first start' };
    const payloadDigest = 'digest of ["acme","first","admin"]';
    expect(audit.records).toEqual([
      { ...record, payloadDigest, line: 'decision', result: 'allowed' },
      { ...record, payloadDigest, line: 'outcome', result: 'done' },
    ]);
    disk.pair = undefined;
    expect(await first()).toBe(false);
    expect(disk.pair).toBeUndefined();
    expect(audit.records).toHaveLength(2);
  });

  test('of two replicas that start at once one has it', async () => {
    const store = new FakeControlStore();
    const randomBytes = countingBytes();
    const replicas = await Promise.all([replica(store, randomBytes), replica(store, randomBytes)]);
    const made = await Promise.all(replicas.map(({ first }) => first()));
    expect(made.toSorted()).toEqual([false, true]);
    expect(replicas.map(({ disk }) => disk.pair !== undefined)).toEqual(made);
    const outcomes = replicas.map(({ audit }) => audit.records.at(-1)?.result);
    expect(outcomes.toSorted()).toEqual(['another replica was first', 'done']);
  });

  test('what could not be put on the disk is not said to be made', async () => {
    const store = new FakeControlStore();
    const { config, audit } = await replica(store);
    const full = { ...config, keep: () => Promise.reject(new Error('no space left on device')) };
    await expect(makeFirstAdmin(full, options)).rejects.toThrow('no space');
    expect(audit.records.at(-1)).toMatchObject({ line: 'outcome', result: 'failed' });
    expect(await makeFirstAdmin(config, options)).toBe(true);
  });

  test('H1: what cannot be audited is not done', async () => {
    const store = new FakeControlStore();
    const { disk, audit, first } = await replica(store);
    audit.fill();
    await expect(first()).rejects.toMatchObject({ code: 'audit.not_written' });
    expect(disk.pair).toBeUndefined();
    expect(store.dump()).not.toContain('enrol/admin/');
    audit.free();
    expect(await first()).toBe(true);
  });
});

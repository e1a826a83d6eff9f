import { describe, expect, onTestFinished, test } from 'vitest';
import { AuthoritySubsystem } from '../../../src/app/certificate/authority-subsystem.js';
import { ControlPlaneIdentity } from '../../../src/app/certificate/control-plane-identity.js';
import { EnrolmentView } from '../../../src/app/certificate/enrolment-view.js';
import { OwnCertificates } from '../../../src/app/certificate/own-certificates.js';
import { writeCertificate, writeNode } from '../../../src/app/certificate/record-store.js';
import { RootService } from '../../../src/app/certificate/root-service.js';
import type { Issuer } from '../../../src/domain/certificate/records.js';
import { aid, nid, registrationId } from '../../../src/domain/link/model.js';
import { FakeAuthorityMaker } from '../../fakes/fake-certificate-authority.js';
import { parseFakeCertificate, provenOf } from '../../fakes/fake-certificates.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeSealer } from '../../fakes/fake-sealer.js';
import { countingBytes, DAY, options, signal } from './rig.js';

/** One replica. */
async function replica({ store = new FakeControlStore(), clock = new FakeClock(), randomBytes = countingBytes() } = {}) {
  const [maker, logger, sealer] = [new FakeAuthorityMaker(), new FakeLogger(), new FakeSealer()];
  const parts = { store, sealer, maker, clock, randomBytes };
  const authorities = await new ControlPlaneIdentity(parts).open(options);
  const view = new EnrolmentView({ store, clock, logger, random: () => 0 });
  const replaced: Issuer[] = [];
  const subsystem = new AuthoritySubsystem({
    ...parts,
    authorities,
    logger,
    random: () => 0,
    onReplaced: (issuer) => replaced.push(issuer),
  });
  await subsystem.start();
  const stopper = new AbortController();
  const following = view.follow(stopper.signal);
  onTestFinished(async () => {
    stopper.abort();
    await Promise.all([following, subsystem.stop()]);
  });
  await view.loaded();
  const roots = new RootService({ ...parts, revocations: view });
  /** A node with a certificate of the present root. */
  const enrol = async (name: string, notAfter = clock.now() + 90 * DAY) => {
    const identity = { role: 'node', aid: aid('acme'), nid: nid(name), registration: registrationId('r1') } as const;
    const serial = `a${Buffer.from(name).toString('hex')}${authorities.l2.roots.length}`;
    const certificate = await authorities.l2.issue({ identity, key: provenOf(name), serial, notBefore: 0, notAfter }, options);
    const held = { serial, fingerprint: 'f', issued: clock.now(), notAfter };
    const about = { machineId: 'm', os: '', hostCidrs: [], address: '', registered: 0, renewals: [] };
    await store.commit(
      [],
      [
        writeNode({ ...about, ...identity, current: held }),
        writeCertificate({ serial, nid: identity.nid, registration: identity.registration, notAfter, certificate }),
      ],
      options,
    );
    await clock.advance(0);
    return serial;
  };
  /** Everything that was committed has been seen. */
  const seen = async () => {
    for (let round = 0; round < 5; round += 1) await clock.advance(0);
  };
  return { ...parts, authorities, view, replaced, roots, enrol, seen, logger };
}

const statusOf = async ({ roots }: Pick<Awaited<ReturnType<typeof replica>>, 'roots'>) => (await roots.list(options))[1];

describe('F1: a new root', () => {
  test('certifies from then on, and both are trusted; every replica knows it, also one that is started later', async () => {
    const one = await replica();
    const two = await replica(one);
    const before = one.authorities.l2.root;
    const { current, former } = await one.roots.rotate('nodes', options);
    await one.seen();
    expect(former).toMatchObject({ serial: parseFakeCertificate(before).serial, replacedAt: one.clock.now(), inUse: [] });
    const three = await replica(one);
    for (const { authorities } of [one, two, three]) {
      expect(parseFakeCertificate(authorities.l2.root).serial).toBe(current.serial);
      expect(authorities.l2.roots).toEqual([authorities.l2.root, before]);
    }
    expect([one.replaced, two.replaced, three.replaced]).toEqual([['l2'], ['l2'], []]);
    expect(one.authorities.l1.roots).toHaveLength(1);
  });

  test('is shown to those who know the former one alone: it is certified by that one, until it is retired', async () => {
    const { authorities, clock, maker, randomBytes, roots, seen } = await replica();
    const own = new OwnCertificates({ maker, authorities, clock, randomBytes });
    const pairOf = () => own.server('l2', 'a', ['a.example'], options);
    const [before, first] = [authorities.l2.root, await pairOf()];
    expect([first.chain, own.isOfPresentRoot('l2', first)]).toEqual(['', true]);
    await roots.rotate('nodes', options);
    await seen();
    const second = await pairOf();
    expect([own.isOfPresentRoot('l2', first), own.isOfPresentRoot('l2', second)]).toEqual([false, true]);
    expect(second.certificate.endsWith(second.chain)).toBe(true);
    expect(maker.isIssuedBy(second.chain, before)).toBe(true);
    expect(parseFakeCertificate(second.chain).fingerprint).toBe(parseFakeCertificate(authorities.l2.root).fingerprint);
    await roots.retire('nodes', false, options);
    await seen();
    expect([own.isOfPresentRoot('l2', second), (await pairOf()).chain]).toEqual([false, '']);
  });

  test('keeps no key of the former one, and is sealed', async () => {
    const { roots, sealer, store } = await replica();
    await roots.rotate('registration', options);
    const stored = (await store.get('ca/l1', options))?.value ?? '';
    const record = sealer.open('ca/l1', stored);
    expect(record.match(/FAKE KEY/g)).toHaveLength(1);
    expect(stored).not.toContain('former');
  });

  test('follows one that is retired only, of two who ask one gets it, and an answer that is lost is seen by looking', async () => {
    const one = await replica();
    const both = await Promise.allSettled([one.roots.rotate('nodes', options), one.roots.rotate('nodes', options)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await expect(one.roots.rotate('nodes', options)).rejects.toMatchObject({ code: 'certificate.root_rotating' });
    one.store.loseNextAnswer('written');
    await expect(one.roots.rotate('registration', options)).rejects.toThrow();
    expect((await one.roots.list(options))[0]?.former).toBeDefined();
  });

  test('the answer to a repeated request has the root of its certificate', async () => {
    const { authorities, clock, roots, seen } = await replica();
    const before = authorities.l2.root;
    await clock.advance(1_000);
    await roots.rotate('nodes', options);
    await seen();
    expect(authorities.l2.rootAt(clock.now() - 1)).toBe(before);
    expect(authorities.l2.rootAt(clock.now())).toBe(authorities.l2.root);
  });
});

describe('F1: the former root is retired', () => {
  test('not while a valid certificate of it is in use: whose is named', async () => {
    const one = await replica();
    const serial = await one.enrol('n-old');
    await one.enrol('n-expired', one.clock.now() + 1_000);
    await one.roots.rotate('nodes', options);
    await one.seen();
    await one.enrol('n-new');
    await one.clock.advance(2_000);
    const inUse = [{ nid: 'n-old', serial, notAfter: expect.any(Number) }];
    expect(await statusOf(one)).toMatchObject({ former: { inUse } });
    await expect(one.roots.retire('nodes', false, options)).rejects.toMatchObject({
      code: 'certificate.root_in_use',
      message: expect.stringMatching(/1 nodes: n-old$/),
    });
    await one.enrol('n-old');
    const { retired, revoked } = await one.roots.retire('nodes', false, options);
    await one.seen();
    expect([revoked, one.authorities.l2.roots.length, retired.serial]).toEqual([[], 1, expect.any(String)]);
    expect((await statusOf(one))?.former).toBeUndefined();
    await expect(one.roots.retire('nodes', false, options)).rejects.toMatchObject({ code: 'certificate.no_former_root' });
  });

  test('with force: what is in use is revoked first, and a crash between the two is mended by doing it again', async () => {
    const one = await replica();
    const serial = await one.enrol('n-old');
    await one.roots.rotate('nodes', options);
    await one.seen();
    // The first commit revokes, the second retires.
    const commit = one.store.commit.bind(one.store);
    let commits = 0;
    one.store.commit = (...call) => {
      commits += 1;
      return commits === 2 ? Promise.reject(new Error('killed')) : commit(...call);
    };
    await expect(one.roots.retire('nodes', true, options)).rejects.toThrow('killed');
    await one.seen();
    expect(one.view.find('serial', serial)).toMatchObject({ kind: 'revoked', reason: 'its root was retired' });
    expect(one.authorities.l2.roots).toHaveLength(2);
    await one.roots.retire('nodes', true, options);
    await one.seen();
    expect(one.authorities.l2.roots).toHaveLength(1);
  });

  test('of 10,000 nodes twenty are named', async () => {
    const one = await replica();
    for (let index = 0; index < 30; index += 1) await one.enrol(`n-${String(index).padStart(2, '0')}`);
    await one.roots.rotate('nodes', options);
    const refused = one.roots.retire('nodes', false, options);
    await expect(refused).rejects.toMatchObject({ message: expect.stringMatching(/of 30 nodes: n-00, .*, n-19 and 10 more$/) });
  });
});

test('a record that cannot be used leaves what is known, and is told', async () => {
  const { authorities, logger, sealer, seen, store } = await replica();
  const before = authorities.l2.root;
  const broken = sealer.seal('ca/l2', JSON.stringify({ certificate: before, privateKey: 'FAKE KEY other\n' }));
  await store.commit([], [{ key: 'ca/l2', value: broken }], options);
  await seen();
  await store.commit([], [{ key: 'ca/l2', value: null }], options);
  await seen();
  expect(authorities.l2.root).toBe(before);
  expect(logger.dump('error')).toContain('the new root of l2 cannot be used');
  expect(signal.aborted).toBe(false);
});

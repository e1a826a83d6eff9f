import { describe, expect, test } from 'vitest';
import { ControlPlaneIdentity } from '../../../src/app/certificate/control-plane-identity.js';
import { EnrolmentSubsystem } from '../../../src/app/certificate/enrolment-subsystem.js';
import { openSealer } from '../../../src/app/certificate/open-sealer.js';
import { OwnCertificates } from '../../../src/app/certificate/own-certificates.js';
import { FakeAuthorityMaker } from '../../fakes/fake-certificate-authority.js';
import { checkedFakePair, parseFakeCertificate, presentFake } from '../../fakes/fake-certificates.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { FakeSealer, FakeSealerKeys } from '../../fakes/fake-sealer.js';
import { acme, countingBytes, DAY, enrolmentRig, MINUTE, options, signal } from './rig.js';

describe('E16: the keys of the store', () => {
  test('the first start makes one, and a record that only it opens', async () => {
    const [store, keys] = [new FakeControlStore(), new FakeSealerKeys()];
    const sealer = await openSealer(store, keys, options);
    expect(store.dump().split(' ').slice(0, 3)).toEqual(['seal/check', '=', 'k1']);
    expect((await openSealer(store, keys, options)).open('a', sealer.seal('a', 'text'))).toBe('text');
    expect(store.commits).toBe(1);
  });

  test('a key file that was brought is used', async () => {
    const sealer = await openSealer(new FakeControlStore(), new FakeSealerKeys(['of-the-fleet']), options);
    expect(sealer.keyId).toBe('of-the-fleet');
  });

  test('without its key a store is refused, and none is made', async () => {
    const store = new FakeControlStore();
    await openSealer(store, new FakeSealerKeys(), options);
    const missing = new FakeSealerKeys();
    await expect(openSealer(store, missing, options)).rejects.toMatchObject({ code: 'store.key_missing' });
    expect(await missing.load(options)).toBeUndefined();
  });

  test('with another key as well', async () => {
    const store = new FakeControlStore();
    await openSealer(store, new FakeSealerKeys(), options);
    await expect(openSealer(store, new FakeSealerKeys(['k9']), options)).rejects.toMatchObject({ code: 'store.key_wrong' });
  });

  test('when it is rotated, a replica without the new one is refused from then on', async () => {
    const [store, keys] = [new FakeControlStore(), new FakeSealerKeys()];
    const old = await openSealer(store, keys, options);
    keys.rotate('k2');
    const rotated = await openSealer(store, keys, options);
    expect([rotated.keyId, rotated.open('a', old.seal('a', 'text'))]).toEqual(['k2', 'text']);
    await expect(openSealer(store, new FakeSealerKeys(['k1']), options)).rejects.toMatchObject({ code: 'store.key_wrong' });
  });

  test('two replicas that begin at once with two files: one of them is refused', async () => {
    const store = new FakeControlStore();
    const both = await Promise.allSettled([
      openSealer(store, new FakeSealerKeys(['a']), options),
      openSealer(store, new FakeSealerKeys(['b']), options),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test('the store out of reach is no missing key', async () => {
    const store = new FakeControlStore();
    store.setUnavailable(true);
    await expect(openSealer(store, new FakeSealerKeys(), options)).rejects.toMatchObject({ code: 'store.unavailable' });
  });
});

function controlPlane(store = new FakeControlStore(), randomBytes = countingBytes()) {
  const clock = new FakeClock();
  const maker = new FakeAuthorityMaker();
  const parts = { store, sealer: new FakeSealer(), maker, clock, randomBytes };
  return { ...parts, identity: new ControlPlaneIdentity(parts) };
}

describe('F1: the authorities', () => {
  test('are three, made once for ten years, and do not trust each other', async () => {
    const { clock, identity, store, maker, randomBytes } = controlPlane();
    const authorities = await identity.open(options);
    const roots = [authorities.l1.root, authorities.l2.root, authorities.admin.root];
    expect(new Set(roots).size).toBe(3);
    for (const root of roots) {
      expect(parseFakeCertificate(root)).toMatchObject({
        notBefore: clock.now() - 10 * MINUTE,
        notAfter: clock.now() + 3_652 * DAY,
      });
    }
    const own = new OwnCertificates({ maker, authorities, clock, randomBytes });
    const { certificate } = await own.server('l1', 'a', ['a.example'], options);
    expect(roots.map((root) => presentFake(certificate, root).trusted)).toEqual([true, false, false]);
    const again = await controlPlane(store).identity.open(options);
    expect([again.l1.root, again.l2.root, again.admin.root]).toEqual(roots);
  });

  test('E16: are sealed, each under its own name', async () => {
    const { identity, store, sealer } = controlPlane();
    await identity.open(options);
    expect(store.dump()).not.toContain('FAKE KEY');
    const [l1, l2] = [await store.get('ca/l1', options), await store.get('ca/l2', options)];
    expect(sealer.open('ca/l2', l2?.value ?? '')).toContain('FAKE KEY');
    await store.commit([], [{ key: 'ca/l1', value: l2?.value ?? null }], options);
    await expect(controlPlane(store).identity.open(options)).rejects.toMatchObject({ code: 'store.seal_broken' });
    expect(l1).toBeDefined();
  });

  test('two replicas that begin at once have the same', async () => {
    const store = new FakeControlStore();
    const randomBytes = countingBytes();
    const both = await Promise.all([1, 2].map(() => controlPlane(store, randomBytes).identity.open(options)));
    expect(both[0]?.l2.root).toBe(both[1]?.l2.root);
    expect(both[0]?.l1.root).toBe(both[1]?.l1.root);
  });
});

describe('our own certificates', () => {
  test('F2: of servers and admins, with keys that are kept nowhere', async () => {
    const { clock, identity, maker, randomBytes, store } = controlPlane();
    const authorities = await identity.open(options);
    const own = new OwnCertificates({ maker, authorities, clock, randomBytes });
    const before = store.commits;
    const server = await own.server('l2', 'a', ['a.example', '192.0.2.1'], options);
    expect(parseFakeCertificate(server.certificate)).toMatchObject({
      identity: { role: 'server', name: 'a' },
      hosts: ['a.example', '192.0.2.1'],
      notAfter: clock.now() + 90 * DAY,
    });
    const admin = await own.admin(acme, 'alice', 'operator', options);
    expect(parseFakeCertificate(admin.certificate)).toMatchObject({
      identity: { role: 'admin', aid: acme, name: 'alice', grade: 'operator' },
      notAfter: clock.now() + 365 * DAY,
    });
    expect(admin.ca).toBe(authorities.admin.root);
    checkedFakePair(server);
    checkedFakePair(admin);
    expect(store.commits).toBe(before);
  });

  test('no name may make another identity of it', async () => {
    const { clock, identity, maker, randomBytes } = controlPlane();
    const own = new OwnCertificates({ maker, authorities: await identity.open(options), clock, randomBytes });
    expect(() => own.admin(acme, 'alice:admin', 'viewer', options)).toThrow(RangeError);
  });
});

describe('the subsystem', () => {
  function subsystem(rig = enrolmentRig()) {
    return { rig, part: new EnrolmentSubsystem({ ...rig, random: () => 0 }) };
  }

  test('is ready when nodes and revocations are known', async () => {
    const { part, rig } = subsystem();
    await part.start();
    await part.ready(signal);
    expect(rig.view.isLoaded).toBe(true);
    await part.stop();
    await part.stop();
  });

  test('waits for the store, and gives up with its signal', async () => {
    const store = new FakeControlStore();
    store.setUnavailable(true);
    const { part } = subsystem(enrolmentRig({ store }));
    await part.start();
    const stopper = new AbortController();
    const ready = part.ready(stopper.signal);
    stopper.abort(new Error('enough'));
    await expect(ready).rejects.toThrow('enough');
    await part.stop();
    store.setUnavailable(false);
  });

  test('sweeps every six hours', async () => {
    const { part, rig } = subsystem();
    await part.start();
    await rig.token(undefined, 1_000);
    await rig.clock.advance(7 * DAY);
    expect(await rig.tokens.list(options)).toHaveLength(1);
    await rig.clock.advance(6 * 60 * MINUTE + MINUTE);
    expect(await rig.tokens.list(options)).toHaveLength(0);
    await part.stop();
  });

  test('may be stopped before its start', async () => {
    const { part } = subsystem();
    await part.stop();
  });
});

import { describe, expect, test } from 'vitest';
import { type AgentFacts, type CallerFacts, nid } from '../../../src/domain/link/model.js';
import { encodeStream, nextStream, streamKey } from '../../../src/domain/link/stream-record.js';
import { nodeIdentity } from '../../domain/certificate/support.js';
import { fakeCsr, parseFakeCertificate, provenOf } from '../../fakes/fake-certificates.js';
import { DAY, enrolmentRig, MINUTE, options, peer } from './rig.js';

/** A node whose first certificate is in use. */
async function withNode(rig = enrolmentRig()) {
  await rig.view.loaded();
  const { nid: id, certificate } = await rig.register({ token: await rig.token() });
  const first = peer(certificate);
  rig.service.admit(first);
  await rig.seen();
  let requests = 0;
  const renew = async (from = first, csr?: Uint8Array) => {
    requests += 1;
    const answer = await rig.service.renew(from, csr ?? fakeCsr(`next ${requests}`), options);
    return peer(answer.certificate);
  };
  const use = async (node: typeof first) => {
    rig.service.admit(node);
    await rig.seen();
  };
  return { ...rig, id, first, renew, use };
}

describe('F5: the next certificate', () => {
  test('is of the same node and registration, for the key of the request', async () => {
    const { clock, first, service, authority } = await withNode();
    const { certificate, privateKey, ca } = await service.renew(first, fakeCsr('next'), options);
    expect([privateKey, ca]).toEqual(['', authority.root]);
    expect(parseFakeCertificate(certificate)).toMatchObject({
      identity: first.identity,
      fingerprint: provenOf('next').fingerprint,
      notAfter: clock.now() + 90 * DAY,
    });
  });

  test('for an older agent, with a key that we make: a year', async () => {
    const { clock, first, service } = await withNode();
    const { certificate, privateKey } = await service.renew(first, undefined, options);
    expect(privateKey).not.toBe('');
    expect(parseFakeCertificate(certificate).notAfter).toBe(clock.now() + 365 * DAY);
  });

  test('a request that is none is refused', async () => {
    const { first, service } = await withNode();
    await expect(service.renew(first, new Uint8Array(2), options)).rejects.toMatchObject({ code: 'certificate.csr_invalid' });
  });

  test('while the store is out of reach it is refused, and the node is served', async () => {
    const { first, service, store } = await withNode();
    store.setUnavailable(true);
    await expect(service.renew(first, fakeCsr('next'), options)).rejects.toMatchObject({ code: 'store.unavailable' });
    expect(() => service.admit(first)).not.toThrow();
    store.setUnavailable(false);
  });

  test('one a minute, and ten a day', async () => {
    const { clock, renew } = await withNode();
    await renew();
    await expect(renew()).rejects.toMatchObject({ code: 'certificate.too_many' });
    for (let i = 1; i < 10; i += 1) {
      await clock.advance(MINUTE);
      await renew();
    }
    await clock.advance(MINUTE);
    await expect(renew()).rejects.toMatchObject({
      code: 'certificate.too_many',
      facts: { problem: 'one certificate a minute and ten a day: the next one at 2026-02-01T12:00:00Z, in 23 h' },
    });
    await clock.advance(DAY);
    await renew();
  });

  test('the same request again has the same answer, and counts once', async () => {
    const { renew, first } = await withNode();
    const answer = await renew(first, fakeCsr('next'));
    expect(await renew(first, fakeCsr('next'))).toEqual(answer);
  });

  test('a renewal meets another one of the same node: both see it', async () => {
    const { first, service } = await withNode();
    const both = await Promise.allSettled([
      service.renew(first, fakeCsr('a'), options),
      service.renew(first, fakeCsr('b'), options),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });
});

describe('F5, F6: the old certificate', () => {
  test('works for as long as the new one was not used', async () => {
    const { clock, first, renew, service } = await withNode();
    await renew();
    // The agent died before it had stored it.
    await clock.advance(60 * MINUTE);
    expect(() => service.admit(first)).not.toThrow();
    await clock.advance(20 * DAY);
    expect(() => service.admit(first)).not.toThrow();
  });

  test('is retired five minutes after the first use of the new one, at the millisecond', async () => {
    const { clock, first, renew, use, service, seen } = await withNode();
    const next = await renew();
    await clock.advance(DAY);
    await use(next);
    await clock.advance(5 * MINUTE - 1);
    expect(() => service.admit(first)).not.toThrow();
    await clock.advance(1);
    expect(() => service.admit(first)).toThrow('a newer certificate of this node is in use');
    expect(() => service.admit(next)).not.toThrow();
    await seen();
  });

  test('streams that were opened with it are not ended', async () => {
    const { clock, renew, use, view } = await withNode();
    const ended: string[] = [];
    view.onRevoked(({ id }) => ended.push(id));
    await use(await renew());
    await clock.advance(10 * MINUTE);
    expect(ended).toEqual([]);
  });

  test('a second use prolongs nothing', async () => {
    const { clock, first, renew, use, service } = await withNode();
    const next = await renew();
    await use(next);
    await clock.advance(4 * MINUTE);
    await use(next);
    await use(first);
    await clock.advance(MINUTE);
    expect(() => service.admit(first)).toThrow('revoked');
  });

  test('one that was never used is replaced by the next', async () => {
    const { clock, first, renew, use, service, record, id } = await withNode();
    const lost = await renew();
    await clock.advance(MINUTE);
    const next = await renew();
    await use(next);
    expect(() => service.admit(lost)).toThrow('it was replaced before it was used');
    expect(() => service.admit(next)).not.toThrow();
    expect(() => service.admit(first)).not.toThrow();
    expect(await record(id)).toMatchObject({ current: { serial: next.serial } });
    expect(await record(id)).not.toHaveProperty('pending');
  });

  test('a use that could not be written down is written down at the next one', async () => {
    const { clock, first, renew, use, service, store, logger } = await withNode();
    const next = await renew();
    store.setUnavailable(true);
    await use(next);
    expect(logger.dump('warn')).toContain('the first use of a certificate could not be noted; its next use will be');
    store.setUnavailable(false);
    await clock.advance(10 * MINUTE);
    expect(() => service.admit(first)).not.toThrow();
    await use(next);
    await clock.advance(5 * MINUTE);
    expect(() => service.admit(first)).toThrow('revoked');
  });

  test('one that asks for the next before its own use was written down is not cut off by it', async () => {
    const { clock, renew, use, service, store, record, id } = await withNode();
    const second = await renew();
    store.setUnavailable(true);
    await use(second);
    store.setUnavailable(false);
    await clock.advance(MINUTE);
    const third = await renew(second);
    await clock.advance(10 * MINUTE);
    expect(() => service.admit(second)).not.toThrow();
    expect(await record(id)).toMatchObject({ current: { serial: second.serial }, pending: { serial: third.serial } });
  });

  test('on another replica, which has not heard of the new one yet, its use is noticed', async () => {
    const one = enrolmentRig();
    const { clock, first, renew, id, record } = await withNode(one);
    const other = enrolmentRig({ store: one.store, clock });
    await other.view.loaded();
    const next = await renew();
    other.service.admit(next);
    await other.seen();
    expect(await record(id)).toMatchObject({ current: { serial: next.serial, firstUsed: clock.now() } });
    await clock.advance(5 * MINUTE);
    expect(() => one.service.admit(first)).toThrow('revoked');
    expect(() => other.service.admit(first)).toThrow('revoked');
  });

  test('the store is asked once for a first use, and never after it', async () => {
    const { first, service, store, seen } = await withNode();
    const before = store.commits;
    store.failNext(new Error('the store was asked'));
    for (let i = 0; i < 100; i += 1) service.admit(first);
    await seen();
    expect(store.commits).toBe(before);
    await expect(store.get('x', options)).rejects.toThrow('the store was asked');
  });

  test('of a hundred calls at once with a new one, one is written down', async () => {
    const { renew, service, store, seen } = await withNode();
    const next = await renew();
    const before = store.commits;
    for (let i = 0; i < 100; i += 1) service.admit(next);
    await seen();
    expect(store.commits).toBe(before + 1);
  });
});

describe('F4: revocation', () => {
  test.each(['serial', 'registration', 'node'] as const)('by %s is known to every replica, and told', async (of) => {
    const one = enrolmentRig();
    const { first, id, registrations, seen } = await withNode(one);
    const other = enrolmentRig({ store: one.store, clock: one.clock });
    await other.view.loaded();
    const told: string[] = [];
    other.view.onRevoked((revocation) => told.push(`${revocation.of} ${revocation.id}`));
    const target = { serial: first.serial, registration: first.identity.registration, node: id }[of];
    await registrations.revoke({ of, id: target }, 'its key was seen elsewhere', options);
    await seen();
    await other.seen();
    for (const { service } of [one, other]) {
      expect(() => service.admit(first)).toThrow(
        expect.objectContaining({
          code: 'certificate.revoked',
          facts: { problem: `certificate ${first.serial} of node ${id} was revoked: its key was seen elsewhere` },
        }),
      );
    }
    expect(told).toEqual([`${of} ${target}`]);
  });

  test('while the store is out of reach the last known set holds', async () => {
    const { clock, first, registrations, seen, service, store, view, id } = await withNode();
    await registrations.revoke({ of: 'node', id }, 'stolen', options);
    await seen();
    store.setUnavailable(true);
    await clock.advance(10 * MINUTE);
    expect(view.isLoaded).toBe(true);
    expect(() => service.admit(first)).toThrow('stolen');
    store.setUnavailable(false);
  });

  test('what was revoked meanwhile is known, and told, when the store is back', async () => {
    const { clock, first, registrations, service, store, view, id } = await withNode();
    const told: string[] = [];
    const end = view.onRevoked((revocation) => told.push(revocation.id));
    store.setUnavailable(true);
    await clock.advance(MINUTE);
    store.setUnavailable(false);
    await registrations.revoke({ of: 'node', id }, 'stolen', options);
    await clock.advance(5_000);
    expect(() => service.admit(first)).toThrow('stolen');
    expect(told).toEqual([id]);
    end();
    await registrations.revoke({ of: 'node', id: 'n2' }, 'stolen', options);
    await clock.advance(0);
    expect(told).toEqual([id]);
  });

  test('who does not know the set yet lets nobody in', async () => {
    const { store } = enrolmentRig();
    store.setUnavailable(true);
    const blind = enrolmentRig({ store });
    await blind.clock.advance(MINUTE);
    const node = { identity: nodeIdentity, serial: 'aa', notAfter: 0, address: '192.0.2.1:1' };
    expect(() => blind.service.admit(node)).toThrow(expect.objectContaining({ code: 'store.unavailable' }));
    store.setUnavailable(false);
  });

  test('a node that was removed is refused, and does not renew', async () => {
    const { first, id, registrations, seen, service } = await withNode();
    expect(await registrations.remove(nid(id), options)).toBe(true);
    expect(await registrations.remove(nid(id), options)).toBe(false);
    await seen();
    expect(() => service.admit(first)).toThrow('the node was removed');
    await expect(service.renew(first, fakeCsr('x'), options)).rejects.toMatchObject({ code: 'certificate.revoked' });
  });

  test('after the stop nothing is noted any more', async () => {
    const { renew, service, store } = await withNode();
    const next = await renew();
    await service.stop();
    await service.stop();
    const before = store.commits;
    service.admit(next);
    await service.settled();
    expect(store.commits).toBe(before);
  });
});

describe('F5: only the machine that has the current stream', () => {
  const caller = { instance: 'i1', boot: 'b1', hardware: 'h1' };
  const facts = { ...caller, session: 1, journal: { id: 'j', counter: 1n }, capabilities: new Set([]) };

  /** The node has a stream of an agent that says who it is. */
  async function withStream(agent: AgentFacts | 'older' = facts) {
    const rig = await withNode();
    const { nid: id, registration } = rig.first.identity;
    const claim = { server: 's1', stream: 'x', at: 0, address: '192.0.2.1:1', agent: agent === 'older' ? undefined : agent };
    const value = encodeStream(nextStream(undefined, claim));
    await rig.store.commit([], [{ key: streamKey(id, registration), value }], options);
    const renewAs = (who: CallerFacts | undefined) =>
      rig.service.renew({ ...rig.first, address: '192.0.2.9:9' }, fakeCsr('next'), { ...options, caller: who });
    return { ...rig, renewAs };
  }

  test('its process, and one that was started after it', async () => {
    const { events, renewAs } = await withStream();
    expect((await renewAs(caller)).certificate).not.toBe('');
    expect((await renewAs({ ...caller, instance: 'i2' })).certificate).not.toBe('');
    expect(events).toEqual([]);
  });

  test.each([
    ['another boot', { ...caller, instance: 'i2', boot: 'b2' }],
    ['other hardware', { ...caller, instance: 'i2', hardware: 'h2' }],
  ])('not %s: that is an event, and nothing is issued', async (_, who) => {
    const { events, id, record, renewAs } = await withStream();
    const before = await record(id);
    await expect(renewAs(who)).rejects.toMatchObject({
      code: 'certificate.not_current',
      message: expect.stringContaining('192.0.2.1:1'),
    });
    expect(events).toEqual([
      { what: 'foreign_renewal', nid: nid(id), address: '192.0.2.9:9', current: '192.0.2.1:1', refused: true },
    ]);
    expect(await record(id)).toEqual(before);
  });

  test('an older agent, which says nothing, is let in, and that is an event where ours has the stream', async () => {
    const ours = await withStream();
    expect((await ours.renewAs(undefined)).certificate).not.toBe('');
    expect(ours.events).toMatchObject([{ what: 'foreign_renewal', refused: false }]);
    const older = await withStream('older');
    expect((await older.renewAs(undefined)).certificate).not.toBe('');
    expect(older.events).toEqual([]);
  });

  test('while the store is out of reach nobody', async () => {
    const { renewAs, store } = await withStream();
    store.setUnavailable(true);
    await expect(renewAs(caller)).rejects.toMatchObject({ code: 'store.unavailable' });
    store.setUnavailable(false);
  });
});

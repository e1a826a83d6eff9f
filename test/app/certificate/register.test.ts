import { describe, expect, test } from 'vitest';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { nid } from '../../../src/domain/link/model.js';
import { fakeCsr, fakeKey, parseFakeCertificate, provenOf } from '../../fakes/fake-certificates.js';
import { DAY, enrolmentRig, MINUTE, machine, options, peer } from './rig.js';

const refusal = { code: 'certificate.token_refused', facts: { problem: 'the token is wrong, has expired, or was used' } };

describe('a machine becomes a node', () => {
  test('with a token, and a key of its own: 90 days, and no key in the answer', async () => {
    const { clock, register, token, authority } = enrolmentRig();
    const { nid: id, certificate, privateKey, ca } = await register({ token: await token() });
    expect(id).toMatch(/^n-[0-9a-f]{16}$/);
    expect(privateKey).toBe('');
    expect(ca).toBe(authority.root);
    const issued = parseFakeCertificate(certificate);
    expect(issued).toMatchObject({
      identity: { role: 'node', aid: 'acme', nid: id },
      fingerprint: provenOf('key of m1').fingerprint,
      notBefore: clock.now() - 10 * MINUTE,
      notAfter: clock.now() + 90 * DAY,
    });
    expect(issued.serial).toMatch(/^[4-7][0-9a-f]{31}$/);
  });

  test('or with a key that we make: a year', async () => {
    const { clock, register, token } = enrolmentRig();
    const { certificate, privateKey } = await register({ token: await token(), csr: undefined });
    expect(privateKey).toMatch(/^FAKE KEY key-\d+\n$/);
    const issued = parseFakeCertificate(certificate);
    expect(issued.notAfter).toBe(clock.now() + 365 * DAY);
    expect(fakeKey('x')).not.toBe(privateKey);
  });

  test('is kept as it said, without what is no network', async () => {
    const { register, token, record, clock } = enrolmentRig();
    const hostCidrs = ['10.0.0.0/24', '10.0.0.1/24', 'fe80::/64', 'x'];
    const { nid: id, certificate } = await register({ token: await token(), hostCidrs });
    const { identity, serial, fingerprint } = parseFakeCertificate(certificate);
    expect(await record(id)).toEqual({
      nid: id,
      aid: 'acme',
      registration: identity?.role === 'node' ? identity.registration : '',
      machineId: 'm1',
      os: 'debian-12',
      hostCidrs: ['10.0.0.0/24'],
      address: '192.0.2.1',
      registered: clock.now(),
      current: { serial, fingerprint, issued: clock.now(), notAfter: clock.now() + 90 * DAY },
      renewals: [],
    });
  });

  test('two machines are two nodes', async () => {
    const { register, token } = enrolmentRig();
    const first = await register({ token: await token() });
    const second = await register({ ...machine('m2'), token: await token() });
    expect(second.nid).not.toBe(first.nid);
  });

  test('F7: use of the token, node and certificate are one step', async () => {
    const { store, register, token } = enrolmentRig();
    const text = await token();
    const before = store.commits;
    await register({ token: text });
    expect(store.commits).toBe(before + 1);
    expect(
      store
        .dump('enrol/')
        .split('\n')
        .map((line) => line.split('/').slice(0, 2).join('/')),
    ).toEqual(['enrol/certificate', 'enrol/node', 'enrol/token']);
  });

  test('F7: and if that step fails nothing is, and the token is good still', async () => {
    const { store, register, token, registrations } = enrolmentRig();
    const text = await token();
    store.loseNextAnswer('not written');
    // It is looked at again, and done.
    const { nid: id } = await register({ token: text });
    expect((await registrations.list(options)).map((node) => node.nid)).toEqual([id]);
  });

  test('F7: whose answer the store lost after it had written is the same node', async () => {
    const { store, register, token, registrations } = enrolmentRig();
    const text = await token();
    store.loseNextAnswer('written');
    const { nid: id, certificate } = await register({ token: text });
    expect((await registrations.list(options)).map((node) => node.nid)).toEqual([id]);
    expect((await register({ token: text })).certificate).toBe(certificate);
  });

  test('F4: while the store is out of reach registration is refused', async () => {
    const { store, register, token } = enrolmentRig();
    const text = await token();
    store.setUnavailable(true);
    await expect(register({ token: text })).rejects.toMatchObject({ code: 'store.unavailable' });
    store.setUnavailable(false);
    await register({ token: text });
  });

  test.each(['', ' ', 'a\u0000b', 'ä', 'x'.repeat(200)])('a machine id like %j is none', async (machineId) => {
    const { register, token } = enrolmentRig();
    await expect(register({ token: await token(), machineId })).rejects.toMatchObject({ code: 'certificate.incomplete' });
  });
});

describe('F7: the same token again', () => {
  test('from the same machine with the same key: the same answer, whatever became of the node', async () => {
    const { clock, register, token, seen, service } = enrolmentRig();
    const text = await token();
    const first = await register({ token: text });
    service.admit(peer(first.certificate));
    await seen();
    await clock.advance(10 * MINUTE - 1);
    expect(await register({ token: text })).toEqual(first);
    await clock.advance(1);
    await expect(register({ token: text })).rejects.toMatchObject(refusal);
  });

  test('from the same machine without a request: a new pair, and the one before is refused', async () => {
    const { register, token, seen, service, view } = enrolmentRig();
    await view.loaded();
    const text = await token();
    const first = await register({ token: text, csr: undefined });
    const second = await register({ token: text, csr: undefined });
    await seen();
    expect(second.nid).toBe(first.nid);
    expect(second.privateKey).not.toBe(first.privateKey);
    expect(() => service.admit(peer(first.certificate))).toThrow('it was replaced before it was used');
    expect(() => service.admit(peer(second.certificate))).not.toThrow();
  });

  test('and again, for ten minutes from the first use', async () => {
    const { clock, register, token } = enrolmentRig();
    const text = await token();
    await register({ token: text, csr: undefined });
    await clock.advance(6 * MINUTE);
    await register({ token: text, csr: undefined });
    await clock.advance(6 * MINUTE);
    await expect(register({ token: text, csr: undefined })).rejects.toMatchObject(refusal);
  });

  test('but not when the first one was used: somebody has it', async () => {
    const { register, token, seen, service, view, logger } = enrolmentRig();
    await view.loaded();
    const text = await token();
    const first = await register({ token: text, csr: undefined });
    service.admit(peer(first.certificate));
    await seen();
    await expect(register({ token: text, csr: undefined })).rejects.toMatchObject(refusal);
    expect(logger.lines.at(-1)?.fields).toMatchObject({ reason: `its node ${first.nid} is in use` });
  });

  test('from another machine: refused, and an event', async () => {
    const { register, token, events } = enrolmentRig();
    const text = await token();
    await register({ token: text });
    await expect(register({ ...machine('m2'), token: text, address: '198.51.100.7' })).rejects.toMatchObject(refusal);
    expect(events).toEqual([{ what: 'foreign_token', tokenId: text.slice(0, 12), machineId: 'm2', address: '198.51.100.7' }]);
  });

  test('two machines at once: one becomes a node', async () => {
    const { register, token, registrations } = enrolmentRig();
    const text = await token();
    const tries = ['m1', 'm2', 'm3'].map((id) => register({ ...machine(id), token: text }));
    const ended = await Promise.allSettled(tries);
    expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(await registrations.list(options)).toHaveLength(1);
  });

  test('one machine twice at once: one node, and one answer', async () => {
    const { register, token, registrations } = enrolmentRig();
    const text = await token();
    const [first, second] = await Promise.all([register({ token: text }), register({ token: text })]);
    expect(second).toEqual(first);
    expect(await registrations.list(options)).toHaveLength(1);
  });

  test('on two replicas at once: one becomes a node', async () => {
    const first = enrolmentRig();
    const second = enrolmentRig({ store: first.store, clock: first.clock, randomBytes: first.randomBytes });
    const text = await first.token();
    const ended = await Promise.allSettled([first.register({ token: text }), second.register({ ...machine('m2'), token: text })]);
    expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });
});

describe('F7: a token that is not good', () => {
  test('bad, expired, used, taken back: one text for whoever tries, the reason in the log and the audit', async () => {
    const { clock, register, token, tokens, logger, audited } = enrolmentRig();
    const [good, short, gone] = [await token(), await token(undefined, MINUTE), await token()];
    await register({ token: good });
    await tokens.revoke(gone.slice(0, 12), options);
    await clock.advance(2 * MINUTE);
    const wrong = `${short.slice(0, 13)}${'A'.repeat(43)}`;
    const errors: string[] = [];
    for (const text of ['', 'x', `${'0'.repeat(12)}.${'A'.repeat(43)}`, wrong, short, gone]) {
      await register({ token: text, ...machine('m2') }).catch((error: unknown) => errors.push(String(error)));
    }
    await register({ token: good, ...machine('m1'), csr: fakeCsr('other') }).catch((error: unknown) =>
      errors.push(String(error)),
    );
    expect(errors).toHaveLength(7);
    expect(new Set(errors).size).toBe(1);
    const reasons = [
      'it is no token',
      'it is no token',
      'there is none with this id',
      'its secret is wrong',
      'it has expired',
      'there is none with this id',
      expect.stringMatching(/^this machine has used it, as n-[0-9a-f]{16}, with another key$/),
    ];
    expect(logger.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields.reason)).toEqual(reasons);
    expect(audited.map(({ result }) => result)).toEqual([
      'allowed',
      ...reasons.map((reason) =>
        typeof reason === 'string' ? `denied: ${reason}` : expect.stringContaining('denied: this machine'),
      ),
    ]);
  });

  test('no secret of a token is logged, audited or stored', async () => {
    const { register, token, logger, audited, store } = enrolmentRig();
    const text = await token();
    await register({ token: text });
    await register({ ...machine('m2'), token: text }).catch(() => {});
    const all = JSON.stringify([logger.lines, audited]) + store.dump();
    expect(all).toContain(text.slice(0, 12));
    expect(all).not.toContain(text.slice(13));
  });

  test('of another account it is named, and stays good', async () => {
    const { register, token } = enrolmentRig();
    const text = await token();
    await expect(register({ token: text, aid: 'other' })).rejects.toMatchObject({ code: 'certificate.unknown_account' });
    await register({ token: text });
  });

  test('a bad request spends no token', async () => {
    const { register, token } = enrolmentRig();
    const text = await token();
    await expect(register({ token: text, csr: new Uint8Array(3) })).rejects.toMatchObject({ code: 'certificate.csr_invalid' });
    await register({ token: text });
  });

  test('nothing is proved, made or signed for it', async () => {
    const { register, authority } = enrolmentRig();
    authority.failNext(new Error('the authority was asked'));
    await expect(register({ token: 'x', csr: undefined })).rejects.toMatchObject(refusal);
    await expect(register({ token: 'x' })).rejects.toMatchObject(refusal);
    expect(authority.issued).toBe(0);
  });
});

describe('F7: limits', () => {
  test('ten failed tries a minute an address', async () => {
    const { clock, register, token, service, store } = enrolmentRig();
    for (let i = 0; i < 10; i += 1) await expect(register({ token: 'x' })).rejects.toMatchObject(refusal);
    const good = await token();
    await expect(register({ token: good })).rejects.toMatchObject({ code: 'certificate.too_many' });
    await register({ ...machine('m2'), token: await token(), address: '192.0.2.2' });
    await clock.advance(MINUTE);
    await register({ token: good });
    expect(service.counters).toEqual({ registered: 2, refused: 10, limited: 1, failed: 0 });
    const another = await token();
    store.setUnavailable(true);
    await expect(register({ token: another })).rejects.toMatchObject({ code: 'store.unavailable' });
    expect(service.counters.failed).toBe(1);
  });

  test('fifty a second in all', async () => {
    const { clock, register, token } = enrolmentRig();
    const all = await Promise.allSettled(Array.from({ length: 60 }, (_, i) => register({ token: 'x', address: `192.0.2.${i}` })));
    const codes = all.map((each) => (each.status === 'rejected' && each.reason instanceof AgentError ? each.reason.code : ''));
    expect(codes.filter((code) => code === 'certificate.too_many')).toHaveLength(10);
    await clock.advance(1_000);
    await register({ token: await token() });
  });
});

describe('the audit', () => {
  test('has a line before anything is written, without secrets', async () => {
    const { register, token, audited } = enrolmentRig();
    const text = await token();
    await register({ token: text });
    expect(audited).toEqual([
      {
        who: 'address:192.0.2.1',
        tag: text.slice(0, 12),
        type: 'Register',
        payloadDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
        rule: 'token',
        line: 'decision',
        result: 'allowed',
      },
    ]);
  });

  test('that cannot be written lets nobody in, and tells nobody more', async () => {
    const { register, token, audit, registrations } = enrolmentRig();
    const text = await token();
    audit.failure = new AgentError('audit.not_written', { problem: 'full' });
    await expect(register({ token: text })).rejects.toMatchObject({ code: 'audit.not_written' });
    await expect(register({ token: 'x' })).rejects.toMatchObject(refusal);
    expect(await registrations.list(options)).toEqual([]);
    audit.failure = undefined;
    await register({ token: text });
  });
});

describe('A13: registering again', () => {
  test('a plain token never takes a node over: the same machine is another one', async () => {
    const { register, token, registrations } = enrolmentRig();
    const first = await register({ token: await token() });
    const second = await register({ token: await token() });
    expect(second.nid).not.toBe(first.nid);
    expect(await registrations.list(options)).toHaveLength(2);
  });

  test('a token that replaces gives the same node another registration, and ends the former', async () => {
    const { register, token, service, view, seen, registrations } = enrolmentRig();
    await view.loaded();
    const first = await register({ token: await token() });
    const ended: string[] = [];
    view.onRevoked(({ of, id }) => ended.push(`${of} ${id}`));
    const second = await register({ ...machine('m2'), token: await token(nid(first.nid)) });
    await seen();
    expect(second.nid).toBe(first.nid);
    const [before, after] = [peer(first.certificate).identity, peer(second.certificate).identity];
    expect(after.registration).not.toBe(before.registration);
    expect(ended).toEqual([`registration ${before.registration}`]);
    expect(() => service.admit(peer(first.certificate))).toThrow('the node has registered again');
    expect(() => service.admit(peer(second.certificate))).not.toThrow();
    expect(await registrations.list(options)).toMatchObject([{ nid: first.nid, registration: after.registration }]);
    await expect(service.renew(peer(first.certificate), undefined, options)).rejects.toMatchObject({
      code: 'certificate.revoked',
    });
  });

  test('gives a node back that was revoked as a whole', async () => {
    const { register, token, service, view, seen, registrations } = enrolmentRig();
    await view.loaded();
    const first = await register({ token: await token() });
    await registrations.revoke({ of: 'node', id: first.nid }, 'it was stolen', options);
    await seen();
    expect(() => service.admit(peer(first.certificate))).toThrow('it was stolen');
    const second = await register({ ...machine('m2'), token: await token(nid(first.nid)) });
    await seen();
    expect(() => service.admit(peer(second.certificate))).not.toThrow();
    expect(() => service.admit(peer(first.certificate))).toThrow('registered again');
  });

  test('of a node that was removed meanwhile makes it anew', async () => {
    const { register, token, registrations } = enrolmentRig();
    const first = await register({ token: await token() });
    const text = await token(nid(first.nid));
    expect(await registrations.remove(nid(first.nid), options)).toBe(true);
    expect((await register({ token: text })).nid).toBe(first.nid);
  });
});

import { describe, expect, test } from 'vitest';
import { sweepEnrolment } from '../../../src/app/certificate/sweep.js';
import { settleRestored } from '../../../src/app/fleet/settle-restored.js';
import { nid } from '../../../src/domain/link/model.js';
import { fakeCsr } from '../../fakes/fake-certificates.js';
import { acme, DAY, enrolmentRig, MINUTE, machine, options, peer } from './rig.js';

describe('tokens', () => {
  test('are shown once: what is kept is a digest', async () => {
    const { clock, store, tokens } = enrolmentRig();
    const { token, facts } = await tokens.create({ aid: acme, ttlMs: MINUTE, replace: undefined }, options);
    const [id = '', secret = ''] = token.split('.');
    expect(facts).toEqual({
      id,
      aid: acme,
      replace: undefined,
      createdAt: clock.now(),
      expiresAt: clock.now() + MINUTE,
      usedBy: undefined,
    });
    expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(store.dump()).not.toContain(secret);
    expect(await tokens.list(options)).toEqual([facts]);
  });

  test('are listed in the order in which they were made, and say who used them', async () => {
    const { clock, register, token, tokens } = enrolmentRig();
    const first = await token();
    await clock.advance(1);
    const second = await token();
    const { nid: id } = await register({ token: second });
    expect((await tokens.list(options)).map((each) => [each.id, each.usedBy])).toEqual([
      [first.slice(0, 12), undefined],
      [second.slice(0, 12), id],
    ]);
  });

  test('are counted as the replica knows them', async () => {
    const { clock, register, token, view, seen } = enrolmentRig();
    await token(undefined, 1_000);
    await token();
    await register({ token: await token() });
    await seen();
    expect(view.tokens()).toEqual({ open: 2, used: 1, expired: 0 });
    await clock.advance(1_000);
    expect(view.tokens()).toEqual({ open: 1, used: 1, expired: 1 });
  });

  test('that were taken back cannot be used', async () => {
    const { register, token, tokens } = enrolmentRig();
    const text = await token();
    expect(await tokens.revoke(text.slice(0, 12), options)).toBe(true);
    expect(await tokens.revoke(text.slice(0, 12), options)).toBe(false);
    await expect(register({ token: text })).rejects.toMatchObject({ code: 'certificate.token_refused' });
    expect(await tokens.list(options)).toEqual([]);
  });

  test.each([0, 999, -1, Number.NaN, Number.POSITIVE_INFINITY, 7 * DAY + 1])('none lives %d ms', async (ttlMs) => {
    const { tokens } = enrolmentRig();
    await expect(tokens.create({ aid: acme, ttlMs, replace: undefined }, options)).rejects.toMatchObject({
      code: 'certificate.token_invalid',
      facts: { problem: 'a token lives 1 s to 7 days' },
    });
  });

  test('F7: replace only a node that is there, of the same account', async () => {
    const { register, token, tokens } = enrolmentRig();
    const { nid: id } = await register({ token: await token() });
    const create = (aid: typeof acme, replace: string) => tokens.create({ aid, ttlMs: MINUTE, replace: nid(replace) }, options);
    await expect(create(acme, 'n2')).rejects.toMatchObject({ code: 'certificate.unknown_node' });
    await expect(create(nid('other') as unknown as typeof acme, id)).rejects.toMatchObject({ code: 'certificate.unknown_node' });
    expect((await create(acme, id)).facts.replace).toBe(id);
  });

  test('ten thousand of them: one is found, used and listed', async () => {
    const { register, token, tokens } = enrolmentRig();
    const texts: string[] = [];
    for (let i = 0; i < 10_000; i += 1) texts.push(await token());
    const started = performance.now();
    await register({ token: texts[5_000] ?? '' });
    const took = performance.now() - started;
    const all = await tokens.list(options);
    expect(all).toHaveLength(10_000);
    expect(all.filter(({ usedBy }) => usedBy !== undefined).map(({ id }) => id)).toEqual([texts[5_000]?.slice(0, 12)]);
    // One get by key: a walk through all of them would be a hundred times as long.
    expect(took).toBeLessThan(1_000);
  });

  test('the store out of reach is said', async () => {
    const { store, tokens } = enrolmentRig();
    store.setUnavailable(true);
    await expect(tokens.list(options)).rejects.toMatchObject({ code: 'store.unavailable' });
    await expect(tokens.revoke('x', options)).rejects.toMatchObject({ code: 'store.unavailable' });
    store.setUnavailable(false);
  });
});

describe('nodes', () => {
  test('are listed by id, as they registered', async () => {
    const { clock, register, token, registrations } = enrolmentRig();
    const made = [await register({ token: await token() }), await register({ ...machine('m2'), token: await token() })];
    const listed = await registrations.list(options);
    expect(listed.map((node) => node.nid)).toEqual(made.map((node) => node.nid).sort());
    const [first] = made;
    const { identity, serial } = peer(first?.certificate ?? '');
    const { registration } = identity;
    expect(await registrations.get(nid(first?.nid ?? ''), options)).toEqual({
      nid: first?.nid,
      aid: acme,
      registration,
      os: 'debian-12',
      registeredAt: clock.now(),
      serial,
    });
    expect(await registrations.get(nid('n2'), options)).toBeUndefined();
  });

  test('F4: one certificate is revoked by its serial, unless nobody has it', async () => {
    const { register, token, registrations, seen, service } = enrolmentRig();
    const mine = peer((await register({ token: await token() })).certificate);
    expect(await registrations.revokeCertificate('00ff', 'stolen', options)).toBe(false);
    expect(await registrations.revokeCertificate(mine.serial, 'stolen', options)).toBe(true);
    await seen();
    expect(() => service.admit(mine)).toThrow('stolen');
    expect((await registrations.list(options)).length).toBe(1);
  });
});

test('F7: of a store that was put back no token can be used that may have been used since', async () => {
  const { clock, register, token, tokens, store } = enrolmentRig();
  await register({ token: await token() });
  const unused = await token();
  expect((await settleRestored(store, clock.now(), options)).tokens).toBe(1);
  expect((await tokens.list(options)).map(({ usedBy }) => usedBy === undefined)).toEqual([false]);
  await expect(register({ ...machine('m2'), token: unused })).rejects.toMatchObject({ code: 'certificate.token_refused' });
});

describe('the sweep', () => {
  const keysOf = (dump: string) => dump.split('\n').map((line) => line.split(' ')[0] ?? '');

  test('removes tokens a week after their end, and what is valid no more', async () => {
    const { clock, register, token, service, seen, store, view } = enrolmentRig();
    await view.loaded();
    const first = await register({ token: await token() });
    await token();
    service.admit(peer(first.certificate));
    await seen();
    const next = await service.renew(peer(first.certificate), fakeCsr('next'), options);
    service.admit(peer(next.certificate));
    await seen();
    expect(await sweepEnrolment(store, clock.now() + 7 * DAY, options)).toBe(0);
    expect(await sweepEnrolment(store, clock.now() + 7 * DAY + 61 * MINUTE, options)).toBe(2);
    expect(keysOf(store.dump('enrol/')).filter((key) => key.startsWith('enrol/token'))).toEqual([]);
    expect(await sweepEnrolment(store, clock.now() + 91 * DAY, options)).toBe(0);
    expect(await sweepEnrolment(store, clock.now() + 91 * DAY + 1, options)).toBe(3);
    expect(keysOf(store.dump('enrol/'))).toEqual([`enrol/node/${first.nid}`]);
  });

  test('of hundreds goes in steps, and leaves what a newer version wrote', async () => {
    const { clock, token, store } = enrolmentRig();
    for (let i = 0; i < 175; i += 1) await token();
    await store.commit([], [{ key: 'enrol/token/zz', value: '{"v":2}' }], options);
    expect(await sweepEnrolment(store, clock.now() + 30 * DAY, options)).toBe(175);
    expect(keysOf(store.dump())).toEqual(['enrol/token/zz']);
  });
});

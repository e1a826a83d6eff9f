import { describe, expect, test } from 'vitest';
import { carryRevocations } from '../../../src/app/certificate/carry-revocations.js';
import { writeNode, writeRevocation } from '../../../src/app/certificate/record-store.js';
import { revocationPrefix } from '../../../src/domain/certificate/records.js';
import type { Revocation } from '../../../src/domain/certificate/revocation.js';
import { decodeRevocation } from '../../../src/domain/certificate/schema.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { aid, nid, registrationId } from '../../../src/domain/link/model.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';

const options = { signal: new AbortController().signal };
const revoked = (of: Revocation['of'], id: string, more: Partial<Revocation> = {}): Revocation => ({
  ...{ of, id, from: 100, kind: 'revoked', reason: 'it was stolen', until: 1_000 },
  ...more,
});

async function storeOf(revocations: readonly Revocation[], registered?: number): Promise<FakeControlStore> {
  const store = new FakeControlStore();
  if (revocations.length > 0) await store.commit([], revocations.map(writeRevocation), options);
  if (registered === undefined) return store;
  const held = { serial: 'a1', fingerprint: 'f', issued: registered, notAfter: 1_000 };
  const of = { nid: nid('n1'), aid: aid('acme'), registration: registrationId('r1'), machineId: 'm', os: '', address: '' };
  await store.commit([], [writeNode({ ...of, hostCidrs: [], registered, current: held, renewals: [] })], options);
  return store;
}

async function kept(store: FakeControlStore): Promise<readonly Revocation[]> {
  return (await store.list(revocationPrefix, options)).map(({ key, value }) => decodeRevocation(key, value));
}

describe('F4: what was revoked after a backup, when the backup is put back', () => {
  test('stays revoked, and is told; what a renewal retired is only kept', async () => {
    const retired = revoked('serial', 'b2', { kind: 'retired', reason: 'renewed' });
    const later = [revoked('node', 'n1'), revoked('registration', 'r1'), revoked('serial', 'a1')];
    const store = await storeOf([], 50);
    expect(await carryRevocations(await storeOf([...later, retired]), store, options)).toEqual({
      revoked: later,
      problem: undefined,
    });
    expect(await kept(store)).toEqual([...later, retired]);
  });

  test.each([
    ['the same', revoked('serial', 'a1'), revoked('serial', 'a1'), 0],
    ['retired then, revoked since', revoked('serial', 'a1', { kind: 'retired', reason: 'renewed' }), revoked('serial', 'a1'), 1],
    [
      'revoked then: what is weaker changes nothing',
      revoked('serial', 'a1'),
      revoked('serial', 'a1', { kind: 'retired', from: 200 }),
      0,
    ],
  ])('%s', async (_, then, since, told) => {
    const store = await storeOf([then]);
    expect((await carryRevocations(await storeOf([since]), store, options)).revoked).toHaveLength(told);
    expect(await kept(store)).toEqual([revoked('serial', 'a1')]);
  });

  test('a node that the backup knows to have registered again since is not revoked by what was before', async () => {
    const store = await storeOf([], 101);
    const before = [revoked('node', 'n1'), revoked('registration', 'r0')];
    expect((await carryRevocations(await storeOf(before), store, options)).revoked).toEqual([revoked('registration', 'r0')]);
  });

  test('10,000 of them, in commits that a store takes; a second time there is nothing to do', async () => {
    const many = Array.from({ length: 10_000 }, (_, index) => revoked('serial', index.toString(16)));
    const former = new FakeControlStore();
    for (let at = 0; at < many.length; at += 100) await former.commit([], many.slice(at, at + 100).map(writeRevocation), options);
    const store = new FakeControlStore();
    expect((await carryRevocations(former, store, options)).revoked).toHaveLength(10_000);
    expect((await kept(store)).length).toBe(10_000);
    expect((await carryRevocations(former, store, options)).revoked).toEqual([]);
  });

  test('a former store that is damaged, or that is not there, is said and is no failure; a failure of the other one is', async () => {
    const store = await storeOf([]);
    const damaged = { list: () => Promise.reject(new AgentError('store.corrupt', { problem: 'a row is damaged' })) };
    expect((await carryRevocations(damaged, store, options)).problem).toContain('a row is damaged');
    expect(await carryRevocations(undefined, store, options)).toEqual({ revoked: [], problem: 'none was here' });
    store.failNext();
    await expect(carryRevocations(await storeOf([revoked('serial', 'a1')]), store, options)).rejects.toThrow();
  });
});

import { describe, expect, test } from 'vitest';
import { ensureIdentity } from '../../../src/app/agent/ensure-identity.js';
import { FakeIdentityStore } from '../../fakes/fake-identity-store.js';

const options = { signal: new AbortController().signal };
const facts = { explicitName: 'new', hostname: 'host', labels: {}, randomBytes: new Uint8Array(8) };

describe('ensureIdentity', () => {
  test('a new node gets one, which it keeps', async () => {
    const store = new FakeIdentityStore();
    const first = await ensureIdentity(store, facts, options);
    expect(first.nodeId).toBe('new');
    expect(await ensureIdentity(store, { ...facts, explicitName: 'other' }, options)).toEqual(first);
  });

  test('an existing one is used though the name that is asked for is invalid', async () => {
    const store = new FakeIdentityStore('{"node_id":"old","hostname":"h","labels":{}}');
    expect((await ensureIdentity(store, { ...facts, explicitName: 'NO' }, options)).nodeId).toBe('old');
  });

  test('an invalid name leaves nothing behind', async () => {
    const store = new FakeIdentityStore();
    await expect(ensureIdentity(store, { ...facts, explicitName: 'NO' }, options)).rejects.toMatchObject({
      code: 'identity.invalid_name',
    });
    expect(store.dump()).toBe('');
  });

  test('a malformed one stops the start and is left as it is', async () => {
    const store = new FakeIdentityStore('{');
    await expect(ensureIdentity(store, facts, options)).rejects.toMatchObject({ code: 'identity.malformed' });
    expect(store.dump()).toBe('{');
  });
});

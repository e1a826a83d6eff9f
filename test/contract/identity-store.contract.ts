import { describe, expect, test } from 'vitest';
import type { Identity } from '../../src/domain/identity/model.js';
import { mintIdentity } from '../../src/domain/identity/plan.js';
import type { IdentityStore } from '../../src/ports/identity/identity-store.js';

const options = { signal: new AbortController().signal };

const named = (explicitName: string): Identity =>
  mintIdentity({ explicitName, hostname: 'Host.example', labels: { zone: 'a' }, randomBytes: new Uint8Array(8) });

/** Every IdentityStore must pass. `make` gives one that holds `text`, or nothing. */
export function identityStoreContract(name: string, make: (text?: string) => Promise<IdentityStore>): void {
  describe(`IdentityStore: ${name}`, () => {
    test('a new node has none', async () => {
      expect(await (await make()).load(options)).toBeUndefined();
    });

    test('what is created is loaded', async () => {
      const store = await make();
      expect(await store.create(named('a'), options)).toEqual(named('a'));
      expect(await store.load(options)).toEqual(named('a'));
    });

    test('what is there is never overwritten, and is what the second gets', async () => {
      const store = await make();
      await store.create(named('a'), options);
      expect(await store.create(named('b'), options)).toEqual(named('a'));
      expect(await store.load(options)).toEqual(named('a'));
    });

    test('of several at once all get the same', async () => {
      const store = await make();
      const got = await Promise.all(['a', 'b', 'c', 'd'].map((each) => store.create(named(each), options)));
      const there = await store.load(options);
      expect(got).toEqual([there, there, there, there]);
    });

    test.each([
      ['empty', ''],
      ['no JSON', '{"node_id":'],
      ['no node_id', '{"node_id":"","hostname":"h","labels":{}}'],
    ])('a malformed one (%s) is neither used nor overwritten', async (_, text) => {
      const store = await make(text);
      await expect(store.load(options)).rejects.toMatchObject({ code: 'identity.malformed' });
      await expect(store.create(named('a'), options)).rejects.toMatchObject({ code: 'identity.malformed' });
      await expect(store.load(options)).rejects.toMatchObject({ code: 'identity.malformed' });
    });

    test('aborted calls reject and create nothing', async () => {
      const store = await make();
      const aborted = { signal: AbortSignal.abort() };
      await expect(store.load(aborted)).rejects.toThrow();
      await expect(store.create(named('a'), aborted)).rejects.toThrow();
      expect(await store.load(options)).toBeUndefined();
    });
  });
}

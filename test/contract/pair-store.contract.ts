import { describe, expect, test } from 'vitest';
import type { Pair, PairStore } from '../../src/ports/certificate/pair-store.js';

const options = { signal: new AbortController().signal };
const aborted = { signal: AbortSignal.abort() };

export interface PairStoreKit {
  readonly store: PairStore;
  /** Makes the pair of this serial unreadable. */
  readonly damage: (serial: string) => Promise<void>;
}

/** Every PairStore must pass. `make` gives an empty one; `pairs` are four, each issued after the one before. */
export function pairStoreContract(name: string, make: () => Promise<PairStoreKit>, pairs: () => Promise<readonly Pair[]>): void {
  describe(`PairStore: ${name}`, () => {
    const some = async () => {
      const [first, second, third, fourth] = await pairs();
      if (first === undefined || second === undefined || third === undefined || fourth === undefined)
        throw new Error('four pairs');
      return { first, second, third, fourth };
    };
    const inUse = async (store: PairStore, pair: Pair) => {
      const staged = await store.stage(pair, options);
      await store.activate(staged.serial, options);
      return staged;
    };

    test('is empty at first', async () => {
      const { store } = await make();
      expect(await store.load(options)).toEqual({ current: undefined, staged: undefined });
      expect(store.problems()).toEqual([]);
    });

    test('a pair is kept, then used', async () => {
      const { store } = await make();
      const { first } = await some();
      const staged = await store.stage(first, options);
      expect(staged).toMatchObject(first);
      expect(await store.load(options)).toEqual({ current: undefined, staged });
      await store.activate(staged.serial, options);
      expect(await store.load(options)).toEqual({ current: staged, staged: undefined });
    });

    test('F6: one that is kept leaves the one in use alone', async () => {
      const { store } = await make();
      const { first, second } = await some();
      const current = await inUse(store, first);
      const staged = await store.stage(second, options);
      expect(await store.load(options)).toEqual({ current, staged });
      await store.activate(staged.serial, options);
      expect(await store.load(options)).toEqual({ current: staged, staged: undefined });
    });

    test('the one before is kept for the way back, others are not', async () => {
      const { store } = await make();
      const { first, second, third } = await some();
      const [one, two, three] = [await inUse(store, first), await inUse(store, second), await inUse(store, third)];
      await expect(store.activate(one.serial, options)).rejects.toMatchObject({ code: 'certificate.not_written' });
      await store.activate(two.serial, options);
      expect(await store.load(options)).toEqual({ current: two, staged: three });
    });

    test('both may be said again', async () => {
      const { store } = await make();
      const { first, second } = await some();
      await inUse(store, first);
      const current = await inUse(store, second);
      expect(await store.stage(second, options)).toEqual(current);
      await store.activate(current.serial, options);
      expect(await store.load(options)).toEqual({ current, staged: undefined });
    });

    test('of several that are kept the newest counts, and using it ends the others', async () => {
      const { store } = await make();
      const { first, second, third } = await some();
      const current = await inUse(store, first);
      const older = await store.stage(second, options);
      const staged = await store.stage(third, options);
      expect(await store.load(options)).toEqual({ current, staged });
      await store.activate(staged.serial, options);
      await expect(store.activate(older.serial, options)).rejects.toMatchObject({ code: 'certificate.not_written' });
    });

    test('certificate and key of two pairs are refused', async () => {
      const { store } = await make();
      const { first, second } = await some();
      const mixed = { ...first, privateKey: second.privateKey };
      await expect(store.stage(mixed, options)).rejects.toMatchObject({ code: 'certificate.unusable' });
      await expect(store.stage({ ...first, certificate: 'x' }, options)).rejects.toMatchObject({ code: 'certificate.unusable' });
      await expect(store.stage({ ...first, privateKey: 'x' }, options)).rejects.toMatchObject({ code: 'certificate.unusable' });
      await expect(store.stage({ ...first, ca: '<html>' }, options)).rejects.toMatchObject({ code: 'certificate.unusable' });
      expect(await store.load(options)).toEqual({ current: undefined, staged: undefined });
    });

    test('K: instead of a damaged current pair the one before is used, and it is reported', async () => {
      const { store, damage } = await make();
      const { first, second } = await some();
      const before = await inUse(store, first);
      const current = await inUse(store, second);
      await damage(current.serial);
      expect(await store.load(options)).toEqual({ current: before, staged: undefined });
      expect(store.problems().length).toBeGreaterThan(0);
      expect(JSON.stringify(store.problems())).toContain(current.serial);
    });

    test('a damaged pair that is not in use is passed over and cannot be used', async () => {
      const { store, damage } = await make();
      const { first, second } = await some();
      const current = await inUse(store, first);
      const staged = await store.stage(second, options);
      await damage(staged.serial);
      expect(await store.load(options)).toEqual({ current, staged: undefined });
      await expect(store.activate(staged.serial, options)).rejects.toMatchObject({ code: 'certificate.not_written' });
      expect(await store.stage(second, options)).toEqual(staged);
      expect(await store.load(options)).toEqual({ current, staged });
      expect(store.problems()).toEqual([]);
    });

    test('one that was never kept cannot be used', async () => {
      const { store } = await make();
      await expect(store.activate('aa', options)).rejects.toMatchObject({ code: 'certificate.not_written' });
    });

    test('after clear it is as new, again changes nothing, and pairs can be kept as before', async () => {
      const { store, damage } = await make();
      const { first, second, third } = await some();
      await inUse(store, first);
      await inUse(store, second);
      const staged = await store.stage(third, options);
      await damage(staged.serial);
      await store.clear(options);
      expect(await store.load(options)).toEqual({ current: undefined, staged: undefined });
      expect(store.problems()).toEqual([]);
      await store.clear(options);
      const current = await inUse(store, first);
      expect(await store.load(options)).toEqual({ current, staged: undefined });
    });

    test('aborted calls reject and change nothing', async () => {
      const { store } = await make();
      const { first } = await some();
      await expect(store.load(aborted)).rejects.toThrow();
      await expect(store.stage(first, aborted)).rejects.toThrow();
      const staged = await store.stage(first, options);
      await expect(store.activate(staged.serial, aborted)).rejects.toThrow();
      await expect(store.clear(aborted)).rejects.toThrow();
      expect(await store.load(options)).toEqual({ current: undefined, staged });
    });
  });
}

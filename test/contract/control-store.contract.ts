import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ControlStore, MAX_OPERATIONS, type StoreChange, type Write } from '../../src/ports/store/control-store.js';

const options = { signal: new AbortController().signal };

export interface OpenStore {
  readonly store: ControlStore;
  close(): Promise<void>;
}

/** Commits without conditions, and gives the version. */
export async function put(store: ControlStore, values: Readonly<Record<string, string | null>>): Promise<bigint> {
  const writes = Object.entries(values).map(([key, value]) => ({ key, value }));
  const version = await store.commit([], writes, options);
  if (version === undefined) throw new Error('a commit without conditions did not hold');
  return version;
}

/** Every ControlStore must pass. `make` gives an empty one; numbers of versions are its own affair. */
export function controlStoreContract(name: string, make: () => Promise<OpenStore>): void {
  const withStore = (use: (store: ControlStore) => Promise<void>) => async () => {
    const { store, close } = await make();
    try {
      await use(store);
    } finally {
      await close();
    }
  };
  const values = async (store: ControlStore, prefix: string) =>
    (await store.list(prefix, options)).map(({ key, value }) => `${key}=${value}`);

  describe(`ControlStore: ${name}`, () => {
    test(
      'gives back what was written, with the version of its commit',
      withStore(async (store) => {
        expect(await store.get('a/b', options)).toBeUndefined();
        const version = await put(store, { 'a/b': 'one', 'a/c': 'zwei\n\u{1f4be} ' });
        expect(await store.get('a/b', options)).toEqual({ key: 'a/b', value: 'one', version });
        expect(await store.get('a/c', options)).toEqual({ key: 'a/c', value: 'zwei\n\u{1f4be} ', version });
        expect(await store.get('a', options)).toBeUndefined();
      }),
    );

    test(
      'lists by prefix, sorted, and nothing that only looks like it',
      withStore(async (store) => {
        await put(store, { 'n/b': '2', 'n/a': '1', 'n/a/x': '3', 'n/~': '4', 'm/z': '0', n0: '5', 'o/a': '6' });
        expect(await values(store, 'n/')).toEqual(['n/a=1', 'n/a/x=3', 'n/b=2', 'n/~=4']);
        expect(await values(store, 'n/a')).toEqual(['n/a=1', 'n/a/x=3']);
        expect(await values(store, 'none/')).toEqual([]);
      }),
    );

    test(
      'removes, and what is absent is removed without complaint',
      withStore(async (store) => {
        await put(store, { 'a/b': 'one' });
        await put(store, { 'a/b': null, 'a/c': null });
        expect(await store.list('a/', options)).toEqual([]);
      }),
    );

    test(
      'versions grow with every commit of any key, also when a key is made again',
      withStore(async (store) => {
        const versions = [await put(store, { a: '1' }), await put(store, { b: '1' })];
        versions.push(await put(store, { a: null }), await put(store, { a: '1' }));
        expect([...versions].sort((one, other) => Number(one - other))).toEqual(versions);
        expect(new Set(versions).size).toBe(4);
        expect((await store.get('a', options))?.version).toBe(versions[3]);
      }),
    );

    test(
      'conditions: all hold, or nothing is written',
      withStore(async (store) => {
        const version = await put(store, { a: '1' });
        const absent = { key: 'b', version: 0n };
        const present = { key: 'a', version };
        const write = (value: string): readonly Write[] => [
          { key: 'c', value },
          { key: 'a', value },
        ];
        expect(await store.commit([present, { key: 'b', version }], write('no'), options)).toBeUndefined();
        expect(await store.commit([{ key: 'a', version: 0n }], write('no'), options)).toBeUndefined();
        expect(await store.commit([{ key: 'a', version: version + 1n }], write('no'), options)).toBeUndefined();
        expect(await values(store, '')).not.toContain('c=no');
        expect(await store.commit([present, absent], write('yes'), options)).toBeGreaterThan(version);
        expect(await store.commit([present], write('late'), options)).toBeUndefined();
        expect((await store.get('c', options))?.value).toBe('yes');
      }),
    );

    test(
      'conditions alone can be asked for',
      withStore(async (store) => {
        const version = await put(store, { a: '1' });
        expect(await store.commit([{ key: 'a', version }], [], options)).toBeDefined();
        expect(await store.commit([{ key: 'a', version: 0n }], [], options)).toBeUndefined();
        expect((await store.get('a', options))?.version).toBe(version);
      }),
    );

    test(
      'of many who compare and set the same key, each one that is told so has won once',
      withStore(async (store) => {
        await put(store, { counter: '0' });
        const raise = async () => {
          for (;;) {
            const { value = '', version = 0n } = (await store.get('counter', options)) ?? {};
            const writes = [{ key: 'counter', value: String(Number(value) + 1) }];
            if ((await store.commit([{ key: 'counter', version }], writes, options)) !== undefined) return;
          }
        };
        await Promise.all(Array.from({ length: 20 }, raise));
        expect((await store.get('counter', options))?.value).toBe('20');
      }),
    );

    test(
      'too much at once is refused, and leaves no trace',
      withStore(async (store) => {
        const many = (count: number) => Array.from({ length: count }, (_, i) => ({ key: `m/${i}`, value: 'x' }));
        const condition = [{ key: 'none', version: 0n }];
        await expect(store.commit(condition, many(MAX_OPERATIONS), options)).rejects.toMatchObject({ code: 'store.too_large' });
        const large = [{ key: 'm/large', value: 'ü'.repeat(512 * 1024) }];
        await expect(store.commit([], large, options)).rejects.toMatchObject({ code: 'store.too_large' });
        expect(await store.list('m/', options)).toEqual([]);
        expect(await store.commit(condition, many(MAX_OPERATIONS - 1), options)).toBeDefined();
        expect(await store.list('m/', options)).toHaveLength(MAX_OPERATIONS - 1);
      }),
    );

    test.each(['', '/a', 'a/', 'a//b', 'a\nb', 'ä', 'a\x7f'])('%j is no key', async (key) => {
      const { store, close } = await make();
      await expect(store.commit([], [{ key, value: 'x' }], options)).rejects.toThrow(RangeError);
      await expect(store.commit([{ key, version: 0n }], [], options)).rejects.toThrow(RangeError);
      await close();
    });

    test(
      'a key that is written twice, or a value that is no text, is refused',
      withStore(async (store) => {
        const one = { key: 'a', value: '1' };
        await expect(store.commit([], [one, one], options)).rejects.toThrow(RangeError);
        await expect(store.commit([], [{ key: 'a', value: '\ud800' }], options)).rejects.toThrow(RangeError);
        expect(await store.get('a', options)).toBeUndefined();
      }),
    );

    test(
      'aborted calls reject and write nothing',
      withStore(async (store) => {
        const aborted = { signal: AbortSignal.abort(new Error('enough')) };
        await expect(store.get('a', aborted)).rejects.toThrow('enough');
        await expect(store.list('a', aborted)).rejects.toThrow('enough');
        await expect(store.commit([], [{ key: 'a', value: '1' }], aborted)).rejects.toThrow('enough');
        expect(await store.get('a', options)).toBeUndefined();
      }),
    );
  });

  describe(`ControlStore.watch: ${name}`, () => {
    test(
      'gives what is there, says so, then every commit as one',
      withStore(async (store) => {
        await put(store, { 'w/b': '1' });
        await put(store, { 'w/a': '2', other: 'x' });
        const seen = follow(store, 'w/');
        await seen.first;
        expect(texts(seen.changes)).toEqual(['w/b=1', 'w/a=2']);
        await put(store, { 'w/c': '3', 'w/d': '4', other: 'y' });
        await put(store, { 'w/a': null, 'w/none': null });
        await put(store, { 'w/e': '5' });
        await seen.until(({ key }) => key === 'w/e');
        expect(seen.batches.slice(-3).map(texts)).toEqual([['w/c=3', 'w/d=4'], ['w/a'], ['w/e=5']]);
        await seen.end();
      }),
    );

    test(
      'says at once that nothing is there',
      withStore(async (store) => {
        const seen = follow(store, 'w/');
        await seen.first;
        expect(seen.changes).toEqual([]);
        await seen.end();
      }),
    );

    test(
      'ends without an error on abort, also before it began',
      withStore(async (store) => {
        const seen = follow(store, 'w/');
        await seen.first;
        await seen.end();
        const late = store.watch('w/', { signal: AbortSignal.abort() })[Symbol.asyncIterator]();
        expect((await late.next()).done).toBe(true);
      }),
    );

    test(
      'has no gap and no double where commits go on while it begins',
      withStore(async (store) => {
        const writer = (async () => {
          for (let i = 0; i < 60; i += 1) await put(store, { [`w/${i % 7}`]: String(i) });
          await put(store, { 'w/end': '1' });
        })();
        const seen = Array.from({ length: 5 }, () => follow(store, 'w/'));
        await Promise.all(seen.map((each) => each.until(({ key }) => key === 'w/end')));
        await writer;
        for (const { changes } of seen) {
          const versions = changes.map(({ version }) => version);
          expect(versions).toEqual([...new Set(versions)].sort((a, b) => Number(a - b)));
          const numbers = changes.filter(({ key }) => key !== 'w/end').map(({ value }) => Number(value));
          // What is there at first may have holes; from the first change on each follows the one before.
          expect(numbers.slice(-30)).toEqual(Array.from({ length: 30 }, (_, i) => i + 30));
        }
        await Promise.all(seen.map((each) => each.end()));
      }),
    );

    test(
      'law: what it has told, folded, is what a list says',
      withStore(async (store) => {
        const write = fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.option(fc.string(), { nil: null }));
        const commit = fc.uniqueArray(write, { selector: ([key]) => key, minLength: 1, maxLength: 4 });
        let run = 0;
        await fc.assert(
          fc.asyncProperty(fc.array(commit, { minLength: 1, maxLength: 8 }), async (commits) => {
            const prefix = `law${run++}/`;
            const seen = follow(store, prefix);
            for (const writes of commits) {
              const well = writes.map(([key, value]) => [`${prefix}${key}`, value?.toWellFormed() ?? null] as const);
              await put(store, Object.fromEntries(well));
            }
            await put(store, { [`${prefix}end`]: '1' });
            await seen.until(({ key }) => key === `${prefix}end`);
            const folded = new Map<string, string>();
            for (const { key, value } of seen.changes) {
              if (value === undefined) folded.delete(key);
              else folded.set(key, value);
            }
            const listed = (await store.list(prefix, options)).map(({ key, value }) => [key, value] as const);
            expect([...folded].sort(([a], [b]) => (a < b ? -1 : 1))).toEqual(listed);
            await seen.end();
          }),
          { numRuns: 25 },
        );
      }),
    );
  });
}

function texts(changes: readonly StoreChange[]): readonly string[] {
  return changes.map(({ key, value }) => (value === undefined ? key : `${key}=${value}`));
}

/** Reads a watch to its end in the background. */
function follow(store: ControlStore, prefix: string) {
  const abort = new AbortController();
  const batches: (readonly StoreChange[])[] = [];
  const first = Promise.withResolvers<void>();
  let wake = () => {};
  const done = (async () => {
    for await (const batch of store.watch(prefix, { signal: abort.signal, first: first.resolve })) {
      batches.push(batch);
      wake();
    }
  })();
  return {
    batches,
    first: first.promise,
    get changes() {
      return batches.flat();
    },
    async until(matches: (change: StoreChange) => boolean): Promise<void> {
      while (!batches.flat().some(matches)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async end(): Promise<void> {
      abort.abort();
      await done;
    },
  };
}

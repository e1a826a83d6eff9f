import { describe, expect, test } from 'vitest';
import type { ManifestSource } from '../../src/ports/resource/manifest-source.js';

export interface ManifestSourceUnderTest {
  readonly source: ManifestSource;
  /** Puts these documents there, whatever was there before. */
  write(...values: readonly unknown[]): Promise<void>;
  /** Makes that it cannot be read. */
  spoil(): Promise<void>;
}

const options = { signal: new AbortController().signal };

/** Every ManifestSource must pass. `make` gives one that holds `{"n":0}`. */
export function manifestSourceContract(name: string, make: () => Promise<ManifestSourceUnderTest>): void {
  const values = async (source: ManifestSource) => (await source.read(options)).documents.map(({ value }) => value);

  describe(`ManifestSource: ${name}`, () => {
    test('documents are read anew each time, numbered from 1', async () => {
      const { source, write } = await make();
      expect(await values(source)).toEqual([{ n: 0 }]);
      await write({ n: 1 }, { n: 2 });
      const { documents } = await source.read(options);
      expect(documents.map(({ number, value }) => [number, value])).toEqual([
        [1, { n: 1 }],
        [2, { n: 2 }],
      ]);
    });

    test('a problem is described by where it is', async () => {
      const { source } = await make();
      const { documents, describe: told } = await source.read(options);
      const file = documents[0]?.file ?? '';
      expect(told({ file, document: 1, path: 'n', message: 'expected more' })).toMatch(/document 1, n: expected more$/);
    });

    test('what cannot be read is an error, until it can be', async () => {
      const { source, write, spoil } = await make();
      await spoil();
      await expect(source.read(options)).rejects.toMatchObject({ code: 'resource.invalid' });
      await write({ n: 1 });
      expect(await values(source)).toEqual([{ n: 1 }]);
    });

    test('one item at first, since nobody looked before, and one after each change, with the new content there', async () => {
      const { source, write, spoil } = await make();
      const abort = new AbortController();
      const changes = source.changes({ signal: abort.signal })[Symbol.asyncIterator]();
      expect((await changes.next()).done).toBe(false);
      for (const n of [1, 2]) {
        const next = changes.next();
        await write({ n });
        expect((await next).done).toBe(false);
        expect(await values(source)).toEqual([{ n }]);
      }
      const next = changes.next();
      await spoil();
      expect((await next).done).toBe(false);
      abort.abort();
    });

    test('abort ends the changes without an error, before and while they are waited for', async () => {
      const { source } = await make();
      const aborted = source.changes({ signal: AbortSignal.abort() })[Symbol.asyncIterator]();
      expect((await aborted.next()).done).toBe(true);
      const abort = new AbortController();
      const changes = source.changes({ signal: abort.signal })[Symbol.asyncIterator]();
      await changes.next();
      const next = changes.next();
      abort.abort();
      expect((await next).done).toBe(true);
    });

    test('an aborted read rejects', async () => {
      const { source } = await make();
      await expect(source.read({ signal: AbortSignal.abort() })).rejects.toThrow();
    });
  });
}

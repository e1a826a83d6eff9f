import { afterEach, describe, expect, test } from 'vitest';
import { type Cursor, digest, logId, logKey, revision } from '../../src/domain/log/model.js';
import type { StoredView, ViewBatch, ViewBinding, ViewChange, ViewStore } from '../../src/ports/log/view-store.js';

export interface ViewStoreUnderTest {
  /** Another store on the same place, as after a restart. */
  make(): ViewStore;
  close(): Promise<void>;
}

const options = { signal: new AbortController().signal };
export const binding: ViewBinding = { fleet: 'fleet', nid: 'n1', registration: 'r1' };
export const cursorAt = (number: number, log = 'log-1'): Cursor => ({
  ...{ logId: logId(log), revision: revision(BigInt(number)) },
  digest: digest(number.toString(16).padStart(64, '0')),
});
const item = (key: string, value: string, number: number) => ({ key: logKey(key), value, revision: revision(BigInt(number)) });
const removal = (key: string, number: number): ViewChange => ({
  key: logKey(key),
  value: null,
  revision: revision(BigInt(number)),
});

export const first: StoredView = {
  cursor: cursorAt(7),
  time: 1_000,
  currentAt: 2_000,
  items: [item('a', '"ä€😀"', 3), item('b/1', '{"x":1}', 7)],
};
const next: ViewBatch = {
  previous: first.cursor,
  cursor: cursorAt(12),
  time: 1_500,
  currentAt: 2_500,
  changes: [item('b/2', '"new"', 9), removal('a', 12), item('b/1', '"changed"', 10)],
};
const afterNext: StoredView = {
  cursor: next.cursor,
  time: 1_500,
  currentAt: 2_500,
  items: [item('b/1', '"changed"', 10), item('b/2', '"new"', 9)],
};

/** Every ViewStore must pass. */
export function viewStoreContract(name: string, make: () => Promise<ViewStoreUnderTest>): void {
  const made: ViewStoreUnderTest[] = [];
  afterEach(async () => {
    for (const each of made.splice(0)) await each.close();
  });
  /** Stores one after the other on one place. */
  const place = async () => {
    const each = await make();
    made.push(each);
    let before: ViewStore | undefined;
    return async (whose = binding) => {
      await before?.close();
      const store = each.make();
      before = store;
      return { store, opened: await store.open(whose, options) };
    };
  };

  describe(`ViewStore: ${name}`, () => {
    test('nothing is stored at first', async () => {
      const open = await place();
      expect((await open()).opened).toEqual({ view: undefined, dropped: undefined });
      expect((await open()).opened).toEqual({ view: undefined, dropped: undefined });
    });

    test('J1: what was replaced and appended is there after a restart, cursor and content together', async () => {
      const open = await place();
      await (await open()).store.replace(first, options);
      expect((await open()).opened).toEqual({ view: first, dropped: undefined });
      expect(await (await open()).store.append(next, options)).toBe(true);
      expect((await open()).opened.view).toEqual(afterNext);
    });

    test('a batch without changes moves the cursor and the times', async () => {
      const open = await place();
      const { store } = await open();
      await store.replace(first, options);
      expect(await store.append({ ...next, changes: [] }, options)).toBe(true);
      expect((await open()).opened.view).toEqual({ ...afterNext, items: first.items });
    });

    test('a batch that does not follow on what is stored is refused and changes nothing', async () => {
      const open = await place();
      const { store } = await open();
      expect(await store.append(next, options)).toBe(false);
      await store.replace(first, options);
      expect(await store.append({ ...next, previous: cursorAt(8) }, options)).toBe(false);
      expect(await store.append({ ...next, previous: cursorAt(7, 'log-2') }, options)).toBe(false);
      expect(await store.append(next, options)).toBe(true);
      expect(await store.append(next, options)).toBe(false);
      expect((await open()).opened.view).toEqual(afterNext);
    });

    test('a view in place of another leaves nothing of that', async () => {
      const open = await place();
      const { store } = await open();
      await store.replace(first, options);
      await store.append(next, options);
      const other = { ...first, cursor: cursorAt(2, 'log-2'), items: [item('c', '1', 2)] };
      await store.replace(other, options);
      expect((await open()).opened.view).toEqual(other);
      await (await open()).store.replace({ ...other, items: [] }, options);
      expect((await open()).opened.view).toEqual({ ...other, items: [] });
    });

    test.each<[string, Partial<ViewBinding>]>([
      ['fleet', { fleet: 'other' }],
      ['node', { nid: 'n2' }],
      ['registration', { registration: 'r2' }],
    ])('J1: the view of another %s is dropped, and that is said once', async (_, other) => {
      const open = await place();
      await (await open()).store.replace(first, options);
      const { opened, store } = await open({ ...binding, ...other });
      expect(opened).toEqual({ view: undefined, dropped: expect.stringContaining('another fleet, node or registration') });
      expect(await store.append(next, options)).toBe(false);
      expect((await open({ ...binding, ...other })).opened).toEqual({ view: undefined, dropped: undefined });
    });

    test('5,000 keys', async () => {
      const open = await place();
      const items = Array.from({ length: 5_000 }, (_, i) => item(`k/${String(i).padStart(4, '0')}`, `"${'v'.repeat(400)}"`, i));
      await (await open()).store.replace({ ...first, items }, options);
      expect((await open()).opened.view?.items).toEqual(items);
    });

    test('calls that are aborted before they begin do nothing; close is safe at any time', async () => {
      const open = await place();
      const { store } = await open();
      const aborted = { signal: AbortSignal.abort(new Error('enough')) };
      await expect(store.open(binding, aborted)).rejects.toThrow('enough');
      await expect(store.replace(first, aborted)).rejects.toThrow('enough');
      await expect(store.append(next, aborted)).rejects.toThrow('enough');
      expect((await open()).opened.view).toBeUndefined();
      await store.close();
      await store.close();
    });
  });
}

import { describe, expect, test } from 'vitest';
import type { SealerKeys } from '../../src/ports/store/sealer.js';

const options = { signal: new AbortController().signal };

export interface SealerKit {
  readonly keys: SealerKeys;
  /** Adds a newer key, as an operator would. */
  readonly rotate: () => Promise<void>;
}

/** Every SealerKeys must pass, with its sealers. `make` gives one without keys. */
export function sealerContract(name: string, make: () => Promise<SealerKit>): void {
  describe(`SealerKeys: ${name}`, () => {
    const opened = async () => {
      const kit = await make();
      return { ...kit, sealer: await kit.keys.create(options) };
    };

    test('has none at first, and the same from then on', async () => {
      const { keys } = await make();
      expect(await keys.load(options)).toBeUndefined();
      const sealer = await keys.create(options);
      const sealed = sealer.seal('a', 'text');
      expect((await keys.create(options)).open('a', sealed)).toBe('text');
      expect((await keys.load(options))?.open('a', sealed)).toBe('text');
      expect((await keys.load(options))?.keyId).toBe(sealer.keyId);
    });

    test.each(['', 'text', 'ä \u{1f600}\n', 'x'.repeat(100_000)])('E16: opens what it has sealed', async (text) => {
      const { sealer } = await opened();
      expect(sealer.open('ca/l2', sealer.seal('ca/l2', text))).toBe(text);
    });

    test('E16: no two are the same, and all are printable', async () => {
      const { sealer } = await opened();
      const sealed = Array.from({ length: 100 }, () => sealer.seal('a', 'text'));
      expect(new Set(sealed).size).toBe(100);
      for (const each of sealed) expect(each).toMatch(/^[\x21-\x7e]+$/);
    });

    test('E16: not under another name', async () => {
      const { sealer } = await opened();
      const sealed = sealer.seal('ca/l1', 'text');
      expect(() => sealer.open('ca/l2', sealed)).toThrow(expect.objectContaining({ code: 'store.seal_broken' }));
    });

    test('E16: not when anything of it was changed', async () => {
      const { sealer } = await opened();
      const sealed = sealer.seal('a', 'some text');
      const start = sealed.indexOf('.') + 1;
      for (let at = start; at < sealed.length; at += 1) {
        const other = sealed[at] === 'A' ? 'B' : 'A';
        const changed = sealed.slice(0, at) + other + sealed.slice(at + 1);
        // The last letter may carry bits that mean nothing.
        if (Buffer.from(changed.slice(start), 'base64url').equals(Buffer.from(sealed.slice(start), 'base64url'))) continue;
        expect(() => sealer.open('a', changed)).toThrow(expect.objectContaining({ code: 'store.seal_broken' }));
      }
    });

    test.each(['', 'text', '.', 'k1'])('%j was never sealed', async (text) => {
      const { sealer } = await opened();
      expect(() => sealer.open('a', text)).toThrow(
        expect.objectContaining({ code: expect.stringMatching(/^store\.(seal_broken|key_wrong)$/) }),
      );
    });

    test('E16: keys rotate by id: the newest seals, older ones open', async () => {
      const { keys, rotate, sealer } = await opened();
      const before = sealer.seal('a', 'old');
      await rotate();
      const rotated = await keys.load(options);
      expect(rotated?.keyId).not.toBe(sealer.keyId);
      expect(rotated?.open('a', before)).toBe('old');
      const after = rotated?.seal('a', 'new') ?? '';
      expect(rotated?.open('a', after)).toBe('new');
      expect(() => sealer.open('a', after)).toThrow(expect.objectContaining({ code: 'store.key_wrong' }));
    });

    test('aborted calls reject', async () => {
      const { keys } = await make();
      await expect(keys.load({ signal: AbortSignal.abort() })).rejects.toThrow();
      await expect(keys.create({ signal: AbortSignal.abort() })).rejects.toThrow();
    });
  });
}

import { describe, expect, test } from 'vitest';
import type { VirtualAddress } from '../../src/ports/vip/virtual-address.js';

export interface VirtualAddressRig {
  readonly address: VirtualAddress;
  /** Of the machine, milliseconds. */
  readonly bootTime: () => number;
  readonly wait: (ms: number) => Promise<void>;
  /** By another hand, for ever and with the prefix of its network. */
  readonly put: () => void;
}

/** Every VirtualAddress must pass. `make` gives one that stands nowhere. */
export function virtualAddressContract(name: string, make: () => Promise<VirtualAddressRig>): void {
  describe(`VirtualAddress: ${name}`, () => {
    test('V1: it is had for as long as it was said, and then no more, without anybody calling', async () => {
      const { address, bootTime, wait } = await make();
      expect(address.find()).toEqual([]);
      expect(address.lease(bootTime() + 3_900)).toBe(true);
      const [found, ...others] = address.find();
      expect(others).toEqual([]);
      expect(found?.validSeconds).toBeGreaterThanOrEqual(2);
      expect(found?.validSeconds).toBeLessThanOrEqual(3);
      await wait(6_000);
      expect(address.find()).toEqual([]);
    });

    test('again it has another end, later or sooner', async () => {
      const { address, bootTime } = await make();
      for (const seconds of [10, 25, 5]) {
        expect(address.lease(bootTime() + seconds * 1_000 + 500)).toBe(true);
        const [found] = address.find();
        expect(found?.validSeconds).toBeGreaterThanOrEqual(seconds - 2);
        expect(found?.validSeconds).toBeLessThanOrEqual(seconds);
      }
      expect(address.find()).toHaveLength(1);
      address.remove();
    });

    test('where less than a second is left nothing is done', async () => {
      const { address, bootTime } = await make();
      expect(address.lease(bootTime() + 900)).toBe(false);
      expect(address.lease(bootTime() - 5_000)).toBe(false);
      expect(address.find()).toEqual([]);
    });

    test('it goes from wherever it stands, whoever has put it there, and again nothing happens', async () => {
      const { address, bootTime, put } = await make();
      put();
      expect(address.find()).toMatchObject([{ validSeconds: undefined }]);
      address.lease(bootTime() + 20_000);
      address.remove();
      expect(address.find()).toEqual([]);
      address.remove();
    });

    test('it is announced', async () => {
      const { address, bootTime } = await make();
      address.lease(bootTime() + 20_000);
      address.announce();
      address.remove();
    });
  });
}

import { describe, expect, test } from 'vitest';
import type { Units } from '../../src/ports/service/units.js';

const options = { signal: new AbortController().signal };

export interface UnitsRig {
  readonly units: Units;
  /** A unit that is not started yet; with a text one that refuses to be. */
  readonly install: (unit: string, refuses?: string) => Promise<void>;
  /** From now on nobody runs services here. */
  readonly remove: () => Promise<void>;
}

/** Every Units must pass. */
export function unitsContract(name: string, make: () => Promise<UnitsRig>): void {
  describe(`Units: ${name}`, () => {
    test('a unit that is not installed is known as such', async () => {
      const { units } = await make();
      expect(await units.state('other.service', options)).toMatchObject({ isKnown: false, isActive: false, startedAt: 0n });
      await expect(units.restart('other.service', options)).rejects.toEqual(
        expect.objectContaining({ code: 'service.failed', message: expect.stringContaining('other.service') }),
      );
    });

    test('each restart has a later start', async () => {
      const { units, install } = await make();
      await install('a.service');
      expect(await units.state('a.service', options)).toMatchObject({ isKnown: true, isActive: false, startedAt: 0n });
      await units.restart('a.service', options);
      const first = await units.state('a.service', options);
      expect(first).toMatchObject({ isKnown: true, isActive: true, text: 'active (running)' });
      expect(await units.state('a.service', options)).toEqual(first);
      await units.restart('a.service', options);
      expect((await units.state('a.service', options)).startedAt).toBeGreaterThan(first.startedAt);
    });

    test('one that does not start is an error in its own words, and is not active', async () => {
      const { units, install } = await make();
      await install('a.service', 'Job for a.service failed');
      await expect(units.restart('a.service', options)).rejects.toEqual(
        expect.objectContaining({ code: 'service.failed', message: expect.stringContaining('Job for a.service failed') }),
      );
      expect(await units.state('a.service', options)).toMatchObject({ isKnown: true, isActive: false });
    });

    test('one that runs is told to read its files again, and goes on; no other is', async () => {
      const { units, install } = await make();
      await install('a.service');
      const refused = expect.objectContaining({ code: 'service.failed', message: expect.stringContaining('a.service') });
      await expect(units.reload('a.service', options)).rejects.toEqual(refused);
      await units.restart('a.service', options);
      const before = await units.state('a.service', options);
      await units.reload('a.service', options);
      expect(await units.state('a.service', options)).toEqual(before);
    });

    test('says so when nobody runs services here', async () => {
      const { units, remove } = await make();
      await remove();
      const unmanaged = expect.objectContaining({ code: 'service.unmanaged' });
      await expect(units.state('a.service', options)).rejects.toEqual(unmanaged);
      await expect(units.restart('a.service', options)).rejects.toEqual(unmanaged);
      await expect(units.reload('a.service', options)).rejects.toEqual(unmanaged);
    });

    test('aborted calls reject', async () => {
      const { units, install } = await make();
      await install('a.service');
      await expect(units.restart('a.service', { signal: AbortSignal.abort() })).rejects.toThrow();
      await expect(units.state('a.service', { signal: AbortSignal.abort() })).rejects.toThrow();
      expect(await units.state('a.service', options)).toMatchObject({ isActive: false });
    });
  });
}

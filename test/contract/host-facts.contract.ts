import { describe, expect, test } from 'vitest';
import { hostCidrs, osName } from '../../src/domain/certificate/host.js';
import type { HostFacts } from '../../src/ports/node/host-facts.js';

const options = { signal: new AbortController().signal };

/** Every HostFacts must pass. `make` gives a machine with this id, if any, of Debian 12. */
export function hostFactsContract(name: string, make: (machineId: string | undefined) => Promise<HostFacts>): void {
  describe(`HostFacts: ${name}`, () => {
    test('the id of the machine', async () => {
      expect((await (await make('0123456789abcdef')).machineId(options))?.trim()).toBe('0123456789abcdef');
      expect(await (await make(undefined)).machineId(options)).toBeUndefined();
    });

    test('its system', async () => {
      expect(osName(await (await make('a')).osRelease(options))).toBe('debian-12');
    });

    test('its networks', async () => {
      const networks = await (await make('a')).networks(options);
      for (const { device, address } of networks) {
        expect(device).not.toBe('');
        expect(address).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
      }
      for (const cidr of hostCidrs(networks)) expect(cidr).toMatch(/^[\d.]+\/\d+$/);
    });

    test('aborted calls reject', async () => {
      const facts = await make('a');
      const aborted = { signal: AbortSignal.abort() };
      await expect(facts.machineId(aborted)).rejects.toThrow();
      await expect(facts.osRelease(aborted)).rejects.toThrow();
      await expect(facts.networks(aborted)).rejects.toThrow();
    });
  });
}

import { describe, expect, test } from 'vitest';
import type { DnsmasqConfig } from '../../src/ports/dnsmasq/dnsmasq-config.js';

const options = { signal: new AbortController().signal };
const bytes = (text: string) => new TextEncoder().encode(text);
const NO_RESOLV = bytes('no-resolv\n');

export interface DnsmasqConfigRig {
  readonly config: DnsmasqConfig;
  /** The next process on the same disk. */
  readonly reopened: () => DnsmasqConfig;
}

/** Every DnsmasqConfig must pass. */
export function dnsmasqConfigContract(name: string, make: () => Promise<DnsmasqConfigRig>): void {
  describe(`DnsmasqConfig: ${name}`, () => {
    test('what is placed stands there for the next process, and every write is another one', async () => {
      const { config, reopened } = await make();
      expect(await config.read(options)).toBeUndefined();
      await config.place(NO_RESOLV, options);
      const first = await config.read(options);
      expect(first && new TextDecoder().decode(first.contents)).toBe('no-resolv\n');
      expect(first?.digest).toMatch(/^[0-9a-f]{64}$/);
      expect(await reopened().read(options)).toEqual(first);
      await config.place(NO_RESOLV, options);
      const second = await config.read(options);
      expect(second?.digest).toBe(first?.digest);
      expect(second?.mark).not.toBe(first?.mark);
    });

    test('what is there is taken away, also twice', async () => {
      const { config } = await make();
      await config.place(NO_RESOLV, options);
      await config.place(undefined, options);
      await config.place(undefined, options);
      expect(await config.read(options)).toBeUndefined();
    });

    test('dnsmasq takes a file or says why not, and nothing is placed', async () => {
      const { config } = await make();
      expect(await config.test(NO_RESOLV, options)).toBeUndefined();
      expect(await config.test(bytes('no-resolv\naddress=/x/1.2.3.4.5\n'), options)).toMatch(/^dnsmasq --test: .*line 2/);
      expect(await config.read(options)).toBeUndefined();
    });

    test('what is remembered is so for the next process', async () => {
      const { config, reopened } = await make();
      expect(await config.remembered(options)).toEqual({ served: undefined, unfinished: undefined });
      const served = { digest: 'ab', mark: 'm', boot: 'b', startedAt: 2n ** 60n };
      for (const memory of [
        { served, unfinished: undefined },
        { served: undefined, unfinished: { before: new Uint8Array([0, 255, 10]), digest: 'cd' } },
        { served: undefined, unfinished: { before: undefined, digest: 'cd' } },
        { served: undefined, unfinished: undefined },
      ]) {
        await config.remember(memory, options);
        expect(await reopened().remembered(options)).toEqual(memory);
      }
    });

    test('aborted calls reject and change nothing', async () => {
      const { config } = await make();
      const aborted = { signal: AbortSignal.abort() };
      await expect(config.place(NO_RESOLV, aborted)).rejects.toThrow();
      await expect(config.test(NO_RESOLV, aborted)).rejects.toThrow();
      await expect(config.read(aborted)).rejects.toThrow();
      expect(await config.read(options)).toBeUndefined();
    });
  });
}

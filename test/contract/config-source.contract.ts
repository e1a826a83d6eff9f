import { describe, expect, test } from 'vitest';
import type { ConfigSource } from '../../src/ports/config/config-source.js';

export interface ConfigSourceUnderTest {
  readonly source: ConfigSource;
  /** Puts plain data there. */
  write(value: unknown): Promise<void>;
  /** Makes that it cannot be read. */
  spoil(): Promise<void>;
}

const options = { signal: new AbortController().signal };

/** Every ConfigSource must pass. `make` gives one where nothing was written. */
export function configSourceContract(name: string, make: () => Promise<ConfigSourceUnderTest>): void {
  describe(`ConfigSource: ${name}`, () => {
    test('nothing is there at first', async () => {
      const { source } = await make();
      expect(await source.read(options)).toBeUndefined();
    });

    test('what is there is read anew each time', async () => {
      const { source, write } = await make();
      await write({ logLevel: 'debug' });
      expect(await source.read(options)).toMatchObject({ value: { logLevel: 'debug' }, problems: [] });
      await write({ logLevel: 'info', vip: { range: '10.0.0.0/16' } });
      const read = await source.read(options);
      expect(read).toMatchObject({ value: { logLevel: 'info', vip: { range: '10.0.0.0/16' } }, problems: [] });
      expect(() => read?.lineOf(['vip', 'absent'])).not.toThrow();
    });

    test('what cannot be read is a problem that names the file, not an error', async () => {
      const { source, spoil } = await make();
      await spoil();
      const read = await source.read(options);
      expect(read).toMatchObject({ value: undefined, problems: [{ origin: { from: 'file', file: read?.file } }] });
    });

    test('an aborted call rejects', async () => {
      const { source } = await make();
      await expect(source.read({ signal: AbortSignal.abort() })).rejects.toThrow();
    });
  });
}

import { describe, expect, test } from 'vitest';
import type { JoinSecrets } from '../../src/ports/kubernetes/join-secrets.js';

const options = { signal: new AbortController().signal };

export interface JoinSecretsKit {
  readonly secrets: JoinSecrets;
  /** Time goes on. */
  readonly advance: (ms: number) => Promise<void>;
  readonly setEncryptionKey: (key: string) => Promise<void>;
  /** How many private copies there are. */
  readonly copies: () => Promise<number>;
}

/** Every JoinSecrets must pass. `make` gives one of a control plane without an encryption key. */
export function joinSecretsContract(name: string, make: () => Promise<JoinSecretsKit>): void {
  describe(`JoinSecrets: ${name}`, () => {
    test('the certificate key is the same for an hour, then another one', async () => {
      const { secrets, advance } = await make();
      const key = await secrets.certificateKey(options);
      expect(key).toMatch(/^[0-9a-f]{64}$/);
      await advance(59 * 60_000);
      expect(await secrets.certificateKey(options)).toBe(key);
      await advance(60_000);
      expect(await secrets.certificateKey(options)).not.toBe(key);
    });

    test('the copy is there while it is used, and gone afterwards, also after a failure', async () => {
      const { secrets, copies } = await make();
      const key = await secrets.certificateKey(options);
      expect(await secrets.withUploadConfig(key, async (path) => [path.startsWith('/'), await copies()], options)).toEqual([
        true,
        1,
      ]);
      const failure = new Error('told to');
      await expect(secrets.withUploadConfig(key, () => Promise.reject(failure), options)).rejects.toBe(failure);
      expect(await copies()).toBe(0);
    });

    test('the encryption key, if there is one', async () => {
      const { secrets, setEncryptionKey } = await make();
      expect(await secrets.encryptionKey(options)).toBeUndefined();
      await setEncryptionKey('s3cret');
      expect(await secrets.encryptionKey(options)).toBe('s3cret');
    });
  });
}

import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Sealer } from '../../ports/store/sealer.js';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
export const KEY_BYTES = 32;

export interface SealingKey {
  readonly id: string;
  readonly key: Uint8Array;
}

/**
 * AES-256-GCM. `<key id>.<base64url of nonce, tag and ciphertext>`; key id and name are the associated data. Each name has a key of its
 * own, made from the one in the file: random nonces are safe for 2^32 values a key (NIST SP 800-38D, section 8.3), which a fleet that
 * seals 300 instructions and results a second has written in half a year; of one name there are a few.
 */
export class AesSealer implements Sealer {
  readonly keyId: string;
  readonly #keys: ReadonlyMap<string, Uint8Array>;
  readonly #newest: SealingKey;

  /** @param keys oldest first; the newest seals */
  constructor(keys: readonly [...SealingKey[], SealingKey]) {
    this.#keys = new Map(keys.map(({ id, key }) => [id, key]));
    this.#newest = keys[keys.length - 1] ?? keys[0];
    this.keyId = this.#newest.id;
  }

  seal(name: string, text: string): string {
    const { id, key } = this.#newest;
    // Random: a counter would have to survive restarts and be shared by replicas.
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', keyFor(id, name, key), nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(associated(id, name));
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return `${id}.${Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url')}`;
  }

  open(name: string, sealed: string): string {
    const [, id = '', encoded = ''] = /^([a-z0-9-]+)\.([A-Za-z0-9_-]+)$/.exec(sealed) ?? [];
    const key = this.#keys.get(id);
    if (id !== '' && key === undefined) {
      throw new AgentError('store.key_wrong', { problem: `${name} is sealed with key ${id}, which is not in the key file` });
    }
    const bytes = Buffer.from(encoded, 'base64url');
    if (key === undefined || bytes.length < NONCE_BYTES + TAG_BYTES) {
      throw new AgentError('store.seal_broken', { problem: `${name} is not sealed` });
    }
    return unsealed(name, id, key, bytes);
  }
}

function unsealed(name: string, id: string, key: Uint8Array, bytes: Buffer): string {
  const decipher = createDecipheriv('aes-256-gcm', keyFor(id, name, key), bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(associated(id, name));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    const body = bytes.subarray(NONCE_BYTES + TAG_BYTES);
    return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8');
  } catch (cause) {
    throw new AgentError(
      'store.seal_broken',
      { problem: `${name} was changed, moved here, or sealed with another key` },
      { cause },
    );
  }
}

function keyFor(id: string, name: string, key: Uint8Array): Buffer {
  return createHmac('sha256', key).update(associated(id, name)).digest();
}

function associated(id: string, name: string): Buffer {
  return Buffer.from(`${id} ${name}`, 'utf8');
}

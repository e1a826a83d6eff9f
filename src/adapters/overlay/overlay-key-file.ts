import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { AgentError } from '../../domain/kernel/errors.js';
import { type PublicKey, publicKey } from '../../domain/overlay/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import { createFile } from '../files/durable-file.js';
import { errnoOf } from '../files/errno.js';
import { readTextFile } from '../files/text-file.js';

const MAX_BYTES = 1_024;
/** PKCS#8 of an X25519 key, up to its 32 bytes (RFC 8410). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');

/** The node's private key in the overlay, in WireGuard's own form, for this user alone. */
export class OverlayKeyFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Its public key; undefined when there is no file. @throws AgentError `overlay.key_unreadable` */
  async load(options: CallOptions): Promise<PublicKey | undefined> {
    const file = await readTextFile(this.path, MAX_BYTES, options);
    if (file.found === 'nothing') return undefined;
    if (file.found === 'unusable') throw unreadable(`${this.path} ${file.problem}`, file.cause);
    const bytes = Buffer.from(file.text.trim(), 'base64');
    if (bytes.length !== 32) throw unreadable(`${this.path} is no key of 32 bytes in base64`);
    return publicOf(createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, bytes]), format: 'der', type: 'pkcs8' }));
  }

  /** A new one, unless there is one meanwhile; its public key. */
  async make(options: CallOptions): Promise<PublicKey> {
    const { privateKey } = generateKeyPairSync('x25519');
    return this.keep(privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32).toString('base64'), options);
  }

  /** A key that the interface has already: its peers know it. */
  async keep(privateKey: string, options: CallOptions): Promise<PublicKey> {
    try {
      await createFile(this.path, `${privateKey}\n`, options);
    } catch (cause) {
      options.signal.throwIfAborted();
      throw unreadable(`${this.path} cannot be written: ${errnoOf(cause) ?? String(cause)}`, cause);
    }
    const kept = await this.load(options);
    if (kept === undefined) throw unreadable(`${this.path} is gone again`);
    return kept;
  }
}

function publicOf(key: KeyObject): PublicKey {
  const raw = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64');
  const read = publicKey(raw);
  if (read === undefined) throw new RangeError('a public key of X25519 is 32 bytes');
  return read;
}

function unreadable(problem: string, cause?: unknown): AgentError {
  return new AgentError('overlay.key_unreadable', { problem }, { cause });
}

import { randomBytes } from 'node:crypto';
import { chmod, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Sealer, SealerKeys } from '../../ports/store/sealer.js';
import { createFile, ensureFolder } from '../files/durable-file.js';
import { errnoOf } from '../files/errno.js';
import { readTextFile } from '../files/text-file.js';
import { AesSealer, KEY_BYTES, type SealingKey } from './aes-sealer.js';

/** Some hundred keys. */
const MAX_BYTES = 64 * 1024;

/**
 * A file of mode 0600 with a line `<id> <32 bytes in base64>` for each key, oldest first. A key is rotated by a further line, on every
 * replica before any of them is started again; older lines stay for what they have sealed.
 */
export class SealerKeyFile implements SealerKeys {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async load(options: CallOptions): Promise<Sealer | undefined> {
    const file = await readTextFile(this.#path, MAX_BYTES, options);
    switch (file.found) {
      case 'nothing':
        return undefined;
      case 'unusable':
        throw this.#unreadable(file.problem, file.cause);
      case 'text':
        await this.#makePrivate();
        return new AesSealer(this.#parse(file.text));
    }
  }

  async create(options: CallOptions): Promise<Sealer> {
    const line = `k-${randomBytes(4).toString('hex')} ${randomBytes(KEY_BYTES).toString('base64')}\n`;
    try {
      await ensureFolder(dirname(this.#path));
      await createFile(this.#path, line, options);
    } catch (cause) {
      options.signal.throwIfAborted();
      throw this.#unreadable(`cannot be written: ${errnoOf(cause) ?? String(cause)}`, cause);
    }
    const sealer = await this.load(options);
    if (sealer === undefined) throw this.#unreadable('leads to no file', undefined);
    return sealer;
  }

  #parse(text: string): readonly [...SealingKey[], SealingKey] {
    const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
    const keys = lines.map((line, index) => {
      const [, id, encoded] = /^([a-z0-9-]{1,32}) ([A-Za-z0-9+/]{43}=)\s*$/.exec(line) ?? [];
      if (id === undefined || encoded === undefined) throw this.#unreadable(`has no key on line ${index + 1}`, undefined);
      return { id, key: Buffer.from(encoded, 'base64') };
    });
    const newest = keys.at(-1);
    if (newest === undefined) throw this.#unreadable('holds no key', undefined);
    if (new Set(keys.map(({ id }) => id)).size < keys.length) throw this.#unreadable('holds an id twice', undefined);
    return [...keys.slice(0, -1), newest];
  }

  async #makePrivate(): Promise<void> {
    try {
      if (((await stat(this.#path)).mode & 0o077) !== 0) await chmod(this.#path, 0o600);
    } catch (cause) {
      throw this.#unreadable(`may be read by others, and cannot be made private: ${errnoOf(cause)}`, cause);
    }
  }

  #unreadable(problem: string, cause: unknown): AgentError {
    return new AgentError('store.key_unreadable', { problem: `${this.#path} ${problem}` }, { cause });
  }
}

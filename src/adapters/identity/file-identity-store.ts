import { dirname } from 'node:path';
import type { Identity } from '../../domain/identity/model.js';
import { formatIdentity, parseIdentity } from '../../domain/identity/plan.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { IdentityStore } from '../../ports/identity/identity-store.js';
import { createFile, ensureFolder } from '../files/durable-file.js';
import { errnoOf } from '../files/errno.js';
import { readTextFile } from '../files/text-file.js';

/** 63 characters of name, 253 of host name and some hundred labels are far below. */
const greatestSize = 256 * 1024;

/** The identity as a JSON file that only this user may read. */
export class FileIdentityStore implements IdentityStore {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async load(options: CallOptions): Promise<Identity | undefined> {
    const file = await readTextFile(this.#path, greatestSize, options);
    switch (file.found) {
      case 'nothing':
        return undefined;
      case 'unusable':
        throw new AgentError('identity.unreadable', { problem: `${this.#path} ${file.problem}` }, { cause: file.cause });
      case 'text':
        return parseIdentity(file.text, this.#path);
    }
  }

  async create(identity: Identity, options: CallOptions): Promise<Identity> {
    if (await this.#write(identity, options)) return identity;
    const existing = await this.load(options);
    if (existing !== undefined) return existing;
    // A link that leads nowhere stands in its place, or it was removed this moment.
    throw new AgentError('identity.unreadable', { problem: `${this.#path} leads to no file` });
  }

  async #write(identity: Identity, options: CallOptions): Promise<boolean> {
    try {
      await ensureFolder(dirname(this.#path));
      return await createFile(this.#path, formatIdentity(identity), options);
    } catch (cause) {
      options.signal.throwIfAborted();
      const problem = `${this.#path} cannot be written: ${errnoOf(cause) ?? String(cause)}`;
      throw new AgentError('identity.not_written', { problem }, { cause });
    }
  }
}

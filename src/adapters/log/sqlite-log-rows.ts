import type { DatabaseSync } from 'node:sqlite';
import type { Change, Revision } from '../../domain/log/model.js';
import type { Seal } from './sqlite-log-seal.js';

/** The key rows, whose seal follows every change. */
export class KeyRows {
  readonly seal: Seal;
  readonly #get;
  readonly #put;
  readonly #remove;

  constructor(db: DatabaseSync, seal: Seal) {
    this.seal = seal;
    this.#get = db.prepare('SELECT revision, value FROM kv WHERE key = ?');
    this.#put = db.prepare('INSERT OR REPLACE INTO kv VALUES (?, ?, ?)');
    this.#remove = db.prepare('DELETE FROM kv WHERE key = ?');
  }

  apply({ key, value }: Change, at: Revision): void {
    const old = this.#get.get(key);
    if (old !== undefined) this.seal.remove(key, Number(old.revision), String(old.value));
    if (value === null) this.#remove.run(key);
    else {
      this.#put.run(key, at, value);
      this.seal.add(key, at, value);
    }
  }
}

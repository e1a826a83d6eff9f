import { hash } from 'node:crypto';
import { digest } from '../../domain/log/model.js';

/**
 * A digest of the set of all key rows that follows each change in O(1): the XOR of the SHA-256 of every row. With the number of rows
 * it is stored in the state row, so that a changed, lost or doubled row shows at the next open. It is against damage, not malice.
 */
export class Seal {
  readonly #sum: Buffer;
  #rows: number;

  constructor(rows = 0, sum = '0'.repeat(64)) {
    this.#rows = rows;
    this.#sum = Buffer.from(digest(sum), 'hex');
  }

  get rows(): number {
    return this.#rows;
  }

  get sum(): string {
    return this.#sum.toString('hex');
  }

  copy(): Seal {
    return new Seal(this.#rows, this.sum);
  }

  add(key: string, revision: number | bigint, value: string): void {
    this.#rows += 1;
    this.#mix(key, revision, value);
  }

  remove(key: string, revision: number | bigint, value: string): void {
    this.#rows -= 1;
    this.#mix(key, revision, value);
  }

  #mix(key: string, revision: number | bigint, value: string): void {
    // A key has no spaces, so that the three cannot run into each other.
    const row = hash('sha256', `${key} ${revision} ${value}`, 'buffer');
    for (let i = 0; i < row.length; i += 4) this.#sum.writeInt32LE(this.#sum.readInt32LE(i) ^ row.readInt32LE(i), i);
  }
}

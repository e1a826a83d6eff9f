import { closeSync, fsyncSync, openSync, rmSync, statSync, writeSync } from 'node:fs';

export const RESERVE_BYTES = 16 * 1024 * 1024;
const CHUNK = new Uint8Array(1024 * 1024);

/** Space that is set aside while there is some, and given back to finish running work when there is none (engine.md K). */
export class Reserve {
  readonly #file: string;
  readonly #bytes: number;

  constructor(file: string, bytes = RESERVE_BYTES) {
    this.#file = file;
    this.#bytes = bytes;
  }

  /** Whether it is there now; what cannot be written whole is not kept. */
  make(): boolean {
    if (this.#size() === this.#bytes) return true;
    try {
      const descriptor = openSync(this.#file, 'w', 0o600);
      try {
        for (let left = this.#bytes; left > 0; ) left -= writeSync(descriptor, CHUNK, 0, Math.min(left, CHUNK.length));
        fsyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
      return true;
    } catch {
      this.release();
      return false;
    }
  }

  release(): void {
    try {
      rmSync(this.#file, { force: true });
    } catch {
      // Read-only: nothing could be written there either.
    }
  }

  #size(): number | undefined {
    try {
      return statSync(this.#file).size;
    } catch {
      return undefined;
    }
  }
}

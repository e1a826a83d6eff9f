import type { Epoch } from './model.js';

/** The highest epoch seen of each fleet: what bears a lower one is of a stream that another has replaced (B3). */
export class EpochFence {
  readonly #highest = new Map<string, Epoch>();

  /** Whether it is the highest so far, or no older one has been seen. */
  admit(fleet: string, epoch: Epoch): boolean {
    const highest = this.#highest.get(fleet);
    if (highest !== undefined && epoch < highest) return false;
    this.#highest.set(fleet, epoch);
    return true;
  }

  /** Undefined before there was one. */
  highest(fleet: string): Epoch | undefined {
    return this.#highest.get(fleet);
  }
}

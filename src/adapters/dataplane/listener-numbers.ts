import type { ListenerId } from '../../domain/dataplane/model.js';

/**
 * Names that are remembered after their listener is gone: so that a drain that ends later can be told by name, and a listener that comes
 * back meanwhile is the same one to the native table. A drained event of an older one is lost.
 */
const remembered = 16_384;

/** The native table's 32-bit numbers of listeners. */
export class ListenerNumbers {
  readonly #live = new Map<ListenerId, number>();
  readonly #gone = new Map<ListenerId, number>();
  readonly #names = new Map<number, ListenerId>();
  #last = 0;

  take(id: ListenerId): number {
    const number = this.#live.get(id) ?? this.#gone.get(id) ?? this.#free();
    this.#gone.delete(id);
    this.#live.set(id, number);
    this.#names.set(number, id);
    return number;
  }

  /** `undefined` when there is no such listener. */
  of(id: ListenerId): number | undefined {
    return this.#live.get(id);
  }

  release(id: ListenerId): void {
    const number = this.#live.get(id);
    if (number === undefined) return;
    this.#live.delete(id);
    this.#gone.set(id, number);
    this.#forgetOldest();
  }

  nameOf(number: number): ListenerId | undefined {
    return this.#names.get(number);
  }

  #forgetOldest(): void {
    if (this.#gone.size <= remembered) return;
    for (const [id, number] of this.#gone) {
      this.#gone.delete(id);
      this.#names.delete(number);
      return;
    }
  }

  #free(): number {
    do this.#last = this.#last === 0xffff_ffff ? 1 : this.#last + 1;
    while (this.#names.has(this.#last));
    return this.#last;
  }
}

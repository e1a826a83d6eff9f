/** Keys by the time at which they are due, of which there may be tens of thousands: O(log n) a change, no timer of their own. */
export class DueQueue<Key> {
  readonly #dueOf = new Map<Key, number>();
  /** A heap of the earliest; what `#dueOf` no longer says is skipped. */
  #heap: { readonly key: Key; readonly due: number }[] = [];

  /** Instead of what was said of the key before. */
  set(key: Key, due: number): void {
    this.#dueOf.set(key, due);
    // Keys that are set again and again leave their former times behind.
    if (this.#heap.length > 2 * this.#dueOf.size + 64) this.#rebuild();
    else this.#push({ key, due });
  }

  /** As `set`, unless an earlier time has been said. */
  setEarlier(key: Key, due: number): void {
    if (due < (this.#dueOf.get(key) ?? Number.POSITIVE_INFINITY)) this.set(key, due);
  }

  delete(key: Key): void {
    this.#dueOf.delete(key);
  }

  get size(): number {
    return this.#dueOf.size;
  }

  /** When the earliest is due; `undefined` when there is none. */
  next(): number | undefined {
    return this.#first()?.due;
  }

  /** Takes out the earliest one if it is due. */
  take(now: number): Key | undefined {
    const first = this.#first();
    if (first === undefined || first.due > now) return undefined;
    this.#pop();
    this.#dueOf.delete(first.key);
    return first.key;
  }

  #first(): { readonly key: Key; readonly due: number } | undefined {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (this.#dueOf.get(first.key) === first.due) return first;
      this.#pop();
    }
    return undefined;
  }

  #rebuild(): void {
    this.#heap = [...this.#dueOf].map(([key, due]) => ({ key, due })).sort((a, b) => a.due - b.due);
  }

  #push(item: { readonly key: Key; readonly due: number }): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || above.due <= item.due) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = item;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = heap[2 * at + 1];
      const right = heap[2 * at + 2];
      const [child, next] =
        right !== undefined && left !== undefined && right.due < left.due ? [right, 2 * at + 2] : [left, 2 * at + 1];
      if (child === undefined || child.due >= last.due) break;
      heap[at] = child;
      at = next;
    }
    heap[at] = last;
  }
}

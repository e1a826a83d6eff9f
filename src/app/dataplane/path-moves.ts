import type { DataPath, ListenerId } from '../../domain/dataplane/model.js';

/**
 * Which service ports each of the two that carry connections answers for, so that one that moves is taken over by the other before it is let
 * go. Both look here, and are told when the other has taken ports.
 */
export class PathMoves {
  readonly #carried = { kernel: new Map<ListenerId, number>(), proxy: new Map<ListenerId, number>() };
  readonly #told: Record<DataPath, () => void> = { kernel: () => {}, proxy: () => {} };

  /** `tell` is called when the other one has taken ports, or let go of them. */
  join(path: DataPath, tell: () => void): void {
    this.#told[path] = tell;
  }

  /** From `at` on, by the monotonic clock, new connections to these ports are answered there; again is no news. */
  took(path: DataPath, ids: Iterable<ListenerId>, at: number): void {
    let news = false;
    for (const id of ids) {
      if (this.#carried[path].has(id)) continue;
      this.#carried[path].set(id, at);
      news = true;
    }
    if (news) this.#told[otherThan(path)]();
  }

  letGo(path: DataPath, ids: Iterable<ListenerId>): void {
    let news = false;
    for (const id of ids) news = this.#carried[path].delete(id) || news;
    if (news) this.#told[otherThan(path)]();
  }

  /** Since when; undefined: not at all. */
  since(path: DataPath, id: ListenerId): number | undefined {
    return this.#carried[path].get(id);
  }
}

function otherThan(path: DataPath): DataPath {
  return path === 'kernel' ? 'proxy' : 'kernel';
}

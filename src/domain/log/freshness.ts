/** A view that nothing has confirmed for longer is stale: several bookmarks, of which one comes every 5 s, are missing. */
export const STALE_AFTER_MS = 30_000;
/** So many bookmarks in a row make a stale view fresh again, so that a link that comes and goes does not open and close services. */
const BOOKMARKS_TO_RETURN = 2;

/** Whether a view may be taken for the present state. Times are milliseconds of a clock that counts while the machine sleeps. */
export interface Freshness {
  readonly fresh: boolean;
  /** When it was last confirmed; undefined when that is not known. */
  readonly confirmedAt: number | undefined;
  /** Bookmarks that have confirmed it since it was stale. */
  readonly bookmarks: number;
}

/** A frame that has come from the server. */
export interface Sign {
  readonly bookmark: boolean;
  /** How long ago the server last knew its own store to be current, milliseconds. */
  readonly ageMs: number;
  /** Whether the view has reached the head that the server named when the stream began: one that is replaying is not current. */
  readonly reachedHead: boolean;
}

/**
 * What a view kept from `storedAt` (wall clock) is worth at the start. A time that is unknown, in the future, or
 * 0, as of a view that was stored before anything confirmed it, is none (engine.md J3).
 */
export function freshnessAtStart(
  storedAt: number | undefined,
  now: { readonly wall: number; readonly boot: number },
  staleAfterMs: number,
): Freshness {
  const age = storedAt === undefined || storedAt <= 0 ? Number.NaN : now.wall - storedAt;
  if (!(age >= 0)) return { fresh: false, confirmedAt: undefined, bookmarks: 0 };
  return { fresh: age <= staleAfterMs, confirmedAt: now.boot - age, bookmarks: 0 };
}

/**
 * After a frame (engine.md J2). A short loss of the link in which the view stays younger than `staleAfterMs` changes nothing, also while
 * what was missed is replayed; what a server says that does not know its own store to be current does not count.
 */
export function afterSign(
  before: Freshness,
  { bookmark, ageMs, reachedHead }: Sign,
  boot: number,
  staleAfterMs: number,
): Freshness {
  const state = afterTime(before, boot, staleAfterMs);
  if (ageMs > staleAfterMs) return { ...state, fresh: false, bookmarks: 0 };
  if (!reachedHead) return state;
  if (state.fresh) return { fresh: true, confirmedAt: boot, bookmarks: 0 };
  const inRow = state.confirmedAt !== undefined && boot - state.confirmedAt <= staleAfterMs ? state.bookmarks : 0;
  const bookmarks = inRow + (bookmark ? 1 : 0);
  return { fresh: bookmarks >= BOOKMARKS_TO_RETURN, confirmedAt: boot, bookmarks };
}

/** By time alone. */
export function afterTime(state: Freshness, boot: number, staleAfterMs: number): Freshness {
  const isOld = state.confirmedAt === undefined || boot - state.confirmedAt > staleAfterMs;
  return state.fresh && isOld ? { ...state, fresh: false, bookmarks: 0 } : state;
}

/** The link is gone: bookmarks of the next one count anew. */
export function afterLoss(state: Freshness): Freshness {
  return { ...state, bookmarks: 0 };
}

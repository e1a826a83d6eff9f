/** Results that are offered at once and not yet acknowledged (engine.md C4). */
export const OFFER_WINDOW = 16;
export const REOFFER_MS = 30_000;

/** A connection that dies so soon after a result was sent may have died of it (engine.md A15b). */
export const DEATH_MS = 5_000;

/** Servers that acknowledge nothing (engine.md C3): so long must the stream live after the sending. */
export const DELIVERED_MS = 30_000;
/** The first sending and one more. */
const MOST_SENDS = 2;
/** On top of how long the server's caller waits. */
const WAITER_MARGIN_MS = 60_000;
export const RESEND_BYTES = 8 * 1024 * 1024;
export const RESEND_GAP_MS = 100;

export interface Result {
  readonly id: string;
  readonly bytes: number;
  /** Monotonic clock, milliseconds; of before this process: 0 or less. */
  readonly finishedAt: number;
  /** How long the server's caller waits for it. */
  readonly waiterMs: number;
}

interface Held extends Result {
  /** On the current stream. */
  sentAt: number | undefined;
  /** On all streams. */
  sends: number;
  /** A connection died after it was sent: it is offered alone, so that a second death tells. */
  suspect: boolean;
}

export interface DueOffers {
  /** To be sent now, in this order. */
  readonly send: readonly string[];
  /** What counts as delivered from now on, where nothing is acknowledged. */
  readonly delivered: readonly string[];
  /** When to ask again, if nothing happens before; monotonic clock. */
  readonly nextAt: number | undefined;
}

/** Which results of one fleet are to be sent when: it holds all that were not confirmed, in the order in which they were finished. */
export class ResultOffers {
  readonly #held = new Map<string, Held>();
  #stream: { readonly acks: boolean; resentBytes: number; resendAt: number } | undefined;

  get size(): number {
    return this.#held.size;
  }

  /** A result that nobody has confirmed. */
  add(result: Result): void {
    this.#held.set(result.id, { ...result, sentAt: undefined, sends: 0, suspect: false });
  }

  has(id: string): boolean {
    return this.#held.has(id);
  }

  /** Confirmed, or dropped. */
  remove(id: string): void {
    this.#held.delete(id);
  }

  /** A new stream, to a server that acknowledges or not. Nothing counts as sent on it. */
  opened(acks: boolean, now: number): void {
    for (const held of this.#held.values()) held.sentAt = undefined;
    this.#stream = { acks, resentBytes: 0, resendAt: now };
  }

  /** The id of a result that two connections have died of, if there is one. */
  closed(now: number): string | undefined {
    const acks = this.#stream?.acks ?? false;
    this.#stream = undefined;
    if (!acks) return undefined;
    const out = [...this.#held.values()].filter(({ sentAt }) => sentAt !== undefined && now - sentAt < DEATH_MS);
    const [first] = out;
    const culprit = out.length === 1 && first?.suspect === true ? first.id : undefined;
    for (const held of out) held.suspect = true;
    return culprit;
  }

  /** Whether it is on its way to a server that will confirm it. */
  isOut(id: string, now: number): boolean {
    const sentAt = this.#held.get(id)?.sentAt;
    return this.#stream?.acks === true && sentAt !== undefined && now - sentAt < REOFFER_MS;
  }

  /** It goes out at once, as its server waits for it. */
  sent(id: string, now: number): void {
    const held = this.#held.get(id);
    if (held !== undefined) note(held, now);
  }

  due(now: number): DueOffers {
    if (this.#stream === undefined) return { send: [], delivered: [], nextAt: undefined };
    return this.#stream.acks ? this.#dueWithAcks(now) : this.#dueWithout(now, this.#stream);
  }

  #dueWithAcks(now: number): DueOffers {
    const all = [...this.#held.values()];
    for (const held of all) held.suspect &&= held.sentAt === undefined || now - held.sentAt < DEATH_MS;
    const suspects = all.filter(({ suspect }) => suspect);
    if (suspects.length > 0) return this.#dueAlone(suspects, now);
    const isOut = ({ sentAt }: Held) => sentAt !== undefined && now - sentAt < REOFFER_MS;
    const room = Math.max(0, OFFER_WINDOW - all.filter(isOut).length);
    const send = all.filter((held) => !isOut(held)).slice(0, room);
    for (const held of send) note(held, now);
    const times = all.flatMap(({ sentAt }) => (sentAt === undefined ? [] : [sentAt + REOFFER_MS]));
    return { send: send.map(({ id }) => id), delivered: [], nextAt: earliest(times) };
  }

  /** One at a time, each until it is confirmed or the stream has outlived it. */
  #dueAlone(suspects: readonly Held[], now: number): DueOffers {
    const out = suspects.find(({ sentAt }) => sentAt !== undefined);
    const next = out ?? suspects[0];
    if (out === undefined && next !== undefined) note(next, now);
    const send = out === undefined && next !== undefined ? [next.id] : [];
    return { send, delivered: [], nextAt: (next?.sentAt ?? now) + DEATH_MS };
  }

  #dueWithout(now: number, stream: { resentBytes: number; resendAt: number }): DueOffers {
    const all = [...this.#held.values()];
    const delivered = all.filter(({ sentAt }) => sentAt !== undefined && now - sentAt >= DELIVERED_MS);
    const candidates = all.filter(
      ({ sentAt, sends, finishedAt, waiterMs, bytes }) =>
        sentAt === undefined &&
        sends < MOST_SENDS &&
        now - finishedAt < Math.max(waiterMs, DELIVERED_MS) + WAITER_MARGIN_MS &&
        stream.resentBytes + bytes <= RESEND_BYTES,
    );
    const [next] = candidates;
    const send = next !== undefined && now >= stream.resendAt ? [next] : [];
    for (const held of send) {
      note(held, now);
      stream.resentBytes += held.bytes;
      stream.resendAt = now + RESEND_GAP_MS;
    }
    const waiting = all.flatMap(({ sentAt }) => (sentAt === undefined ? [] : [Math.max(sentAt + DELIVERED_MS, now + 1)]));
    const times = candidates.length > send.length ? [...waiting, stream.resendAt] : waiting;
    return { send: send.map(({ id }) => id), delivered: delivered.map(({ id }) => id), nextAt: earliest(times) };
  }
}

function note(held: Held, now: number): void {
  held.sentAt = now;
  held.sends += 1;
}

function earliest(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : Math.min(...times);
}

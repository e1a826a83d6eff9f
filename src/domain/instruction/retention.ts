const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Replies that are kept (engine.md A9). */
export const ACKED_REPLY_MS = HOUR_MS;
export const UNACKED_REPLY_MS = DAY_MS;
/** Of a reply that holds secrets and that nobody takes; an acknowledged one goes at once. */
export const SECRET_REPLY_MS = 600_000;
export const MOST_REPLIES = 1_000;
export const MOST_REPLY_BYTES = 64 * 1024 * 1024;

/** Tombstones: a tag, its digest and its outcome, about 100 bytes. */
export const TOMBSTONE_MS = 7 * DAY_MS;
/** After the expiry, whatever the age. */
export const TOMBSTONE_AFTER_EXPIRY_MS = DAY_MS;
export const MOST_TOMBSTONES = 200_000;

export interface HeldReply {
  readonly id: string;
  readonly bytes: number;
  /** Wall clock, milliseconds. */
  readonly finishedAt: number;
  readonly ackedAt: number | undefined;
  readonly secret: boolean;
}

/** The ids whose replies go now. Those too many go oldest first, acknowledged ones before those that nobody has seen. */
export function repliesToDrop(held: readonly HeldReply[], now: number): readonly string[] {
  const isOld = ({ finishedAt, ackedAt, secret }: HeldReply) =>
    secret
      ? ackedAt !== undefined || now - finishedAt >= SECRET_REPLY_MS
      : ackedAt === undefined
        ? now - finishedAt >= UNACKED_REPLY_MS
        : now - ackedAt >= ACKED_REPLY_MS;
  const old = held.filter(isOld);
  const young = held.filter((reply) => !isOld(reply));
  const lastToGo = [...young].sort((a, b) => rank(b) - rank(a) || b.finishedAt - a.finishedAt);
  let bytes = 0;
  const over = lastToGo.filter((reply, place) => {
    bytes += reply.bytes;
    return place >= MOST_REPLIES || bytes > MOST_REPLY_BYTES;
  });
  return [...old, ...over].map(({ id }) => id);
}

function rank({ ackedAt }: HeldReply): number {
  return ackedAt === undefined ? 1 : 0;
}

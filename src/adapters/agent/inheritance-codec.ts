import { z } from 'zod';
import type { Inheritance } from '../../ports/agent/successor.js';

/** Of the process that takes over: the number of the channel's descriptor there. */
export const CHANNEL_VARIABLE = 'HOLDFAST_HANDOVER';

/** What the one that takes over says, in this order, one byte each. */
export const ASKS = 0x61;
export const SERVES = 0x73;

/** With each part of an inheritance: what its descriptors are, in their order, and whether there is more. */
export const partSchema = z.strictObject({
  what: z.array(z.enum(['lock', 'tcp', 'udp'])),
  more: z.boolean(),
});
export type InheritedPart = z.infer<typeof partSchema>;

/** As many descriptors as one message carries (native/core/fd_passing.h). */
const MOST = 250;

/** In order. */
export function* partsOf({
  locks,
  sockets,
}: Inheritance): Generator<{ readonly part: InheritedPart; readonly fds: readonly number[] }> {
  const all = [
    ...locks.map((fd) => ({ what: 'lock' as const, fd })),
    ...sockets.map(({ protocol, fd }) => ({ what: protocol, fd })),
  ];
  for (let at = 0; at < all.length; at += MOST) {
    const some = all.slice(at, at + MOST);
    yield { part: { what: some.map(({ what }) => what), more: at + MOST < all.length }, fds: some.map(({ fd }) => fd) };
  }
}

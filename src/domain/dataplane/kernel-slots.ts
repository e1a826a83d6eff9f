import type { L4Endpoint } from './model.js';
import { slotOwners } from './rendezvous.js';

/** Of a random choice: sums of reduced weights up to 64 are dealt exactly, and those beyond in one of the larger ones. */
const EXACT = 64;
const LARGER = [128, 256, 512, 1024, 2048] as const;
/** The moduli that there are. */
export const moduli: readonly number[] = [...Array.from({ length: EXACT }, (_, index) => index + 1), ...LARGER];
/** What a share may be off, as a part of it, before a larger modulus is taken. */
const TOLERANCE = 0.03;
/** Where a client's address, or what was remembered of a client, leads to one slot for good. */
export const FIXED_MODULUS = 256;

/** Which endpoint each slot leads to, and by how much the share of the worst endpoint is off, as a part of that share. */
export interface Deal {
  readonly slots: readonly L4Endpoint[];
  readonly error: number;
}

/** For a random slot: each endpoint has slots in proportion to its weight. At least one endpoint. */
export function dealByWeight(endpoints: readonly L4Endpoint[]): Deal {
  const common = endpoints.reduce((divisor, { weight }) => greatestCommonDivisor(divisor, weight), 0);
  const sum = endpoints.reduce((total, { weight }) => total + weight / common, 0);
  if (sum <= EXACT) return { slots: endpoints.flatMap((each) => Array<L4Endpoint>(each.weight / common).fill(each)), error: 0 };
  let deal: Deal | undefined;
  for (const modulus of LARGER) {
    deal = dealLargestRemainder(endpoints, modulus);
    if (deal.error <= TOLERANCE) break;
  }
  return deal ?? { slots: [], error: 1 };
}

/** For slots that clients keep: when an endpoint comes or goes, no slot moves but those that it has or had. At least one endpoint. */
export function dealByRendezvous(endpoints: readonly L4Endpoint[]): Deal {
  const slots = slotOwners(FIXED_MODULUS, endpoints);
  return { slots, error: errorOf(endpoints, slots) };
}

/** Whole slots first, then one each to those that lack the largest part of one; of two alike the first. */
function dealLargestRemainder(endpoints: readonly L4Endpoint[], modulus: number): Deal {
  const total = endpoints.reduce((sum, { weight }) => sum + weight, 0);
  const parts = endpoints.map(({ weight }, index) => {
    const exact = (modulus * weight) / total;
    return { index, whole: Math.floor(exact), rest: exact - Math.floor(exact) };
  });
  const left = modulus - parts.reduce((sum, { whole }) => sum + whole, 0);
  const extra = new Set(
    parts
      .toSorted((a, b) => b.rest - a.rest || a.index - b.index)
      .slice(0, left)
      .map(({ index }) => index),
  );
  const slots = endpoints.flatMap((each, index) =>
    Array<L4Endpoint>((parts[index]?.whole ?? 0) + (extra.has(index) ? 1 : 0)).fill(each),
  );
  return { slots, error: errorOf(endpoints, slots) };
}

function errorOf(endpoints: readonly L4Endpoint[], slots: readonly L4Endpoint[]): number {
  const counts = new Map<L4Endpoint, number>();
  for (const slot of slots) counts.set(slot, (counts.get(slot) ?? 0) + 1);
  const total = endpoints.reduce((sum, { weight }) => sum + weight, 0);
  return Math.max(...endpoints.map((each) => Math.abs(((counts.get(each) ?? 0) / slots.length) * (total / each.weight) - 1)));
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

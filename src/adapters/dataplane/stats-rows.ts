import type { EndpointStats, ListenerStats } from '../../ports/dataplane/data-plane.js';
import { addressOfWords } from './table-codec.js';

/** A listener's counters under its native number. */
export type NumberedStats = Omit<ListenerStats, 'id'> & { readonly number: number };

/** Reads the rows that native/binding/values.h describes. */
export function readStats(rows: Float64Array): NumberedStats[] {
  const all: NumberedStats[] = [];
  let at = 0;
  const next = () => rows[at++] ?? 0;
  const endpoint = (): EndpointStats => {
    const address = addressOfWords(next(), [next(), next(), next(), next()]);
    const [port, active, total, state] = [next(), next(), next(), next()];
    return { address, port, active, total, draining: (state & 1) !== 0, ejected: (state & 2) !== 0 };
  };
  while (at < rows.length) {
    const counters = {
      number: next(),
      active: next(),
      completed: next(),
      failed: next(),
      refused: next(),
      reset: next(),
      drained: next(),
      bytesIn: next(),
      bytesOut: next(),
      dialFailures: next(),
      limited: next(),
      evicted: next(),
      dropped: next(),
    };
    all.push({ ...counters, endpoints: Array.from({ length: next() }, endpoint) });
  }
  return all;
}

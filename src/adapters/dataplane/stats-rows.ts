import type { IpAddress } from '../../domain/kernel/network.js';
import type { ConnectionTimes, EndpointStats, Histogram, ListenerStats } from '../../ports/dataplane/data-plane.js';
import type { Addon } from './addon.js';
import { addressOfWords } from './table-codec.js';

/** A listener's counters under its native number. */
export type NumberedStats = Omit<ListenerStats, 'id'> & { readonly number: number };

/** Upper bounds of the classes, as the addon has them. */
export type TimeBounds = Addon['timeBounds'];

/** Reads the rows that native/binding/values.h describes. */
export function readStats(rows: Float64Array, bounds: TimeBounds): NumberedStats[] {
  const all: NumberedStats[] = [];
  for (let at = 0; at < rows.length; at += rowSize(rows, at, bounds)) all.push(listenerAt(rows, at, bounds));
  return all;
}

const listenerSize = 15;
const endpointSize = 9;

function rowSize(rows: Float64Array, at: number, bounds: TimeBounds): number {
  return listenerSize + timesSize(rows, at, bounds) + endpointSize * value(rows, at + 14);
}

/** Of each histogram its classes, one more than bounds, and the sum. */
function timesSize(rows: Float64Array, at: number, { dial, connection }: TimeBounds): number {
  return value(rows, at + 13) === 0 ? 0 : dial.length + 2 + connection.length + 2;
}

/** By position, not by a reader: at 10,000 rows this takes a fifth of the time. */
function listenerAt(rows: Float64Array, at: number, bounds: TimeBounds): NumberedStats {
  const endpoints: EndpointStats[] = [];
  const count = value(rows, at + 14);
  const first = at + listenerSize + timesSize(rows, at, bounds);
  for (let index = 0; index < count; index++) endpoints.push(endpointAt(rows, first + endpointSize * index));
  return {
    number: value(rows, at),
    active: value(rows, at + 1),
    completed: value(rows, at + 2),
    failed: value(rows, at + 3),
    refused: value(rows, at + 4),
    reset: value(rows, at + 5),
    drained: value(rows, at + 6),
    bytesIn: value(rows, at + 7),
    bytesOut: value(rows, at + 8),
    dialFailures: value(rows, at + 9),
    limited: value(rows, at + 10),
    evicted: value(rows, at + 11),
    dropped: value(rows, at + 12),
    times: value(rows, at + 13) === 0 ? undefined : timesAt(rows, at + listenerSize, bounds),
    endpoints,
  };
}

function timesAt(rows: Float64Array, at: number, { dial, connection }: TimeBounds): ConnectionTimes {
  return { dial: histogramAt(rows, at, dial), connection: histogramAt(rows, at + dial.length + 2, connection) };
}

function histogramAt(rows: Float64Array, at: number, bounds: readonly number[]): Histogram {
  const end = at + bounds.length + 1;
  return { bounds, counts: [...rows.subarray(at, end)], sum: value(rows, end) / 1e6 };
}

function endpointAt(rows: Float64Array, at: number): EndpointStats {
  const state = value(rows, at + 8);
  return {
    address: addressAt(rows, at),
    port: value(rows, at + 5),
    active: value(rows, at + 6),
    total: value(rows, at + 7),
    draining: (state & 1) !== 0,
    ejected: (state & 2) !== 0,
  };
}

function addressAt(rows: Float64Array, at: number): IpAddress {
  const word = value(rows, at + 1);
  if (value(rows, at) === 6) return addressOfWords(6, [word, value(rows, at + 2), value(rows, at + 3), value(rows, at + 4)]);
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}` as IpAddress;
}

function value(rows: Float64Array, at: number): number {
  return rows[at] ?? 0;
}

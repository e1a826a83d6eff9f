import type { UnitState } from '../service/model.js';

export interface DnsmasqPlan {
  readonly do: 'update_dnsmasq';
  /** The whole file. */
  readonly contents: string;
}

/** The configuration that stands on disk. */
export interface PlacedConfig {
  readonly contents: Uint8Array;
  /** Of the contents, SHA-256 in hex. */
  readonly digest: string;
  /** Another one whenever anybody writes the file. */
  readonly mark: string;
}

/** A content that was seen to be served (engine.md A8). */
export interface Served {
  /** SHA-256 in hex. */
  readonly digest: string;
  readonly mark: string;
  /** Boot id of the kernel, and when the unit had started on its clock. */
  readonly boot: string;
  readonly startedAt: bigint;
}

/** What is known of the configuration across restarts. */
export interface DnsmasqMemory {
  readonly served: Served | undefined;
  readonly unfinished: UnfinishedChange | undefined;
}

/** A change that was begun and has not ended. */
export interface UnfinishedChange {
  /** What stood there, undefined for nothing. */
  readonly before: Uint8Array | undefined;
  /** Of what was to stand there, SHA-256 in hex. */
  readonly digest: string;
}

/**
 * Whether exactly that content is served already (engine.md A8): it was seen to be, nobody has written the file since, and the unit runs
 * since then or has been started later. A file that was put in place and never loaded is not.
 */
export function isServed(
  digest: string,
  boot: string,
  { served, unfinished }: DnsmasqMemory,
  placed: PlacedConfig | undefined,
  unit: UnitState,
): boolean {
  if (served === undefined || unfinished !== undefined || placed === undefined || !unit.isActive) return false;
  if (served.digest !== digest || placed.digest !== digest || served.mark !== placed.mark) return false;
  return served.boot !== boot || unit.startedAt >= served.startedAt;
}

/** What a change goes back to: what an unfinished one has placed is no way back, since nobody has seen it at work. */
export function wayBack({ unfinished }: DnsmasqMemory, placed: PlacedConfig | undefined): Uint8Array | undefined {
  return unfinished !== undefined && placed?.digest === unfinished.digest ? unfinished.before : placed?.contents;
}

/** What one run of a case says of one peer. */
export interface Measurement {
  /** In the case's unit. */
  readonly value: number;
  readonly errors: number;
  readonly operations?: number;
  readonly gigabytes?: number;
  readonly p50Us?: number;
  readonly p99Us?: number;
}

/** A line of the results. A sample that failed has a problem and no value. */
export interface Sample extends Partial<Measurement> {
  readonly case: string;
  readonly peer: string;
  readonly round: number;
  readonly foreignCores: number;
  /** Of the proxy's processes. */
  readonly cpuSeconds?: number;
  readonly problem?: string;
}

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
  readonly count: number;
}

export function spreadOf(values: readonly number[]): Spread | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  const [least, most] = [sorted[0], sorted.at(-1)];
  if (low === undefined || high === undefined || least === undefined || most === undefined) return undefined;
  return { median: (low + high) / 2, least, most, count: sorted.length };
}

/** CPU microseconds per operation; per gigabyte, seconds. */
export function cpuPerOperation({ cpuSeconds, operations, gigabytes }: Sample): number | undefined {
  if (cpuSeconds === undefined) return undefined;
  if (gigabytes !== undefined) return cpuSeconds / gigabytes;
  return operations === undefined || operations === 0 ? undefined : (cpuSeconds * 1e6) / operations;
}

export function samplesOf(samples: readonly Sample[], name: string, peer: string): readonly Sample[] {
  return samples.filter((sample) => sample.case === name && sample.peer === peer && sample.value !== undefined);
}

/**
 * `peer` over `reference`, each round by itself: what disturbs a machine for a while disturbs both of a round, and the ratio stays.
 */
export function ratios(samples: readonly Sample[], name: string, peer: string, reference: string): readonly number[] {
  const byRound = new Map(samplesOf(samples, name, reference).map(({ round, value }) => [round, value]));
  return samplesOf(samples, name, peer).flatMap(({ round, value }) => {
    const other = byRound.get(round);
    return value === undefined || other === undefined || other === 0 ? [] : [value / other];
  });
}

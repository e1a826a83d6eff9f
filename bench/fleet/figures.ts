/** One number of one size of fleet. */
export interface Figure {
  readonly agents: number;
  readonly part: string;
  readonly name: string;
  readonly unit: string;
  readonly value: number;
}

/** One change of a service on its way to all agents, milliseconds since it was handed in. */
export interface ChangeTimes {
  readonly agents: number;
  readonly change: number;
  /** The log had it on disk and whoever applied it was told. */
  readonly answeredMs: number;
  /** Half of the agents had it. */
  readonly halfMs: number;
  /** A minute when some did not get it in that time. */
  readonly lastMs: number;
  readonly missed: number;
}

export interface Measured {
  readonly figures: readonly Figure[];
  readonly changes: readonly ChangeTimes[];
}

/** @param share 0 to 1; `values` are not empty */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN;
}

/** Gathers the figures of one size, in the order of their measuring. */
export class FigureBook {
  readonly #agents: number;
  readonly #note: (text: string) => void;
  readonly #figures: Figure[] = [];

  constructor(agents: number, note: (text: string) => void) {
    this.#agents = agents;
    this.#note = note;
  }

  get figures(): readonly Figure[] {
    return this.#figures;
  }

  put(part: string, name: string, unit: string, value: number): void {
    this.#figures.push({ agents: this.#agents, part, name, unit, value });
    this.#note(`${this.#agents} agents, ${part}: ${name} ${value.toPrecision(4)} ${unit}`);
  }
}

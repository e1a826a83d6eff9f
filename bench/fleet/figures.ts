/** Where a control plane keeps everything. */
export type Store = 'embedded' | 'etcd';

/** What is measured in one go: a column of the page. */
export interface FleetSize {
  readonly agents: number;
  readonly store: Store;
}

/** One number of one size of fleet. */
export interface Figure extends FleetSize {
  readonly part: string;
  readonly name: string;
  readonly unit: string;
  readonly value: number;
}

/** One change of a service on its way to all agents, milliseconds since it was handed in. */
export interface ChangeTimes extends FleetSize {
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

export function titleOf({ agents, store }: FleetSize): string {
  return store === 'embedded' ? `${agents} agents` : `${agents} agents, ${store}`;
}

/** Gathers the figures of one size, in the order of their measuring. */
export class FigureBook {
  readonly #size: FleetSize;
  readonly #note: (text: string) => void;
  readonly #figures: Figure[] = [];

  constructor({ agents, store }: FleetSize, note: (text: string) => void) {
    this.#size = { agents, store };
    this.#note = note;
  }

  get figures(): readonly Figure[] {
    return this.#figures;
  }

  put(part: string, name: string, unit: string, value: number): void {
    this.#figures.push({ ...this.#size, part, name, unit, value });
    this.#note(`${titleOf(this.#size)}, ${part}: ${name} ${value.toPrecision(4)} ${unit}`);
  }
}

import { Counter, Gauge, type Registry } from 'prom-client';

export interface LinkFigures {
  readonly up: boolean;
  /** Streams that were opened. */
  readonly streams: number;
  /** Whether the view may be taken for the present state. */
  readonly viewFresh: boolean;
  /** Instructions that wait and run, and results that the control plane has not confirmed. */
  readonly waiting: number;
  readonly running: number;
  readonly unconfirmed: number;
  /** By how they ended: `done`, `failed`, `refused`, `cancelled`, `unknown`. */
  readonly ended: Readonly<Record<string, number>>;
}

/** What a node of a fleet has to do with its control plane; not there on others. */
export class LinkMetrics {
  readonly #figures: () => LinkFigures;
  readonly #up: Gauge;
  readonly #streams: Counter;
  readonly #viewFresh: Gauge;
  readonly #instructions: Gauge<'state'>;
  readonly #ended: Counter<'outcome'>;

  constructor(figures: () => LinkFigures, registry: Registry) {
    const named = (name: string, help: string) => ({ name: `holdfast_${name}`, help, registers: [registry] });
    this.#figures = figures;
    this.#up = new Gauge(named('link_up', '1 while there is a stream to the control plane'));
    this.#streams = new Counter(named('link_streams_total', 'Streams to the control plane that were opened'));
    this.#viewFresh = new Gauge(named('log_view_fresh', '1 while the view of the log may be taken for the present state'));
    this.#instructions = new Gauge({ ...named('instructions', 'Instructions by where they are'), labelNames: ['state'] });
    this.#ended = new Counter({
      ...named('instructions_ended_total', 'Instructions by how they ended'),
      labelNames: ['outcome'],
    });
  }

  /** The figures as they are now. */
  collect(): void {
    const { up, streams, viewFresh, waiting, running, unconfirmed, ended } = this.#figures();
    this.#up.set(up ? 1 : 0);
    this.#streams.reset();
    this.#streams.inc(streams);
    this.#viewFresh.set(viewFresh ? 1 : 0);
    for (const [state, count] of Object.entries({ waiting, running, unconfirmed })) this.#instructions.set({ state }, count);
    this.#ended.reset();
    for (const [outcome, count] of Object.entries(ended)) this.#ended.inc({ outcome }, count);
  }
}

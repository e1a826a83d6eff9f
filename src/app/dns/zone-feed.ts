import { compileApexes, compileServices } from '../../domain/dns/compile.js';
import { servicesOf, type Zone } from '../../domain/dns/zone.js';
import type { QualifiedName } from '../../domain/resource/model.js';
import type { Clock } from '../../ports/clock.js';
import type { DnsResponder, DnsResponderEvents } from '../../ports/dns/dns-responder.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { Logger } from '../../ports/logger.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { Subsystem } from '../agent/subsystem.js';

/** About 40 us each to compile: the main thread is away for 10 ms at most. */
const BATCH = 256;
/** A state that changes all the time is followed 50 times a second: an answer lags by 20 ms and a run. */
const LEAST_GAP_MS = 20;
/** Nothing gets lost: this is how often it is looked at nevertheless. */
const LOOK_AGAIN_MS = 60_000;

export interface ZoneFeedParts {
  readonly view: StateView;
  /** Up to date with the view. */
  readonly zone: Zone;
  readonly responder: DnsResponder;
  /** Whether anybody is answered by DNS at all. */
  readonly isServing: boolean;
  /** Who answers for names outside the zone; left out: these are refused. */
  readonly events?: DnsResponderEvents | undefined;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
}

/** Keeps the table of the DNS threads what the zone is: services that have changed, batch by batch. */
export class ZoneFeed implements Subsystem {
  readonly name = 'dns-feed';
  readonly #parts: ZoneFeedParts;
  readonly #loop: ReconcileLoop;
  readonly #dirty = new Set<QualifiedName>();
  #apexes: unknown;
  #serial: number | undefined;
  #unsubscribe: () => void = () => {};

  constructor(parts: ZoneFeedParts) {
    this.#parts = parts;
    const { clock, random, logger } = parts;
    const run = (signal: AbortSignal) => this.#run(signal);
    this.#loop = new ReconcileLoop({
      ...{ name: this.name, run, clock, random, logger },
      ...{ leastGapMs: LEAST_GAP_MS, greatestGapMs: LOOK_AGAIN_MS },
    });
  }

  /** Resolves when the table has what the state held. */
  async start(): Promise<void> {
    const { view, responder, events, isServing } = this.#parts;
    if (!isServing) return;
    responder.start(events);
    for (const service of servicesOf(view.state)) this.#dirty.add(service);
    this.#unsubscribe = view.onChange(({ services }) => {
      for (const service of services) this.#dirty.add(service);
      this.#loop.markDirty();
    });
    this.#loop.start();
    await this.#loop.settled();
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#loop.stop();
    await this.#parts.responder.stop();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { zone, responder, view } = this.#parts;
    if (zone.apexes() !== this.#apexes) {
      const apexes = zone.apexes();
      await responder.apply(compileApexes(zone), { signal });
      this.#apexes = apexes;
      // Which reverse names are of the zone is decided by the range.
      for (const service of servicesOf(view.state)) this.#dirty.add(service);
    }
    for (let batch = this.#take(); batch.length > 0; batch = this.#take()) await this.#apply(batch, signal);
    if (zone.serial !== this.#serial) await this.#apply([], signal);
  }

  async #apply(services: readonly QualifiedName[], signal: AbortSignal): Promise<void> {
    const delta = compileServices(this.#parts.zone, services);
    try {
      await this.#parts.responder.apply(delta, { signal });
      this.#serial = delta.serial;
    } catch (error) {
      for (const service of services) this.#dirty.add(service);
      throw error;
    }
  }

  /** Those that change from now on are dirty again. */
  #take(): readonly QualifiedName[] {
    const taken: QualifiedName[] = [];
    for (const service of this.#dirty) {
      if (taken.length === BATCH) break;
      taken.push(service);
      this.#dirty.delete(service);
    }
    return taken;
  }
}

import type { IpAddress } from '../../domain/kernel/network.js';
import { DEAD_MS, type Observed, type OverlayConfig, type PeerFailure, type WantedSet } from '../../domain/overlay/model.js';
import { duePeers, lowerMtu, type ProbeMemory, probeSizes } from '../../domain/overlay/mtu.js';
import { planOverlay } from '../../domain/overlay/plan.js';
import { handshakeAgeMs, type OverlayMemory, readPeers, rememberApplied } from '../../domain/overlay/readings.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { OverlayDevice } from '../../ports/overlay/overlay-device.js';

export interface OverlayKeeperParts {
  readonly device: OverlayDevice;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What became of a set. */
export interface OverlayOutcome {
  readonly observed: Observed;
  /** Peers that are as they were declared. */
  readonly peers: number;
  readonly failed: readonly PeerFailure[];
}

/** What was seen last. */
export interface OverlayReading {
  readonly observed: Observed;
  readonly memory: OverlayMemory;
  readonly failed: readonly PeerFailure[];
}

/** Brings the interface to a set, whoever gives it: an instruction and the sync go one after the other, by the same steps. */
export class OverlayKeeper {
  readonly #parts: OverlayKeeperParts;
  #lane: Promise<unknown> = Promise.resolve();
  #memory: OverlayMemory = new Map();
  #probes: ProbeMemory = new Map();
  #reading: OverlayReading | undefined;
  #last: WantedSet | undefined;

  constructor(parts: OverlayKeeperParts) {
    this.#parts = parts;
  }

  /** Undefined before the first one. */
  reading(): OverlayReading | undefined {
    return this.#reading;
  }

  /** The newest set that was brought about, or tried to. */
  last(): WantedSet | undefined {
    return this.#last;
  }

  /** `work` alone, after what was asked before. */
  async inTurn<T>(work: (turn: OverlayTurn) => Promise<T>, { signal }: CallOptions): Promise<T> {
    const before = this.#lane;
    const turn: OverlayTurn = {
      observe: () => this.#observe({ signal }),
      apply: (wanted) => this.#apply(wanted, { signal }),
    };
    const mine = before.then(() => {
      signal.throwIfAborted();
      return work(turn);
    });
    this.#lane = mine.catch(() => {});
    return mine;
  }

  async #observe(options: CallOptions): Promise<Observed> {
    const { device, clock } = this.#parts;
    const observed = await device.observe(options);
    this.#memory = readPeers(this.#memory, observed.link?.peers ?? [], { now: clock.now(), monotonic: clock.monotonic() });
    this.#reading = { observed, memory: this.#memory, failed: this.#reading?.failed ?? [] };
    return observed;
  }

  async #apply(wanted: WantedSet, options: CallOptions): Promise<OverlayOutcome> {
    const { device } = this.#parts;
    this.#last = wanted;
    const before = await this.#observe(options);
    const { config, applied, failed } = planOverlay(wanted, before, this.#memory);
    const refused = await device.set(config, options);
    const done = applied.filter(({ publicKey }) => !refused.some((one) => one.publicKey === publicKey));
    this.#memory = rememberApplied(this.#memory, done);
    const observed = await this.#fitPaths(config, options);
    const all = [...failed, ...refused];
    this.#reading = { observed, memory: this.#memory, failed: all };
    return { observed, peers: done.length, failed: all };
  }

  /** Where large packets vanish and small ones do not, the interface gets smaller ones. */
  async #fitPaths(config: OverlayConfig, options: CallOptions): Promise<Observed> {
    const { device, clock, logger } = this.#parts;
    const observed = await device.observe(options);
    const live = this.#live(observed);
    let mtu = config.mtu;
    for (const key of duePeers([...live.keys()], this.#probes, clock.monotonic())) {
      const address = live.get(key);
      if (address === undefined) continue;
      const fits = await this.#fit(address, { ...config, mtu }, options);
      if (fits < mtu)
        logger.warn('large packets to a peer vanish: the overlay gets smaller ones', { peer: key, from: mtu, to: fits });
      mtu = fits;
      this.#probes = new Map([...this.#probes, [key, clock.monotonic()]]);
    }
    return mtu === config.mtu ? observed : device.observe(options);
  }

  /** The size that the way to an address carries, from that of the configuration down; the interface has it then. */
  async #fit(address: IpAddress, config: OverlayConfig, options: CallOptions): Promise<number> {
    const { device } = this.#parts;
    const { small, large } = probeSizes(config.mtu);
    if ((await device.probe(address, small, options)) !== true) return config.mtu;
    if ((await device.probe(address, large, options)) !== false) return config.mtu;
    const mtu = lowerMtu(config.mtu);
    if (mtu === undefined) return config.mtu;
    const next = { ...config, mtu };
    await device.set(next, options);
    return this.#fit(address, next, options);
  }

  /** The first address of each peer that had a handshake of late. */
  #live({ link }: Observed) {
    const { clock } = this.#parts;
    const live = (link?.peers ?? []).filter(({ publicKey }) => {
      const age = handshakeAgeMs(this.#memory.get(publicKey), clock.monotonic());
      return age !== undefined && age < DEAD_MS;
    });
    return new Map(
      live.map(({ publicKey, ranges }) => [publicKey, ranges.find(({ prefixLength }) => prefixLength === 32)?.network]),
    );
  }
}

/** What may be done while nobody else does anything. */
export interface OverlayTurn {
  /** @throws AgentError `overlay.*`, `command.*` */
  observe(): Promise<Observed>;
  /** Planned anew from what there is. @throws AgentError `overlay.*`, `command.*`; then the next one begins where this one ended */
  apply(wanted: WantedSet): Promise<OverlayOutcome>;
}

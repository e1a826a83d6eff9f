import { AgentError } from '../../domain/kernel/errors.js';
import {
  assigned,
  confirmed,
  type DropReason,
  dropped,
  isAlone,
  looked,
  NO_HOLD,
  prolonged,
  reconnected,
  released,
  type VipHold,
} from '../../domain/vip/hold.js';
import { ASSIGN_MS, type Generation, type HolderAnswer, type OnDisconnect } from '../../domain/vip/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Journal } from '../../ports/instruction/journal.js';
import type { Logger } from '../../ports/logger.js';
import type { VirtualAddress } from '../../ports/vip/virtual-address.js';

/** A gratuitous packet may be lost: it goes out three times, a second apart. */
const ANNOUNCEMENTS = 3;
/** Lifetimes are whole seconds, and the kernel looks once a second. */
const ROUNDING_MS = 2_500;

export interface VipKeeperParts {
  readonly address: VirtualAddress;
  readonly journal: Pick<Journal, 'commit' | 'vipGeneration'>;
  /** Milliseconds since the machine started, counting while it sleeps. */
  readonly bootTime: () => number;
  readonly onDisconnect: OnDisconnect;
  readonly logger: Logger;
}

/** `late`: an older change than was applied; nothing was done. */
export type VipOutcome = { readonly done: 'done' } | { readonly done: 'late'; readonly known: Generation };

/** What happened to the address, since the start. */
export interface VipCounts {
  readonly taken: number;
  /** A third hand had removed it. */
  readonly removedByOthers: number;
  readonly dropped: Readonly<Record<DropReason, number>>;
}

/** What a node has of the virtual IP. */
export interface VipHeld {
  readonly hold: VipHold;
  /** Since when it has it or has it not, boot-time clock. */
  readonly since: number;
  readonly isAlone: boolean;
  readonly counts: VipCounts;
  /** Why it could not be had when it was given last. */
  readonly failure: Error | undefined;
}

/**
 * Whether this node has the virtual IP. Every decision reaches the kernel before anything else runs; only the memory of the generation is
 * waited for.
 */
export class VipKeeper {
  readonly #parts: VipKeeperParts;
  #hold: VipHold = NO_HOLD;
  #fleet = '';
  /** The fleet whose generation is known. */
  #known: string | undefined;
  #changes = 0;
  #since: number;
  #lastLookAt: number;
  #announcements = 0;
  #taken = 0;
  #removedByOthers = 0;
  #failure: Error | undefined;
  readonly #dropped: Record<DropReason, number> = { gap: 0, silence: 0, conflict: 0, expired: 0 };

  constructor(parts: VipKeeperParts) {
    this.#parts = parts;
    this.#since = parts.bootTime();
    this.#lastLookAt = this.#since;
  }

  /** Grows with every change that the control plane has said: an answer to what was asked before it says nothing. */
  get changes(): number {
    return this.#changes;
  }

  state(): VipHeld {
    const now = this.#parts.bootTime();
    const counts = { taken: this.#taken, removedByOthers: this.#removedByOthers, dropped: { ...this.#dropped } };
    return { hold: this.#hold, since: this.#since, isAlone: isAlone(this.#hold, now), counts, failure: this.#failure };
  }

  /** A stream to this fleet is open. What an earlier one has given is kept up for as long as it was given. */
  connected(fleet: string): void {
    this.#fleet = fleet;
    this.#hold = reconnected(this.#hold);
  }

  /**
   * In force when it resolves, or undone and given up.
   * @throws AgentError `vip.not_in_force` 4 s after `receivedAt`, `vip.no_interface`, `vip.not_set`, `journal.unavailable`
   */
  async assign(generation: Generation, receivedAt: number, options: CallOptions): Promise<VipOutcome> {
    await this.#learn(options);
    const known = this.#hold.generation;
    if (assigned(this.#hold, generation, receivedAt) === undefined) return { done: 'late', known };
    const change = ++this.#changes;
    await this.#remember(generation, options);
    // The control plane may have been asked meanwhile, and have said the same.
    if (this.#hold.generation === generation && this.#hold.until !== undefined) return { done: 'done' };
    // What came meanwhile is newer, and what took too long has been given to another node.
    const next = assigned(this.#hold, generation, receivedAt);
    if (next === undefined || change !== this.#changes || this.#isLate(receivedAt)) throw notInForce();
    this.#take(next);
    if (!this.#isLate(receivedAt)) return { done: 'done' };
    this.#give(dropped(this.#hold));
    throw notInForce();
  }

  /** The address is gone when it resolves, also where that cannot be remembered. @throws AgentError `vip.not_set` */
  async release(generation: Generation, options: CallOptions): Promise<VipOutcome> {
    await this.#learn(options).catch((error: unknown) => this.#forgetful(error));
    const next = released(this.#hold, generation);
    if (next === undefined) return { done: 'late', known: this.#hold.generation };
    this.#changes++;
    this.#failure = undefined;
    this.#give(next);
    await this.#remember(generation, options).catch((error: unknown) => this.#forgetful(error));
    return { done: 'done' };
  }

  /** What was asked at `askedAt`, boot-time clock; it holds whatever its generation. @throws AgentError `vip.*` */
  confirm(answer: HolderAnswer, askedAt: number): void {
    const next = confirmed(this.#hold, answer, askedAt, this.#parts.bootTime());
    this.#known = this.#fleet;
    if (next.generation !== this.#hold.generation) {
      const nobodyWaits = { signal: new AbortController().signal };
      this.#remember(next.generation, nobodyWaits).catch((error: unknown) => this.#forgetful(error));
    }
    if (answer.isHolder) {
      this.#take(next);
      return;
    }
    this.#failure = undefined;
    this.#give(next);
  }

  /** A heartbeat that was sent at `sentAt`, boot-time clock, was answered by a server that lets this node go on. @throws AgentError `vip.*` */
  prolong(sentAt: number): void {
    const next = prolonged(this.#hold, sentAt, this.#parts.bootTime());
    if (next !== this.#hold) this.#take(next);
  }

  /** Another machine says that the address is its own. @throws AgentError `vip.not_set` */
  conflict(): void {
    this.#drop('conflict', dropped(this.#hold));
  }

  /**
   * What time and third hands have done is seen, and put right. Returns why the address was given up, if it was.
   * @throws AgentError `vip.*`; the next one begins anew
   */
  look(): DropReason | undefined {
    const { bootTime, onDisconnect, address } = this.#parts;
    const now = bootTime();
    const lastLookAt = this.#lastLookAt;
    this.#lastLookAt = now;
    const { hold, because } = looked(this.#hold, { now, lastLookAt, onDisconnect });
    if (because !== undefined) {
      this.#drop(because, hold);
      return because;
    }
    const before = this.#hold;
    this.#hold = hold;
    if (hold.until === undefined) this.#clean();
    else if (this.#isDisturbed(hold.until, now)) this.#restore(hold.until);
    else if (hold.until !== before.until) address.lease(hold.until);
    if (this.#announcements > 0 && hold.until !== undefined) this.#announce();
    return undefined;
  }

  /** Nothing of an earlier process is believed. @throws AgentError `vip.not_set` */
  clear(): void {
    this.#give(dropped(this.#hold));
  }

  #take(next: VipHold): void {
    const { bootTime } = this.#parts;
    const isNew = this.#hold.until === undefined;
    if (next.until === undefined || !this.#lease(next.until)) {
      this.#give(dropped(next));
      return;
    }
    this.#hold = next;
    if (!isNew) return;
    this.#since = bootTime();
    this.#taken++;
    this.#announcements = ANNOUNCEMENTS;
    this.#announce();
  }

  /** A failure is told until it is had, or is somebody else's. */
  #lease(until: number): boolean {
    try {
      const isThere = this.#parts.address.lease(until);
      this.#failure = undefined;
      return isThere;
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error));
      throw error;
    }
  }

  /** What the kernel does not take away now is taken away by the next look. */
  #give(next: VipHold): void {
    if (this.#hold.until !== undefined) this.#since = this.#parts.bootTime();
    this.#hold = next;
    this.#announcements = 0;
    this.#parts.address.remove();
  }

  #drop(because: DropReason, next: VipHold): void {
    this.#dropped[because]++;
    this.#parts.logger.warn('the virtual IP is given up', { because });
    this.#give(next);
  }

  #clean(): void {
    const { address, logger } = this.#parts;
    if (address.find().length === 0) return;
    logger.warn('the virtual IP stood here and is not ours: it is removed', {});
    address.remove();
  }

  /** Somebody has removed it, or made it outlive what it was given for. The kernel's last seconds are its own. */
  #isDisturbed(until: number, now: number): boolean {
    const leftMs = until - now;
    const found = this.#parts.address.find();
    const isLonger = found.some(({ validSeconds }) => validSeconds === undefined || validSeconds * 1_000 > leftMs + ROUNDING_MS);
    return isLonger || (found.length === 0 && leftMs > ROUNDING_MS);
  }

  #restore(until: number): void {
    const { address, logger } = this.#parts;
    this.#removedByOthers++;
    logger.warn('somebody has removed or changed the virtual IP: it is put back', {});
    address.remove();
    if (address.lease(until)) this.#announcements = ANNOUNCEMENTS;
  }

  /** Neighbours that were not told learn it later: it is no reason to give the address up. */
  #announce(): void {
    this.#announcements--;
    try {
      this.#parts.address.announce();
    } catch (error) {
      this.#parts.logger.warn('the virtual IP could not be announced', { error });
    }
  }

  #isLate(receivedAt: number): boolean {
    return this.#parts.bootTime() >= receivedAt + ASSIGN_MS;
  }

  async #learn(options: CallOptions): Promise<void> {
    const fleet = this.#fleet;
    if (this.#known === fleet) return;
    const change = this.#changes;
    const generation = await this.#parts.journal.vipGeneration(fleet, options);
    // An answer of the control plane that came meanwhile goes before what was remembered.
    if (this.#known === fleet || change !== this.#changes) return;
    this.#known = fleet;
    this.#hold = { ...this.#hold, generation };
  }

  #remember(generation: Generation, options: CallOptions): Promise<void> {
    return this.#parts.journal.commit([{ change: 'vip', fleet: this.#fleet, generation }], options);
  }

  #forgetful(error: unknown): void {
    this.#parts.logger.warn('the generation of the virtual IP is only in memory', { error });
  }
}

function notInForce(): AgentError {
  return new AgentError('vip.not_in_force', {
    problem: 'the virtual IP was not in force in time, or something newer came meanwhile; it is undone',
  });
}

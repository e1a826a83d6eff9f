import { AgentError } from '../kernel/errors.js';
import { type IpAddress, ipv4ToNumber, numberToIpv4 } from '../kernel/network.js';
import { type Change, type LogKey, logKey, type Precondition, type Revision, ZERO_REVISION } from '../log/model.js';
import type { QualifiedName } from '../resource/model.js';

/** A released address rests this long, plus the margin that clocks of proposers may differ by. */
export const COOLDOWN_MS = 60_000;
export const COOLDOWN_MARGIN_MS = 5_000;

/** Where the range that a log was begun with stands. */
export const VIP_RANGE_KEY = logKey('settings/vip-range');
const VIP_PREFIX = 'vip/';

/** IPv4 addresses `first` to `last`, both usable. */
export interface VipRange {
  readonly cidr: string;
  readonly first: number;
  readonly last: number;
}

/** Who has an address. It stays with its service's name after the release until another service needs it. */
export interface VipRecord {
  readonly service: QualifiedName;
  /** Log time of the release, milliseconds. */
  readonly releasedAt?: number;
}

export interface KnownVip extends VipRecord {
  readonly revision: Revision;
}

/** `10.192.0.0/16`: the network's address and the one after it stay free, as does the last. @throws RangeError */
export function vipRange(cidr: string): VipRange {
  const match = /^([\d.]+)\/(\d{1,2})$/.exec(cidr);
  const base = match?.[1] === undefined ? undefined : ipv4ToNumber(match[1]);
  const bits = Number(match?.[2]);
  const size = 2 ** (32 - bits);
  if (base === undefined || bits < 8 || bits > 28 || base % size !== 0) throw new RangeError(`not an IPv4 range: ${cidr}`);
  return { cidr, first: base + 2, last: base + size - 2 };
}

export function vipKey(address: IpAddress): LogKey {
  return logKey(`${VIP_PREFIX}${address}`);
}

export function vipOfKey(key: LogKey): IpAddress | undefined {
  return key.startsWith(VIP_PREFIX) ? (key.slice(VIP_PREFIX.length) as IpAddress) : undefined;
}

/** All addresses ever given out, by address and by service. Records are replaced, never removed. */
export class VipIndex {
  readonly #byAddress = new Map<IpAddress, KnownVip>();
  readonly #byService = new Map<QualifiedName, IpAddress>();
  /** Records are never removed, so what was used below it stays used. */
  #unused = 0;

  set(address: IpAddress, vip: KnownVip): void {
    const former = this.#byAddress.get(address);
    if (former !== undefined && this.#byService.get(former.service) === address) this.#byService.delete(former.service);
    this.#byAddress.set(address, vip);
    if (this.#isNewer(address, vip)) this.#byService.set(vip.service, address);
  }

  get(address: IpAddress): KnownVip | undefined {
    return this.#byAddress.get(address);
  }

  /** The address that the service has, or had last and may have again. */
  ofService(service: QualifiedName): IpAddress | undefined {
    return this.#byService.get(service);
  }

  entries(): Iterable<[IpAddress, KnownVip]> {
    return this.#byAddress;
  }

  /** The lowest number of the range whose address was never used; one past the range when there is none. */
  lowestUnused(range: VipRange): number {
    if (this.#unused < range.first || this.#unused > range.last + 1) this.#unused = range.first;
    while (this.#unused <= range.last && this.#byAddress.has(numberToIpv4(this.#unused))) this.#unused++;
    return this.#unused;
  }

  clear(): void {
    this.#byAddress.clear();
    this.#byService.clear();
    this.#unused = 0;
  }

  /** Whatever the order in which records come, a service's address is the one it holds, else the one it released last. */
  #isNewer(address: IpAddress, vip: VipRecord): boolean {
    const current = this.#byService.get(vip.service);
    if (current === undefined || current === address || vip.releasedAt === undefined) return true;
    const released = this.#byAddress.get(current)?.releasedAt;
    return released !== undefined && released < vip.releasedAt;
  }
}

/**
 * Chooses addresses for one proposal, on the state that the proposal is judged on: its preconditions make them unique. A
 * service keeps the address that it has, or had and nobody took since; a new one gets the lowest that was never used, and when
 * there is none, the one that was released longest ago.
 */
export class VipAllocator {
  readonly #index: VipIndex;
  readonly #range: VipRange;
  readonly #now: number;
  readonly #taken = new Map<IpAddress, QualifiedName>();
  readonly #changes: Change[] = [];
  readonly #preconditions: Precondition[] = [];
  #nextFresh: number;

  /** `now` is log time, milliseconds. */
  constructor(index: VipIndex, range: VipRange, now: number) {
    this.#index = index;
    this.#range = range;
    this.#now = now;
    this.#nextFresh = index.lowestUnused(range);
  }

  get changes(): readonly Change[] {
    return this.#changes;
  }

  get preconditions(): readonly Precondition[] {
    return this.#preconditions;
  }

  /**
   * The service's address; `wanted` is the one that its manifest names.
   * @throws AgentError `vip.exhausted`, `vip.unavailable`
   */
  assign(service: QualifiedName, wanted: IpAddress | undefined): IpAddress {
    const own = this.#index.ofService(service);
    const usable = own !== undefined && this.#taken.get(own) === undefined ? own : undefined;
    const held = usable !== undefined && this.#index.get(usable)?.releasedAt === undefined;
    if (wanted !== undefined && wanted !== usable) {
      if (held)
        throw new AgentError('vip.unavailable', { problem: `${service} has the address ${usable}; an edit cannot change it` });
      return this.#take(this.#checked(wanted, service), service);
    }
    if (usable === undefined) return this.#take(this.#fresh() ?? this.#longestReleased(), service);
    if (held) this.#taken.set(usable, service);
    else this.#take(usable, service);
    return usable;
  }

  release(service: QualifiedName): void {
    const address = this.#index.ofService(service);
    const record = address === undefined ? undefined : this.#index.get(address);
    if (address === undefined || record === undefined || record.releasedAt !== undefined) return;
    this.#write(address, { service, releasedAt: this.#now }, record);
  }

  #take(address: IpAddress, service: QualifiedName): IpAddress {
    this.#write(address, { service }, this.#index.get(address));
    this.#taken.set(address, service);
    return address;
  }

  #write(address: IpAddress, { service, releasedAt }: VipRecord, known: KnownVip | undefined): void {
    const key = vipKey(address);
    const value = releasedAt === undefined ? { service } : { releasedAt, service };
    this.#changes.push({ key, value: JSON.stringify(value) });
    this.#preconditions.push({ key, revision: known?.revision ?? ZERO_REVISION });
  }

  #checked(wanted: IpAddress, service: QualifiedName): IpAddress {
    const value = ipv4ToNumber(wanted);
    if (value === undefined || value < this.#range.first || value > this.#range.last) {
      throw new AgentError('vip.unavailable', { problem: `${wanted} is not in the range ${this.#range.cidr}` });
    }
    const record = this.#index.get(wanted);
    const holder = this.#taken.get(wanted) ?? (record?.releasedAt === undefined ? record?.service : undefined);
    if (holder !== undefined) throw new AgentError('vip.unavailable', { problem: `${wanted} belongs to ${holder}` });
    if (record !== undefined && record.service !== service && this.#freeIn(record) > 0) {
      const seconds = Math.ceil(this.#freeIn(record) / 1000);
      throw new AgentError('vip.unavailable', { problem: `${wanted} was released by ${record.service}; free in ${seconds} s` });
    }
    return wanted;
  }

  #fresh(): IpAddress | undefined {
    while (this.#nextFresh <= this.#range.last) {
      const address = numberToIpv4(this.#nextFresh++);
      if (this.#index.get(address) === undefined && !this.#taken.has(address)) return address;
    }
    return undefined;
  }

  #longestReleased(): IpAddress {
    let best: readonly [IpAddress, number] | undefined;
    for (const [address, record] of this.#index.entries()) {
      if (record.releasedAt === undefined || this.#taken.has(address)) continue;
      const value = ipv4ToNumber(address) ?? 0;
      if (value < this.#range.first || value > this.#range.last) continue;
      if (best === undefined || record.releasedAt < best[1]) best = [address, record.releasedAt];
    }
    const waitMs = best === undefined ? undefined : best[1] + COOLDOWN_MS + COOLDOWN_MARGIN_MS - this.#now;
    if (best !== undefined && waitMs !== undefined && waitMs <= 0) return best[0];
    const next = waitMs === undefined ? 'all of them are in use' : `the next is free in ${Math.ceil(waitMs / 1000)} s`;
    throw new AgentError('vip.exhausted', { problem: `no address left in ${this.#range.cidr}: ${next}` });
  }

  #freeIn(record: VipRecord): number {
    return (record.releasedAt ?? 0) + COOLDOWN_MS + COOLDOWN_MARGIN_MS - this.#now;
  }
}

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
  const match = /^([\d.]+)\/([1-9]\d?)$/.exec(cidr);
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

/** All addresses ever given out, by address, by service and by release. Records are replaced, never removed. */
export class VipIndex {
  readonly #byAddress = new Map<IpAddress, KnownVip>();
  /** Nearly always one; more when a service was deleted and asked for another address afterwards. */
  readonly #ofService = new Map<QualifiedName, Set<IpAddress>>();
  /** When each resting address was released; in that order unless `#disordered`. */
  #released = new Map<IpAddress, number>();
  #lastReleased: Release | undefined;
  #disordered = false;
  /** Of the range that was asked for last. Records are never removed, so what was used below it stays used. */
  #unused = { first: 0, last: -1, next: 0 };

  set(address: IpAddress, vip: KnownVip): void {
    const former = this.#byAddress.get(address);
    if (former !== undefined && former.service !== vip.service) this.#unlink(former.service, address);
    this.#byAddress.set(address, vip);
    const addresses = this.#ofService.get(vip.service) ?? new Set();
    this.#ofService.set(vip.service, addresses.add(address));
    this.#released.delete(address);
    if (vip.releasedAt !== undefined) this.#rest([address, vip.releasedAt]);
  }

  get(address: IpAddress): KnownVip | undefined {
    return this.#byAddress.get(address);
  }

  /** The address that the service has, else the one that it released last and may have again. */
  ofService(service: QualifiedName): IpAddress | undefined {
    let best: { readonly address: IpAddress; readonly vip: KnownVip } | undefined;
    for (const address of this.#ofService.get(service) ?? []) {
      const vip = this.#byAddress.get(address);
      if (vip !== undefined && (best === undefined || isNewer(vip, best.vip))) best = { address, vip };
    }
    return best?.address;
  }

  entries(): Iterable<[IpAddress, KnownVip]> {
    return this.#byAddress;
  }

  /** Released addresses and when, the longest released first. Sorts only when releases came in another order. */
  *released(): Generator<Release, undefined> {
    if (this.#disordered) this.#released = new Map([...this.#released].sort(byRelease));
    this.#disordered = false;
    yield* this.#released;
  }

  /** The lowest number of the range whose address was never used; one past the range when there is none. */
  lowestUnused({ first, last }: VipRange): number {
    if (this.#unused.first !== first || this.#unused.last !== last) this.#unused = { first, last, next: first };
    const unused = this.#unused;
    while (unused.next <= last && this.#byAddress.has(numberToIpv4(unused.next))) unused.next++;
    return unused.next;
  }

  clear(): void {
    this.#byAddress.clear();
    this.#ofService.clear();
    this.#released.clear();
    this.#lastReleased = undefined;
    this.#disordered = false;
    this.#unused = { first: 0, last: -1, next: 0 };
  }

  #unlink(service: QualifiedName, address: IpAddress): void {
    const addresses = this.#ofService.get(service);
    addresses?.delete(address);
    if (addresses?.size === 0) this.#ofService.delete(service);
  }

  #rest(release: Release): void {
    if (this.#lastReleased !== undefined && byRelease(this.#lastReleased, release) > 0) this.#disordered = true;
    else this.#lastReleased = release;
    this.#released.set(...release);
  }
}

/** By revision, as two releases may be of the same millisecond. */
function isNewer(one: KnownVip, other: KnownVip): boolean {
  const isHeld = ({ releasedAt }: KnownVip) => releasedAt === undefined;
  return isHeld(one) === isHeld(other) ? one.revision > other.revision : isHeld(one);
}

/** An address and the log time of its release. */
type Release = readonly [IpAddress, number];

/** Whatever the order in which records came, releases of the same moment stand in one order. */
function byRelease([a, aTime]: Release, [b, bTime]: Release): number {
  if (aTime !== bTime) return aTime < bTime ? -1 : 1;
  return (ipv4ToNumber(a) ?? 0) - (ipv4ToNumber(b) ?? 0);
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
  /** Released by this very proposal. */
  readonly #releasing = new Set<IpAddress>();
  readonly #released: Iterator<readonly [IpAddress, number], undefined>;
  #longest: readonly [IpAddress, number] | undefined;
  readonly #changes: Change[] = [];
  readonly #preconditions: Precondition[] = [];
  #nextFresh: number;

  /** `now` is log time, milliseconds. */
  constructor(index: VipIndex, range: VipRange, now: number) {
    this.#index = index;
    this.#range = range;
    this.#now = now;
    this.#nextFresh = index.lowestUnused(range);
    this.#released = index.released();
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
    const held = usable !== undefined && this.#isHeld(usable);
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
    if (address === undefined || record === undefined || !this.#isHeld(address)) return;
    this.#write(address, { service, releasedAt: this.#now }, record);
    this.#releasing.add(address);
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
    if (!this.#inRange(wanted)) {
      throw new AgentError('vip.unavailable', { problem: `${wanted} is not in the range ${this.#range.cidr}` });
    }
    const record = this.#index.get(wanted);
    const holder = this.#taken.get(wanted) ?? (record !== undefined && this.#isHeld(wanted) ? record.service : undefined);
    if (holder !== undefined) throw new AgentError('vip.unavailable', { problem: `${wanted} belongs to ${holder}` });
    const restsMs = this.#restsMs(record?.releasedAt ?? this.#now);
    if (record !== undefined && record.service !== service && restsMs > 0) {
      const problem = `${wanted} was released by ${record.service}; free in ${Math.ceil(restsMs / 1000)} s`;
      throw new AgentError('vip.unavailable', { problem });
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
    while (this.#longest === undefined || !this.#isCandidate(this.#longest[0])) {
      const next = this.#released.next();
      this.#longest = next.value;
      if (next.done === true) break;
    }
    const restsMs = this.#longest && this.#restsMs(this.#longest[1]);
    if (this.#longest !== undefined && restsMs !== undefined && restsMs <= 0) return this.#longest[0];
    throw new AgentError('vip.exhausted', { problem: `no address left in ${this.#range.cidr}: ${this.#whenFree(restsMs)}` });
  }

  #whenFree(longestRestsMs: number | undefined): string {
    const restsMs = longestRestsMs ?? (this.#releasing.size > 0 ? this.#restsMs(this.#now) : undefined);
    return restsMs === undefined ? 'all of them are in use' : `the next is free in ${Math.ceil(restsMs / 1000)} s`;
  }

  #isCandidate(address: IpAddress): boolean {
    return this.#inRange(address) && !this.#taken.has(address);
  }

  #inRange(address: IpAddress): boolean {
    const value = ipv4ToNumber(address);
    return value !== undefined && value >= this.#range.first && value <= this.#range.last;
  }

  #isHeld(address: IpAddress): boolean {
    const record = this.#index.get(address);
    return record !== undefined && record.releasedAt === undefined && !this.#releasing.has(address);
  }

  /** How long an address that was released then still rests. */
  #restsMs(releasedAt: number): number {
    return releasedAt + COOLDOWN_MS + COOLDOWN_MARGIN_MS - this.#now;
  }
}

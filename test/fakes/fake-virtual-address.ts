import type { AgentError } from '../../src/domain/kernel/errors.js';
import type { IpAddress } from '../../src/domain/kernel/network.js';
import type { PlacedAddress } from '../../src/domain/vip/model.js';
import type { ClaimWatch, VirtualAddress } from '../../src/ports/vip/virtual-address.js';

/** A link with several machines on it, of which each may have the address. */
export class FakeVipLink {
  readonly machines: FakeVirtualAddress[] = [];

  holders(): readonly FakeVirtualAddress[] {
    return this.machines.filter((machine) => machine.find().length > 0);
  }
}

/** An address in a kernel that keeps it for as long as it was told, whatever becomes of the process. */
export class FakeVirtualAddress implements VirtualAddress {
  readonly #bootTime: () => number;
  readonly #link: FakeVipLink;
  readonly address = '10.9.0.100' as IpAddress;
  readonly name: string;
  /** On the boot-time clock; infinite: a third hand has put it there. */
  #until: number | undefined;
  #failure: AgentError | undefined;
  announced = 0;
  probes = 0;

  constructor(bootTime: () => number, link = new FakeVipLink(), name = 'node') {
    this.#bootTime = bootTime;
    this.#link = link;
    this.name = name;
    link.machines.push(this);
  }

  /** Every call fails until it is taken back. */
  fail(failure: AgentError | undefined): void {
    this.#failure = failure;
  }

  /** By a third hand: it was removed, or put there for ever. */
  disturb(how: 'removed' | 'put'): void {
    this.#until = how === 'removed' ? undefined : Number.POSITIVE_INFINITY;
  }

  /** How long the kernel keeps it, in whole seconds; undefined when it is not there. */
  get seconds(): number | undefined {
    const [found] = this.find();
    return found === undefined ? undefined : (found.validSeconds ?? Number.POSITIVE_INFINITY);
  }

  find(): readonly PlacedAddress[] {
    this.#check();
    if (this.#until === undefined || this.#bootTime() >= this.#until) return [];
    const validSeconds = Number.isFinite(this.#until) ? Math.ceil((this.#until - this.#bootTime()) / 1_000) : undefined;
    return [{ interface: 'eth0', address: this.address, prefixLength: 32, validSeconds }];
  }

  lease(until: number): boolean {
    this.#check();
    const seconds = Math.floor((until - this.#bootTime()) / 1_000);
    if (seconds < 1) return false;
    this.#until = this.#bootTime() + seconds * 1_000;
    return true;
  }

  remove(): void {
    this.#check();
    this.#until = undefined;
  }

  announce(): void {
    this.#check();
    this.announced++;
  }

  watch(): ClaimWatch {
    this.#check();
    let probed = false;
    return {
      probe: () => {
        this.#check();
        this.probes++;
        probed = true;
      },
      claim: () => {
        const others = this.#link.holders().filter((machine) => machine !== this);
        return probed && others.length > 0 ? '02:00:00:00:00:02' : undefined;
      },
      close: () => {},
    };
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

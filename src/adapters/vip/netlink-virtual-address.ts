import { AgentError } from '../../domain/kernel/errors.js';
import { type IpAddress, ipAddress, isIpv6 } from '../../domain/kernel/network.js';
import type { PlacedAddress } from '../../domain/vip/model.js';
import { interfaceOf } from '../../domain/vip/placement.js';
import type { ClaimWatch, VirtualAddress } from '../../ports/vip/virtual-address.js';
import type { Addon } from '../dataplane/addon.js';

/** INFINITY_LIFE_TIME of linux/if_addr.h. */
const FOREVER = 0xffff_ffff;

export interface NetlinkVirtualAddressParts {
  readonly addon: Addon;
  readonly address: IpAddress;
  /** Undefined: the one on whose network the address is. */
  readonly interface: string | undefined;
}

/** An address over rtnetlink(7), with the kernel's own lifetime; its neighbours are told by ARP or ICMPv6. */
export class NetlinkVirtualAddress implements VirtualAddress {
  readonly #parts: NetlinkVirtualAddressParts;

  constructor(parts: NetlinkVirtualAddressParts) {
    this.#parts = parts;
  }

  find(): readonly PlacedAddress[] {
    const { address } = this.#parts;
    return this.#all().filter((one) => one.address === address);
  }

  lease(until: number): boolean {
    const { addon, address } = this.#parts;
    const on = this.#interface();
    // With a lifetime an address of IPv6 that another hand has put there would take the route of its whole network along.
    const isOurs = ({ interface: where, prefixLength }: PlacedAddress) =>
      where === on && prefixLength === (isIpv6(address) ? 128 : 32);
    this.#removeAll(this.find().filter((one) => !isOurs(one)));
    return this.#done(() => addon.leaseAddress(on, address, until)) > 0;
  }

  remove(): void {
    this.#removeAll(this.find());
  }

  announce(): void {
    const { addon, address } = this.#parts;
    const on = this.#interface();
    this.#done(() => addon.tellNeighbours('announce', on, address));
  }

  watch(): ClaimWatch {
    const { addon, address } = this.#parts;
    const on = this.#interface();
    let fd: number | undefined = this.#done(() => addon.watchNeighbours(on, address));
    return {
      probe: () => this.#done(() => addon.tellNeighbours('probe', on, address)),
      claim: () => (fd === undefined ? undefined : addon.readClaim(fd, on, address)),
      close: () => {
        if (fd !== undefined) addon.unwatchNeighbours(fd);
        fd = undefined;
      },
    };
  }

  #removeAll(placed: readonly PlacedAddress[]): void {
    const { addon } = this.#parts;
    for (const { interface: on, address, prefixLength } of placed)
      this.#done(() => addon.removeAddress(on, address, prefixLength));
  }

  #interface(): string {
    const { interface: named, address } = this.#parts;
    const on = named ?? interfaceOf(address, this.#all());
    if (on !== undefined) return on;
    throw new AgentError('vip.no_interface', { problem: `no interface of this machine is on the network of ${address}` });
  }

  #all(): readonly PlacedAddress[] {
    const { addon, address } = this.#parts;
    const list = this.#done(() => addon.listAddresses(isIpv6(address) ? 6 : 4));
    return list.map((one) => ({
      ...one,
      // inet_ntop(3) writes some of IPv6 otherwise than RFC 5952.
      address: ipAddress(one.address) ?? (one.address as IpAddress),
      validSeconds: one.validSeconds === FOREVER ? undefined : one.validSeconds,
    }));
  }

  #done<T>(step: () => T): T {
    try {
      return step();
    } catch (error) {
      const problem = `${this.#parts.address}: ${error instanceof Error ? error.message : String(error)}`;
      const isGone = error instanceof Error && 'code' in error && error.code === 'ENODEV';
      throw new AgentError(isGone ? 'vip.no_interface' : 'vip.not_set', { problem }, { cause: error });
    }
  }
}

import { type IpAddress, ipv4ToNumber, ipv6Groups } from '../kernel/network.js';
import type { PlacedAddress } from './model.js';

/** The interface on whose network an address is, the narrowest one; undefined when it is on none. */
export function interfaceOf(address: IpAddress, placed: readonly PlacedAddress[]): string | undefined {
  const wanted = bitsOf(address);
  const around = placed.filter(
    (one) =>
      one.address !== address &&
      one.prefixLength > 0 &&
      bitsOf(one.address).slice(0, one.prefixLength) === wanted.slice(0, one.prefixLength),
  );
  const hosts = around.filter(({ prefixLength }) => prefixLength < wanted.length);
  return hosts.toSorted((a, b) => b.prefixLength - a.prefixLength)[0]?.interface;
}

/** One character a bit; of another family never a beginning of it. */
function bitsOf(address: string): string {
  const v4 = ipv4ToNumber(address);
  if (v4 !== undefined) return v4.toString(2).padStart(32, '0');
  return (ipv6Groups(address) ?? []).map((group) => group.toString(2).padStart(16, '0')).join('');
}

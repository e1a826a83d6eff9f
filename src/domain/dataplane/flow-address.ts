import { type IpAddress, ipAddress, ipv4ToNumber, ipv6Groups, numberToIpv4 } from '../kernel/network.js';

/** Into 16 bytes that are zero: in network order, IPv4 in the first four. */
export function writeAddress(view: DataView, at: number, address: IpAddress): void {
  const v4 = ipv4ToNumber(address);
  if (v4 !== undefined) {
    view.setUint32(at, v4);
    return;
  }
  for (const [index, group] of (ipv6Groups(address) ?? []).entries()) view.setUint16(at + 2 * index, group);
}

/** @throws RangeError when `family` is neither 4 nor 6. */
export function readAddress(view: DataView, at: number, family: number): IpAddress {
  if (family === 4) return numberToIpv4(view.getUint32(at));
  const text = Array.from({ length: 8 }, (_, index) => view.getUint16(at + 2 * index).toString(16)).join(':');
  const address = family === 6 ? ipAddress(text) : undefined;
  if (address === undefined) throw new RangeError(`no address of family ${family}`);
  return address;
}

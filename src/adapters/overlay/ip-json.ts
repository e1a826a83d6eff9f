import type { Ipv4Range } from '../../domain/kernel/network.js';
import { type LinkKind, networkOf, type OverlayAddress, overlayAddress } from '../../domain/overlay/model.js';

export interface LinkFacts {
  /** Undefined: something else has the name. */
  readonly kind: LinkKind | undefined;
  readonly up: boolean;
  readonly mtu: number;
}

type Fields = Readonly<Record<string, unknown>>;

/** `ip -j -d link show dev wg0`. Undefined when it is anything else. */
export function parseLink(json: string): LinkFacts | undefined {
  const [link] = records(json) ?? [];
  if (link === undefined || typeof link.mtu !== 'number' || !Array.isArray(link.flags)) return undefined;
  const info = isRecord(link.linkinfo) ? link.linkinfo.info_kind : undefined;
  // wireguard-go carries packets over a tun device.
  const kind = info === 'wireguard' ? 'kernel' : info === 'tun' ? 'wireguard-go' : undefined;
  return { kind, up: link.flags.includes('UP'), mtu: link.mtu };
}

/** `ip -j -4 addr show dev wg0`. */
export function parseAddresses(json: string): readonly OverlayAddress[] | undefined {
  const all = records(json)?.flatMap(({ addr_info: info }) => (Array.isArray(info) ? info : []));
  const read = all?.map((one: unknown) => (isRecord(one) ? overlayAddress(`${one.local}/${one.prefixlen}`) : undefined));
  return whole(read);
}

export interface Route {
  readonly range: Ipv4Range;
  readonly device: string;
}

/** `ip -j -4 route show …`; the default route is none of them. */
export function parseRoutes(json: string, device?: string): readonly Route[] | undefined {
  const read = records(json)
    ?.filter(({ dst }) => dst !== 'default')
    .map(({ dst, dev = device }): Route | undefined => {
      const range = typeof dst === 'string' ? networkOf(dst) : undefined;
      return range === undefined || typeof dev !== 'string' ? undefined : { range, device: dev };
    });
  return whole(read);
}

function whole<T>(values: readonly (T | undefined)[] | undefined): readonly T[] | undefined {
  const known = values?.flatMap((value) => (value === undefined ? [] : [value]));
  return known?.length === values?.length ? known : undefined;
}

/** An empty answer is an empty list: some versions print nothing for one. */
function records(json: string): readonly Fields[] | undefined {
  if (json.trim() === '') return [];
  try {
    const value: unknown = JSON.parse(json);
    return Array.isArray(value) ? value.filter(isRecord) : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

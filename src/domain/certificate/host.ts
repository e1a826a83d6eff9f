import { formatIpv4Range, type Ipv4Range, ipv4ToNumber, numberToIpv4 } from '../kernel/network.js';

/** An IPv4 address or a route of the host. */
export interface HostNetwork {
  /** Name of the interface. */
  readonly device: string;
  /** Any address of the network. */
  readonly address: string;
  readonly prefixLength: number;
}

/** The overlay's, Kubernetes' and container networks' own: a node that registers again would collide with what it had. */
export const OWN_DEVICES: readonly RegExp[] = [/^lo$/, /^wg/, /^cilium_/, /^lxc/, /^cni0$/, /^kube-ipvs0$/];

/**
 * The IPv4 networks that the host is on or has routes to, each once, in order, without the default route, for a control plane that
 * chooses others. Without what this product itself puts on a host.
 */
export function hostCidrs(networks: readonly HostNetwork[]): readonly string[] {
  const ranges = new Map<string, Ipv4Range>();
  for (const { device, address, prefixLength } of networks) {
    const value = ipv4ToNumber(address);
    const isNetwork = Number.isInteger(prefixLength) && prefixLength >= 1 && prefixLength <= 32;
    if (value === undefined || !isNetwork || OWN_DEVICES.some((ours) => ours.test(device))) continue;
    const range = { network: numberToIpv4(value - (value % 2 ** (32 - prefixLength))), prefixLength };
    ranges.set(formatIpv4Range(range), range);
  }
  return [...ranges].sort(([, a], [, b]) => byAddress(a, b)).map(([text]) => text);
}

function byAddress(a: Ipv4Range, b: Ipv4Range): number {
  return (ipv4ToNumber(a.network) ?? 0) - (ipv4ToNumber(b.network) ?? 0) || a.prefixLength - b.prefixLength;
}

/** `<ID>-<VERSION_ID>` of an os-release(5) file: `debian-12`. A rolling distribution has no version: `arch`. Empty without an ID. */
export function osName(osRelease: string): string {
  const values = new Map(
    osRelease.split('\n').flatMap((line) => {
      const match = /^\s*([A-Z0-9_]+)=(.*?)\s*$/.exec(line);
      return match?.[1] === undefined ? [] : [[match[1], unquoted(match[2] ?? '')] as const];
    }),
  );
  const [id = '', version = ''] = [values.get('ID'), values.get('VERSION_ID')];
  return id === '' || version === '' ? id : `${id}-${version}`;
}

/** The shell's quotes, as far as os-release uses them. */
function unquoted(text: string): string {
  const match = /^(["'])(.*)\1$/.exec(text);
  return (match?.[2] ?? text).replaceAll(/\\(["'$`\\])/g, '$1');
}

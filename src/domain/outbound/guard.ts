import { containsRange, type IpAddress, ipAddress, ipv4Range, ipv6Groups, isIpv6, numberToIpv4 } from '../kernel/network.js';

/** A target as the WHATWG's URL parser gives it: `127.1`, `0x7f000001` and `１２７.0.0.1` have become `127.0.0.1` there. */
export interface OutboundTarget {
  /** With its colon: `https:`. */
  readonly protocol: string;
  readonly username: string;
  readonly password: string;
  /** A name in lower case and Punycode, an IPv4 address, or an IPv6 address in brackets. */
  readonly hostname: string;
}

/** What speaks against a target whatever it leads to, as the end of a sentence; undefined when nothing does. */
export function judgeForm({ protocol, username, password, hostname }: OutboundTarget): string | undefined {
  if (protocol !== 'http:' && protocol !== 'https:') return `${protocol} is neither http nor https`;
  if (username !== '' || password !== '') return 'credentials belong into a header, not into the URL';
  return hostname === '' ? 'it names no host' : undefined;
}

/** RFC 6761, section 6.3: `localhost` and what is below it are this machine, whatever a name service says. */
export function judgeName(hostname: string): string | undefined {
  const labels = hostname.replace(/\.$/, '').split('.');
  return labels.at(-1) === 'localhost' ? `${hostname} is this machine` : undefined;
}

/** The address that stands in a URL in a name's place. */
export function literalAddress(hostname: string): IpAddress | undefined {
  return ipAddress(hostname.startsWith('[') && hostname.endsWith(']') ? hostname.slice(1, -1) : hostname);
}

/**
 * Why no connection may go to `text`, which a name service or a URL gave; undefined when one may. Refused is what only this machine
 * can reach, and what answers as this machine's cloud. Private ranges are allowed: a fleet's own servers live there.
 */
export function judgeAddress(text: string): string | undefined {
  const address = ipAddress(text);
  if (address === undefined) return `${JSON.stringify(text)} is no address`;
  const kind = isIpv6(address) ? kindOfIpv6(address) : kindOfIpv4(address);
  return kind === undefined ? undefined : `${address} is ${kind}`;
}

const METADATA = 'a metadata service';

/** IANA's registry of special-purpose addresses, and what clouds document. The first that fits names it. */
const FORBIDDEN_IPV4 = (
  [
    // AWS, Azure, Google Cloud, DigitalOcean, Hetzner, OpenStack, Oracle …
    ['169.254.169.254/32', METADATA],
    // AWS: tasks' and pods' credentials.
    ['169.254.170.2/32', METADATA],
    ['169.254.170.23/32', METADATA],
    ['169.254.42.42/32', METADATA], // Scaleway
    ['100.100.100.200/32', METADATA], // Alibaba
    ['168.63.129.16/32', METADATA], // Azure's wire server
    ['192.0.0.192/32', METADATA], // Oracle, first generation
    ['0.0.0.0/8', 'unspecified'],
    ['127.0.0.0/8', 'loopback'],
    ['169.254.0.0/16', 'link-local'],
    ['224.0.0.0/4', 'multicast'],
    ['255.255.255.255/32', 'broadcast'],
  ] as const
).flatMap(([text, kind]) => {
  const range = ipv4Range(text);
  return range === undefined ? [] : [{ range, kind }];
});

const FORBIDDEN_IPV6 = [
  { prefix: 'fd00:ec2::254', bits: 128, kind: METADATA }, // AWS
  { prefix: 'fd00:ec2::23', bits: 128, kind: METADATA }, // AWS: pods' credentials
  { prefix: 'fd20:ce::254', bits: 128, kind: METADATA }, // Google Cloud
  { prefix: 'fd00:42::42', bits: 128, kind: METADATA }, // Scaleway
  { prefix: 'fd00:c1::a9fe:a9fe', bits: 128, kind: METADATA }, // Oracle
  { prefix: '::', bits: 128, kind: 'unspecified' },
  { prefix: '::1', bits: 128, kind: 'loopback' },
  { prefix: 'fe80::', bits: 10, kind: 'link-local' },
  { prefix: 'ff00::', bits: 8, kind: 'multicast' },
] as const;

/** Forms of IPv6 that hold an IPv4 address in two of their groups, and go where that one goes. */
const EMBEDDING = [
  { prefix: '::', bits: 96, group: 6, mask: 0 }, // IPv4-compatible, RFC 4291 section 2.5.5.1
  { prefix: '::ffff:0:0', bits: 96, group: 6, mask: 0 }, // IPv4-mapped, section 2.5.5.2
  { prefix: '::ffff:0:0:0', bits: 96, group: 6, mask: 0 }, // IPv4-translated, RFC 2765
  { prefix: '64:ff9b::', bits: 96, group: 6, mask: 0 }, // NAT64, RFC 6052
  // NAT64 of a site's own, RFC 8215. Its prefix has 96 bits nearly everywhere; in a shorter one the address stands elsewhere, unseen.
  { prefix: '64:ff9b:1::', bits: 48, group: 6, mask: 0 },
  { prefix: '2002::', bits: 16, group: 1, mask: 0 }, // 6to4, RFC 3056
  { prefix: '2001::', bits: 32, group: 6, mask: 0xffff }, // Teredo, RFC 4380: the client's address, inverted
] as const;

function kindOfIpv4(address: IpAddress): string | undefined {
  return FORBIDDEN_IPV4.find(({ range }) => containsRange(range, { network: address, prefixLength: 32 }))?.kind;
}

function kindOfIpv6(address: IpAddress): string | undefined {
  const groups = ipv6Groups(address) ?? [];
  const own = FORBIDDEN_IPV6.find(({ prefix, bits }) => begins(groups, prefix, bits));
  if (own !== undefined) return own.kind;
  for (const { prefix, bits, group, mask } of EMBEDDING) {
    if (!begins(groups, prefix, bits)) continue;
    const [high = 0, low = 0] = groups.slice(group);
    const inner = numberToIpv4((high ^ mask) * 65_536 + (low ^ mask));
    const kind = kindOfIpv4(inner);
    if (kind !== undefined) return `${inner}, which is ${kind}`;
  }
  return undefined;
}

function begins(groups: readonly number[], prefix: string, bits: number): boolean {
  const wanted = ipv6Groups(prefix) ?? [];
  return groups.every((group, index) => {
    const shift = 16 - Math.min(16, Math.max(0, bits - index * 16));
    return group >> shift === (wanted[index] ?? 0) >> shift;
  });
}

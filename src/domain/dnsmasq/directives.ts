/** Whether a directive has a value, as dnsmasq 2.90 reads it. */
export type Value = 'none' | 'some' | 'maybe';

/** What a control plane may configure: the answers, where they come from, and where dnsmasq listens. */
export const allowedDirectives: ReadonlyMap<string, Value> = new Map([
  ['address', 'some'],
  ['all-servers', 'none'],
  ['bind-dynamic', 'none'],
  ['bind-interfaces', 'none'],
  ['bogus-priv', 'none'],
  ['cache-size', 'some'],
  ['clear-on-reload', 'none'],
  ['dns-forward-max', 'some'],
  ['domain', 'some'],
  ['domain-needed', 'none'],
  ['except-interface', 'some'],
  ['expand-hosts', 'none'],
  // dnsmasq itself takes capitals alone; its own test tells whoever wrote the other.
  ['filter-AAAA', 'none'],
  ['filter-aaaa', 'none'],
  ['interface', 'some'],
  ['listen-address', 'some'],
  ['local', 'some'],
  ['local-ttl', 'some'],
  ['log-queries', 'maybe'],
  ['max-cache-ttl', 'some'],
  ['max-ttl', 'some'],
  ['min-cache-ttl', 'some'],
  ['neg-ttl', 'some'],
  ['no-hosts', 'none'],
  ['no-poll', 'none'],
  ['no-resolv', 'none'],
  ['port', 'some'],
  ['rebind-localhost-ok', 'none'],
  ['server', 'some'],
  ['stop-dns-rebind', 'none'],
  ['strict-order', 'none'],
]);

const READS = 'it reads another file';
const WRITES = 'it writes another file';
const RUNS = 'it runs a program';
const OPENS = 'it lets others change what is answered';

/** What the most telling refusals say; every other directive that is not allowed is refused as well. */
const forbiddenDirectives: ReadonlyMap<string, string> = new Map([
  ...['addn-hosts', 'conf-dir', 'conf-file', 'dhcp-hostsdir', 'dhcp-hostsfile', 'dhcp-optsdir', 'dhcp-optsfile', 'hostsdir'].map(
    (name) => [name, READS] as const,
  ),
  ...['read-ethers', 'resolv-file', 'servers-file', 'tftp-root', 'trust-anchor'].map((name) => [name, READS] as const),
  ...['dhcp-leasefile', 'dnssec-timestamp', 'dumpfile', 'log-facility', 'pid-file'].map((name) => [name, WRITES] as const),
  ...['conf-script', 'dhcp-luascript', 'dhcp-script', 'script-arp', 'script-on-renewal'].map((name) => [name, RUNS] as const),
  ...['dhcp-scriptuser', 'group', 'user'].map((name) => [name, 'it changes the user'] as const),
  ...['enable-dbus', 'enable-ubus'].map((name) => [name, OPENS] as const),
  ...['authoritative', 'auth-server', 'auth-zone', 'dhcp-authoritative'].map(
    (name) => [name, 'it makes this node an authority'] as const,
  ),
  ['enable-tftp', 'it hands out files'],
]);

export const forbiddenNames: readonly string[] = [...forbiddenDirectives.keys()];

/** Why not, for people. */
export function refusalOf(name: string): string {
  return forbiddenDirectives.get(name) ?? 'it is none of those that a control plane may set';
}

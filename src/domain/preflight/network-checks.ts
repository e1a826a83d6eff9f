import { hostCidrs } from '../certificate/host.js';
import { formatInstant } from '../kernel/instant.js';
import { containsRange, formatHostPort, formatIpv4Range, ipAddress, ipv4Range, isLoopback } from '../kernel/network.js';
import { type Check, ok, problem, unknown, type Verdict, type Wanted, warning } from './model.js';

/** A resolver that takes longer makes everything that connects look slow. */
const LOOKUP_MS = 1_000;
const NO_SERVER = unknown('no --server was given');

/** Names and ways to others. */
export const networkChecks: readonly Check[] = [
  {
    name: 'resolver',
    wants: '`/etc/resolv.conf` names a server, and where it is this machine, that something listens there',
    judge: ({ nameservers, listeners }) => {
      if (nameservers === undefined) return unknown('/etc/resolv.conf cannot be read');
      if (nameservers.length === 0)
        return problem('/etc/resolv.conf names no server', 'write "nameserver ADDRESS" into /etc/resolv.conf');
      const own = nameservers.filter((text) => isOwn(text));
      const isServed = listeners === undefined || listeners.some(({ protocol, port }) => protocol === 'udp' && port === 53);
      if (own.length < nameservers.length || isServed) return ok(nameservers.join(', '));
      return problem(
        `/etc/resolv.conf names ${own.join(', ')}, where nothing listens: a former membership has left it`,
        'write "nameserver ADDRESS" of the network\'s own resolver into /etc/resolv.conf',
      );
    },
  },
  {
    name: 'ranges',
    wants: 'no network of the machine lies in a range that the cluster is to have (`--range`)',
    judge: ({ networks }, { ranges }) => {
      if (ranges.length === 0) return ok('no range was named');
      if (networks === undefined) return unknown('the networks of the machine cannot be read');
      const own = hostCidrs(networks).flatMap((text) => ipv4Range(text) ?? []);
      // A route to more than the range, as 10.0.0.0/8 to a company's network, gives way to the range's own.
      const [hit] = ranges.flatMap((range) => own.filter((net) => containsRange(range, net)).map((net) => ({ range, net })));
      if (hit === undefined) return ok(`${own.length} networks, none collides`);
      const said = `${formatIpv4Range(hit.net)} of this machine lies in ${formatIpv4Range(hit.range)}`;
      return problem(said, 'choose another range for the cluster, and name it with --range');
    },
  },
  {
    name: 'ca',
    wants: 'the file of `--ca` is a certificate that is valid and has the digest of `--ca-sha256`',
    judge: ({ ca, now }, wanted) => {
      if (wanted.ca === undefined) return unknown('no --ca was given');
      if (ca === undefined) return unknown('the file could not be read in time');
      const fetch = 'copy registration-ca.crt of the control plane again, and name it with --ca';
      if ('problem' in ca) return problem(ca.problem, fetch);
      return ca.notAfter > now ? ok(`sha256 ${ca.sha256}`) : problem(`it was valid until ${formatInstant(ca.notAfter)}`, fetch);
    },
  },
  {
    name: 'proxy',
    wants: 'no proxy stands before the control plane',
    judge: ({ proxy }, { server }) => {
      const [name, value] = Object.entries(proxy).find(([key]) => key === 'https_proxy' || key === 'all_proxy') ?? [];
      if (name === undefined || value === '') return ok('none is set');
      const exempt = (proxy.no_proxy ?? '').split(',').map((part) => part.trim());
      if (server === undefined || isExempt(server.host, exempt)) return ok(`${name} does not concern it`);
      return warning(
        `${name} is set, and the agent connects without it`,
        `open the way to ${formatHostPort(server)}, and add ${server.host} to no_proxy`,
      );
    },
  },
  {
    name: 'dns',
    wants: 'the host of `--server` is found within a second',
    judge: ({ lookup }, wanted) =>
      withServer(wanted, lookup, (host, found) => {
        if ('failed' in found) {
          const slow = found.ms >= LOOKUP_MS ? `, after ${Math.round(found.ms)} ms: the resolver does not answer` : '';
          return problem(`${host} is not found (${found.failed})${slow}`, `look why with: getent ahosts ${host}`);
        }
        if (found.ms < LOOKUP_MS) return ok(`${found.addresses} addresses in ${Math.round(found.ms)} ms`);
        return warning(`the resolver took ${Math.round(found.ms)} ms for ${host}`, 'name a nearer server in /etc/resolv.conf');
      }),
  },
  {
    name: 'reachability',
    wants: 'the port of `--server` opens, in one of three attempts',
    judge: ({ way }, wanted) =>
      withServer(wanted, way, (_, { reach }, at) => {
        switch (reach.stage) {
          case 'name':
            return unknown('the name is not known: see dns');
          case 'closed':
            return problem(`${at} refuses connections`, 'start `holdfast server` there, or mend --server');
          case 'silent':
            return problem(`${at}: ${reach.detail}`, `let TCP to ${at} through firewalls, and look at: ip route`);
          case 'tls':
          case 'refused':
          case 'through':
            return ok(at);
        }
      }),
  },
  {
    name: 'tls',
    wants: 'the server shows a certificate that the file of `--ca` signed',
    judge: ({ way }, wanted) =>
      withServer(wanted, way, (_, { reach, isDistrusted }, at) => {
        if (wanted.ca === undefined) return unknown('no --ca was given');
        if (reach.stage === 'through') return ok('trusted');
        // A handshake that ends early, or hangs, is no sign of an interception.
        if (!isDistrusted || reach.stage !== 'tls') return unknown(`${at} showed no certificate`);
        return problem(
          `${at} is not trusted: ${reach.detail}; it is another control plane, or something between intercepts TLS`,
          'copy registration-ca.crt of this control plane again, or take the interception away',
        );
      }),
  },
];

function withServer<T>({ server }: Wanted, fact: T | undefined, judge: (host: string, fact: T, at: string) => Verdict): Verdict {
  if (server === undefined) return NO_SERVER;
  const at = formatHostPort(server);
  return fact === undefined ? unknown(`${at} could not be asked`) : judge(server.host, fact, at);
}

function isOwn(text: string): boolean {
  const address = ipAddress(text);
  return address !== undefined && isLoopback(address);
}

function isExempt(host: string, exempt: readonly string[]): boolean {
  return exempt.some((name) => name === '*' || name === host || (name !== '' && host.endsWith(`.${name.replace(/^\./, '')}`)));
}

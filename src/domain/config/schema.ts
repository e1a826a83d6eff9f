import { z } from 'zod';
import { dataPathChoices } from '../dataplane/data-path.js';
import { nameBytes, parseName } from '../dns/name.js';
import { isLabelKey, isLabelValue, type Labels, nodeName } from '../identity/model.js';
import { policyTypes } from '../instruction/policy.js';
import { DNS_LABEL } from '../kernel/dns-label.js';
import { durationMs } from '../kernel/duration.js';
import {
  addressPort,
  containsRange,
  hostPort,
  type Ipv4Range,
  ipAddress,
  ipv4Range,
  isHost,
  isLoopback,
  portNumber,
} from '../kernel/network.js';
import { absolutePath } from '../kernel/paths.js';
import { aid, nid } from '../link/model.js';
import { disconnectModes } from '../vip/model.js';
import { auditFailures, type Config, logLevels, type MarkBits, type Mode } from './model.js';

/** RFC 1918 and RFC 6598. */
const privateBlocks = blocks('10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10');
const loopbackBlocks = blocks('127.0.0.0/8');

/** A ring of records of about 1 KiB each: 1 GiB at most. */
const greatestCapacity = 1_048_576;

/** Two descriptors each; no kernel of ours gives more. */
const mostConnections = 10_000_000;

/** What one source says; no defaults. */
export type ConfigLayer = Partial<Config>;

/** Reads a file's data, or that of variables and flags put in the same shape. A custom issue's message says what was expected. */
export function layerSchema(mode: Mode) {
  const vip = vipGroup.extend({ range: mode === 'dev' ? devRange : productionRange });
  const metrics = z.strictObject({ listen: mode === 'dev' ? devListen : listen });
  const dns = z.strictObject({ listen: mode === 'dev' ? devListen : listen, zone });
  return z
    .strictObject({
      nodeName: leaf('a DNS-1123 label: 1 to 63 characters of a-z, 0-9 and -, not at either end', textual(nodeName)),
      logLevel: leaf(`one of ${logLevels.join(', ')}`, (value) => logLevels.find((level) => level === value)),
      labels,
      readyTimeout: duration,
      outbox: z
        .strictObject({ capacity: leaf(`a whole number from 1 to ${greatestCapacity}`, between(1, greatestCapacity)) })
        .optional(),
      vip: vip.optional(),
      metrics: metrics.optional(),
      dns: dns.optional(),
      dataplane: z
        .strictObject({
          threads: leaf('a whole number from 1 to 8, or auto', (value) => (value === 'auto' ? value : between(1, 8)(value))),
          connectTimeout: duration,
          maxConnections: leaf(`a whole number from 1 to ${mostConnections}, or auto`, (value) =>
            value === 'auto' ? value : between(1, mostConnections)(value),
          ),
          busyPoll,
          path: leaf(`one of ${dataPathChoices.join(', ')}`, (value) => dataPathChoices.find((choice) => choice === value)),
          tableOwner: onOrOff,
          manageSysctls: onOrOff,
          markBits,
          ejection: z
            .strictObject({
              failures: leaf('a whole number from 1 to 100, or off', (value) => (value === 'off' ? 0 : between(1, 100)(value))),
              returnAfter: duration,
            })
            .optional(),
          handoverGrace: duration,
        })
        .optional(),
      log: z.strictObject({ staleAfter: duration }).optional(),
      server: serverGroup.optional(),
      client: clientGroup.optional(),
      node: z.strictObject({ ip: leaf('an IP address', textual(ipAddress)) }).optional(),
      instructions: instructionsGroup.optional(),
      audit: z
        .strictObject({
          onFailure: leaf(`one of ${auditFailures.join(', ')}`, (value) => auditFailures.find((one) => one === value)),
        })
        .optional(),
      overlay: overlayGroup.optional(),
    })
    .transform(
      (file): ConfigLayer =>
        present({
          nodeName: file.nodeName,
          logLevel: file.logLevel,
          labels: file.labels,
          readyTimeoutMs: file.readyTimeout,
          outboxCapacity: file.outbox?.capacity,
          vipRange: file.vip?.range,
          metricsListen: file.metrics?.listen,
          dnsListen: file.dns?.listen,
          dnsZone: file.dns?.zone,
          threads: file.dataplane?.threads,
          connectTimeoutMs: file.dataplane?.connectTimeout,
          maxConnections: file.dataplane?.maxConnections,
          busyPollUs: file.dataplane?.busyPoll,
          ejectionFailures: file.dataplane?.ejection?.failures,
          ejectionReturnMs: file.dataplane?.ejection?.returnAfter,
          handoverGraceMs: file.dataplane?.handoverGrace,
          dataPath: file.dataplane?.path,
          tableOwner: file.dataplane?.tableOwner,
          manageSysctls: file.dataplane?.manageSysctls,
          markBits: file.dataplane?.markBits,
          staleAfterMs: file.log?.staleAfter,
          serverL1Listen: file.server?.listen?.l1,
          serverL2Listen: file.server?.listen?.l2,
          serverAdminListen: file.server?.listen?.admin,
          serverMetricsListen: file.server?.listen?.metrics,
          serverHosts: file.server?.hosts,
          serverAccount: file.server?.account,
          serverEtcd: file.server?.etcd,
          serverEtcdCluster: file.server?.etcdCluster,
          serverEtcdCa: file.server?.etcdCa,
          serverEtcdCert: file.server?.etcdCert,
          serverEtcdKey: file.server?.etcdKey,
          nodeward: file.client?.server?.nodeward,
          installer: file.client?.server?.installer,
          conductor: file.client?.server?.conductor,
          packages: file.client?.server?.packages,
          nodeIp: file.node?.ip,
          instructionsAllow: file.instructions?.allow,
          instructionsDeny: file.instructions?.deny,
          scriptsAllow: file.instructions?.scripts?.allow,
          scriptsDeny: file.instructions?.scripts?.deny,
          kubectlAllow: file.instructions?.kubectl?.allow,
          kubectlDeny: file.instructions?.kubectl?.deny,
          auditOnFailure: file.audit?.onFailure,
          overlayCidr: file.overlay?.cidr,
          overlayEndpoint: file.overlay?.endpoint,
          overlayNetworks: file.overlay?.networks,
          vipAddress: file.vip?.address,
          vipInterface: file.vip?.interface,
          vipOnDisconnect: file.vip?.onDisconnect,
          vipCandidates: file.vip?.candidates,
        }),
    );
}

/** One value. `expected` ends the sentence "expected …". */
function leaf<T>(expected: string, read: (value: unknown) => T | undefined) {
  return z
    .unknown()
    .transform((value, context): T => {
      const result = read(value);
      if (result !== undefined) return result;
      context.addIssue({ code: 'custom', message: expected });
      return z.NEVER;
    })
    .optional();
}

const duration = leaf(
  'a duration of 1ms to 576h, such as 500ms, 30s, 5m or 2h',
  (value) =>
    // A wait of nothing is a mistake for a setting of the daemon.
    textual(durationMs)(value) || undefined,
);

const onOrOff = leaf('on or off', (value) => {
  if (value === true || value === 'on' || value === 'true') return true;
  return value === false || value === 'off' || value === 'false' ? false : undefined;
});

const markBits = leaf('two different numbers from 0 to 31', (value): MarkBits | undefined => {
  const bits: readonly unknown[] = Array.isArray(value) ? value : [];
  const [carried, cut, ...more] = bits.map((bit) =>
    between(0, 31)(typeof bit === 'string' && /^\d+$/.test(bit) ? Number(bit) : bit),
  );
  return carried === undefined || cut === undefined || carried === cut || more.length > 0 ? undefined : { carried, cut };
});

/** Of the mutual channel. */
const nodewardPort = portNumber(9192);

/** Of the admin API, where only an address is given. */
const adminPort = portNumber(9194);
const adminListen = leaf('address:port (IPv6 in brackets), an address alone for port 9194, or off', (value) => {
  if (value === 'off' || typeof value !== 'string') return value === 'off' ? value : undefined;
  const address = ipAddress(value);
  return address === undefined || adminPort === undefined ? addressPort(value) : { address, port: adminPort };
});

const listen = leaf('address:port (IPv6 in brackets), or off', (value) =>
  value === 'off' ? value : textual(addressPort)(value),
);

const port = leaf('address:port (IPv6 in brackets)', textual(addressPort));
const account = leaf('1 to 63 of a-z, A-Z, 0-9, ., _ and -, beginning with a letter or digit', (value) => {
  try {
    return typeof value === 'string' ? aid(value) : undefined;
  } catch {
    return undefined;
  }
});

/** What a URL's path is put behind. */
const baseUrl = leaf('https://host or http://host, without a slash at the end', (value) =>
  typeof value === 'string' && /^https?:\/\/[^\s/?#@]+(\/[^\s?#]*[^\s?#/])?$/.test(value) ? value : undefined,
);

const types = list(`instruction types, such as ${policyTypes[0]}`, (text) => policyTypes.find((type) => type === text));
const scripts = list('names of scripts; a * may stand at the end', (text) =>
  /^[\w./-]+\*?$|^\*$/.test(text) ? text : undefined,
);

const verbs = list('verbs of kubectl, such as get or rollout status; a * may stand at the end', (text) =>
  /^(?:[a-z-]+(?: [a-z-]*)?)?\*$|^[a-z-]+(?: [a-z-]+)?$/.test(text) ? text : undefined,
);

const file = leaf('an absolute path', textual(absolutePath));

function etcdUrl(text: string): string | undefined {
  const match = /^https?:\/\/([^/?#@]+)$/.exec(text);
  const etcdPort = portNumber(2379);
  return match?.[1] === undefined || etcdPort === undefined || hostPort(match[1], etcdPort) === undefined ? undefined : text;
}

const serverGroup = z.strictObject({
  listen: z.strictObject({ l1: port, l2: port, admin: adminListen, metrics: listen }).optional(),
  hosts: list('DNS names or IP addresses', (text) => (isHost(text) ? text : undefined)),
  account,
  etcd: list('http://host:port or https://host:port', etcdUrl),
  etcdCluster: leaf('1 to 63 characters of a-z, 0-9 and -, not at either end', textual(nodeName)),
  etcdCa: file,
  etcdCert: file,
  etcdKey: file,
});
const clientGroup = z.strictObject({
  server: z
    .strictObject({
      nodeward: list('hosts, with a port where it is not 9192', (text) =>
        nodewardPort === undefined ? undefined : hostPort(text, nodewardPort),
      ),
      installer: baseUrl,
      conductor: baseUrl,
      packages: baseUrl,
    })
    .optional(),
});
const instructionsGroup = z.strictObject({
  allow: types,
  deny: types,
  scripts: z.strictObject({ allow: scripts, deny: scripts }).optional(),
  kubectl: z.strictObject({ allow: verbs, deny: verbs }).optional(),
});

/** A list of texts, or one of them alone. */
function list<T>(expected: string, read: (text: string) => T | undefined) {
  return leaf(`a list of ${expected}`, (value): readonly T[] | undefined => {
    const texts = typeof value === 'string' ? [value] : value;
    if (!Array.isArray(texts)) return undefined;
    const values = texts.map((text: unknown) => (typeof text === 'string' ? read(text) : undefined));
    const known = values.flatMap((one) => (one === undefined ? [] : [one]));
    return known.length === values.length ? known : undefined;
  });
}

/** More does not find more, and a thread that looks all the time takes a core from its neighbours. */
const mostBusyPollUs = 200;
const busyPoll = leaf(`1us to ${mostBusyPollUs}us, or off`, (value) => {
  if (value === 'off') return 0;
  const match = typeof value === 'string' ? /^([1-9]\d{0,2})us$/.exec(value) : null;
  return match === null ? undefined : between(1, mostBusyPollUs)(Number(match[1]));
});

/** A suffix of names: with the two labels of a service and its namespace, and two of a port, there has to be room. */
const MAX_ZONE_BYTES = 100;
const zone = leaf('a domain of letters, digits and -, such as holdfast or cluster.local', (value) => {
  const name = typeof value === 'string' ? parseName(value) : undefined;
  const isDomain = name !== undefined && name.length > 0 && name.every((label) => DNS_LABEL.test(label));
  return isDomain && nameBytes(name) <= MAX_ZONE_BYTES ? name : undefined;
});
const devListen = leaf('address:port on loopback, or off', (value) => {
  const result = value === 'off' ? value : textual(addressPort)(value);
  return result === undefined || result === 'off' || isLoopback(result.address) ? result : undefined;
});

const productionRange = leaf(
  'a network like 10.192.0.0/16: /8 to /28, private (10/8, 172.16/12, 192.168/16) or of 100.64/10, without bits behind the prefix',
  rangeIn(privateBlocks),
);
const overlayGroup = z.strictObject({
  cidr: productionRange,
  endpoint: leaf('an IP address, or none', (value) => (value === 'none' ? value : textual(ipAddress)(value))),
  networks: list('IPv4 networks like 10.1.0.0/24, without bits behind the prefix', (text) => {
    const range = ipv4Range(text);
    return range === undefined || range.prefixLength === 0 ? undefined : range;
  }),
});
const vipGroup = z.strictObject({
  address: leaf('an IP address', textual(usableAddress)),
  // IFNAMSIZ, and what would be read as an option or a path.
  interface: leaf('the name of an interface, 1 to 15 characters', textual(interfaceName)),
  onDisconnect: leaf(`one of ${disconnectModes.join(', ')}`, (value) => disconnectModes.find((mode) => mode === value)),
  candidates: list('ids of nodes, or control-planes', (text) => (isNid(text) ? text : undefined)),
});
const devRange = leaf(
  'a network like 127.192.0.0/16: /8 to /28, of 127/8 (dev listens on loopback only), without bits behind the prefix',
  rangeIn(loopbackBlocks),
);

const labels = z
  .unknown()
  .transform((value, context): Labels => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      context.addIssue({ code: 'custom', message: 'labels, key: value each (as text: a=b,c=d)' });
      return z.NEVER;
    }
    const result: [string, string][] = [];
    for (const [key, each] of Object.entries(value)) {
      if (!isLabelKey(key)) context.addIssue({ code: 'custom', path: [key], message: 'a label key, [prefix/]name' });
      else if (typeof each === 'string' && isLabelValue(each)) result.push([key, each]);
      else
        context.addIssue({ code: 'custom', path: [key], message: 'text of at most 63 letters, digits, -, _ and . (in quotes)' });
    }
    return Object.fromEntries(result);
  })
  .optional();

/** Neither nobody's, nor this machine's alone, nor a group's. */
function usableAddress(text: string) {
  const address = ipAddress(text);
  if (address === undefined || isLoopback(address) || /^(0\.|22[4-9]\.|2[345]\d\.|ff)/.test(address)) return undefined;
  return address === '::' ? undefined : address;
}

function isNid(text: string): boolean {
  try {
    return nid(text) === text;
  } catch {
    return false;
  }
}

function interfaceName(text: string): string | undefined {
  return /^[^\s/:-][^\s/:]{0,14}$/.test(text) ? text : undefined;
}

function textual<T>(read: (text: string) => T | undefined): (value: unknown) => T | undefined {
  return (value) => (typeof value === 'string' ? read(value) : undefined);
}

function between(least: number, greatest: number): (value: unknown) => number | undefined {
  return (value) =>
    typeof value === 'number' && Number.isInteger(value) && value >= least && value <= greatest ? value : undefined;
}

function rangeIn(outer: readonly Ipv4Range[]): (value: unknown) => Ipv4Range | undefined {
  return textual((text) => {
    const range = ipv4Range(text);
    const fits = range !== undefined && range.prefixLength >= 8 && range.prefixLength <= 28;
    return fits && outer.some((block) => containsRange(block, range)) ? range : undefined;
  });
}

function blocks(...texts: readonly string[]): readonly Ipv4Range[] {
  return texts.flatMap((text) => ipv4Range(text) ?? []);
}

/** Without the keys that hold nothing, so that a later layer does not hide an earlier one. */
function present(values: { readonly [K in keyof Config]: Config[K] | undefined }): ConfigLayer {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

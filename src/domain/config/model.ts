import type { DataPathChoice } from '../dataplane/data-path.js';
import type { DomainName } from '../dns/name.js';
import type { Labels, NodeName } from '../identity/model.js';
import type { PolicyType } from '../instruction/policy.js';
import type { AddressPort, HostPort, IpAddress, Ipv4Range } from '../kernel/network.js';
import type { AbsolutePath } from '../kernel/paths.js';
import type { Aid } from '../link/model.js';
import type { OnDisconnect } from '../vip/model.js';

/** `dev` needs no root, touches no host file and listens on loopback only. */
export type Mode = 'production' | 'dev';

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof logLevels)[number];

/** The daemons that a configuration is for. */
export type Daemon = 'dev' | 'agent' | 'server';
const everyDaemon: readonly Daemon[] = ['dev', 'agent', 'server'];
const nodes: readonly Daemon[] = ['dev', 'agent'];
const agentOnly: readonly Daemon[] = ['agent'];
const serverOnly: readonly Daemon[] = ['server'];

export const auditFailures = ['refuse', 'continue'] as const;

/** Of a connection's mark, 0 to 31, two different ones. */
export interface MarkBits {
  readonly carried: number;
  readonly cut: number;
}

/** Every setting, checked and with its default filled in. */
export interface Config {
  /** For the identity of a node that has none yet. */
  readonly nodeName?: NodeName;
  readonly logLevel: LogLevel;
  /** For the identity of a node that has none yet. */
  readonly labels: Labels;
  readonly readyTimeoutMs: number;
  /** Records. */
  readonly outboxCapacity: number;
  readonly vipRange: Ipv4Range;
  readonly metricsListen: AddressPort | 'off';
  /** Where names are answered by DNS. */
  readonly dnsListen: AddressPort | 'off';
  /** Below which the names of services are. */
  readonly dnsZone: DomainName;
  readonly threads: number | 'auto';
  readonly connectTimeoutMs: number;
  /** Open connections and UDP flows in all; `auto`: what the limit of open files leaves room for. */
  readonly maxConnections: number | 'auto';
  /** Microseconds; 0 is off. */
  readonly busyPollUs: number;
  /** Dials of an endpoint that fail in a row until it is ejected; 0 is off. */
  readonly ejectionFailures: number;
  readonly ejectionReturnMs: number;
  /** How long connections of an agent that has handed over may go on. */
  readonly handoverGraceMs: number;
  /** Who carries services that do not ask for one of both; `auto`: the kernel, where it can. */
  readonly dataPath: DataPathChoice;
  /** Whether the table of rules is this process's alone, where the kernel can do that. */
  readonly tableOwner: boolean;
  /** Whether sysctls that carrying needs are set, or only named. */
  readonly manageSysctls: boolean;
  /** Of a connection's mark: that rules of ours carry it, and that it is to be cut. */
  readonly markBits: MarkBits;
  readonly staleAfterMs: number;
  /** Where nodes register. */
  readonly serverL1Listen: AddressPort;
  /** Where nodes hold their streams. */
  readonly serverL2Listen: AddressPort;
  /** Where those who operate the control plane from elsewhere call. */
  readonly serverAdminListen: AddressPort | 'off';
  readonly serverMetricsListen: AddressPort | 'off';
  /** Under which the servers are called, for their certificates; none: the names and addresses of the machine. */
  readonly serverHosts: readonly string[];
  /** Of the nodes that are enrolled. */
  readonly serverAccount: Aid;
  /** URLs of etcd's members, whose store the servers share; none: an embedded store of this server alone. */
  readonly serverEtcd: readonly string[];
  /** Of the control plane, whose keys begin with `/holdfast/` and it. */
  readonly serverEtcdCluster: string;
  /** PEM files. Undefined: the system's roots. */
  readonly serverEtcdCa?: AbsolutePath;
  readonly serverEtcdCert?: AbsolutePath;
  readonly serverEtcdKey?: AbsolutePath;
  /** Servers of the mutual channel; none until the node has been registered or a file names them. */
  readonly nodeward: readonly HostPort[];
  /** Base URLs without a slash at the end. */
  readonly installer: string;
  /** Undefined: derived from the installer's. */
  readonly conductor?: string;
  readonly packages: string;
  /** Said in heartbeats instead of the connection's address. */
  readonly nodeIp?: IpAddress;
  readonly instructionsAllow?: readonly PolicyType[];
  readonly instructionsDeny: readonly PolicyType[];
  /** Names of scripts; a `*` at the end stands for anything. */
  readonly scriptsAllow?: readonly string[];
  readonly scriptsDeny: readonly string[];
  /** Verbs of kubectl, such as `get` or `rollout restart`; a `*` at the end stands for anything. */
  readonly kubectlAllow?: readonly string[];
  readonly kubectlDeny: readonly string[];
  readonly auditOnFailure: (typeof auditFailures)[number];
  /** Of the overlay's addresses; undefined: the control plane has no overlay. */
  readonly overlayCidr?: Ipv4Range;
  /** Under which a node's peers reach it; undefined: the address that it calls its control plane from. */
  readonly overlayEndpoint?: IpAddress | 'none';
  /** Behind the node, for its peers to reach through it. */
  readonly overlayNetworks: readonly Ipv4Range[];
  /** The virtual IP that this node may have; undefined: none. */
  readonly vipAddress?: IpAddress;
  /** Undefined: the one on whose network the address is. */
  readonly vipInterface?: string;
  readonly vipOnDisconnect: OnDisconnect;
  /** Ids of nodes, or `control-planes` for every one that says that it is ready; none: the control plane has no virtual IP. */
  readonly vipCandidates: readonly string[];
}

export interface SettingFacts {
  /** Its place in the file; variable and flag follow from it. */
  readonly path: string;
  /** How a variable's or a flag's text is read: a number if it looks like one, `a=b,c=d`, or `a,b`. */
  readonly text: 'text' | 'number' | 'pairs' | 'list';
  /** Who reads it; the others take it and do nothing with it, so that one file serves a machine. */
  readonly of: readonly Daemon[];
  /** When a new value takes effect: while running, after a restart, or only when a node gets its identity. */
  readonly applies: 'live' | 'restart' | 'minting';
  /** What to put there, for `--help`: `duration`. */
  readonly value: string;
  /** For `--help`. */
  readonly help: string;
}

export type Setting = keyof Config;

export const settings: Readonly<Record<Setting, SettingFacts>> = {
  nodeName: {
    path: 'nodeName',
    text: 'text',
    of: nodes,
    applies: 'minting',
    value: 'name',
    help: 'name of this node when it has no identity yet',
  },
  logLevel: {
    path: 'logLevel',
    text: 'text',
    of: everyDaemon,
    applies: 'live',
    value: 'level',
    help: `least level to log: ${logLevels.join(', ')}`,
  },
  labels: {
    path: 'labels',
    text: 'pairs',
    of: nodes,
    applies: 'minting',
    value: 'labels',
    help: 'labels of this node when it has no identity yet, a=b,c=d',
  },
  readyTimeoutMs: {
    path: 'readyTimeout',
    text: 'text',
    of: everyDaemon,
    applies: 'restart',
    value: 'duration',
    help: 'how long a start waits for readiness, such as 500ms, 30s or 5m',
  },
  outboxCapacity: {
    path: 'outbox.capacity',
    text: 'number',
    of: everyDaemon,
    applies: 'restart',
    value: 'records',
    help: 'how many records the outbox holds',
  },
  vipRange: {
    path: 'vip.range',
    text: 'text',
    of: everyDaemon,
    applies: 'restart',
    value: 'network',
    help: 'IPv4 network of the service addresses, set once for a log',
  },
  metricsListen: {
    path: 'metrics.listen',
    text: 'text',
    of: nodes,
    applies: 'restart',
    value: 'address:port',
    help: 'where the metrics are served, or off',
  },
  dnsListen: {
    path: 'dns.listen',
    text: 'text',
    of: nodes,
    applies: 'restart',
    value: 'address:port',
    help: 'where names of services are answered by DNS, or off',
  },
  dnsZone: {
    path: 'dns.zone',
    text: 'text',
    of: nodes,
    applies: 'restart',
    value: 'name',
    help: 'domain of the names of services',
  },
  threads: {
    path: 'dataplane.threads',
    text: 'number',
    of: nodes,
    applies: 'restart',
    value: 'count',
    help: 'proxy threads, 1 to 8, or auto: one per core',
  },
  connectTimeoutMs: {
    path: 'dataplane.connectTimeout',
    text: 'text',
    of: nodes,
    applies: 'live',
    value: 'duration',
    help: 'how long a dial of an endpoint may take, such as 500ms or 2s',
  },
  maxConnections: {
    path: 'dataplane.maxConnections',
    text: 'number',
    of: nodes,
    applies: 'restart',
    value: 'count',
    help: 'open connections and UDP flows in all, or auto',
  },
  busyPollUs: {
    path: 'dataplane.busyPoll',
    text: 'text',
    of: nodes,
    applies: 'restart',
    value: 'duration',
    help: 'how long a busy proxy thread looks for more before it sleeps: 1us to 200us, or off',
  },
  ejectionFailures: {
    path: 'dataplane.ejection.failures',
    text: 'number',
    of: nodes,
    applies: 'restart',
    value: 'count',
    help: 'failed dials in a row that eject an endpoint for a while, or off',
  },
  ejectionReturnMs: {
    path: 'dataplane.ejection.returnAfter',
    text: 'text',
    of: nodes,
    applies: 'restart',
    value: 'duration',
    help: 'how long an endpoint is ejected at first',
  },
  handoverGraceMs: {
    path: 'dataplane.handoverGrace',
    text: 'text',
    of: agentOnly,
    applies: 'live',
    value: 'duration',
    help: 'how long connections may go on in an agent that has handed over to the next',
  },
  dataPath: {
    path: 'dataplane.path',
    text: 'text',
    of: agentOnly,
    applies: 'restart',
    value: 'path',
    help: 'who carries services that do not say it: auto, kernel or proxy',
  },
  tableOwner: {
    path: 'dataplane.tableOwner',
    text: 'text',
    of: agentOnly,
    applies: 'restart',
    value: 'on|off',
    help: 'whether nobody else may change the rules, where the kernel can keep them so',
  },
  manageSysctls: {
    path: 'dataplane.manageSysctls',
    text: 'text',
    of: agentOnly,
    applies: 'restart',
    value: 'on|off',
    help: 'whether sysctls that carrying needs are set, or only named',
  },
  markBits: {
    path: 'dataplane.markBits',
    text: 'list',
    of: agentOnly,
    applies: 'restart',
    value: 'bits',
    help: "two bits of a connection's mark, 0 to 31: carried by our rules, to be cut",
  },
  staleAfterMs: {
    path: 'log.staleAfter',
    text: 'text',
    of: agentOnly,
    applies: 'live',
    value: 'duration',
    help: 'how long without the control plane until services with `onStale: refuse` refuse',
  },
  serverL1Listen: {
    path: 'server.listen.l1',
    text: 'text',
    of: serverOnly,
    applies: 'restart',
    value: 'address:port',
    help: 'where nodes register',
  },
  serverL2Listen: {
    path: 'server.listen.l2',
    text: 'text',
    of: serverOnly,
    applies: 'restart',
    value: 'address:port',
    help: 'where nodes hold their streams',
  },
  serverAdminListen: {
    path: 'server.listen.admin',
    text: 'text',
    of: serverOnly,
    applies: 'restart',
    value: 'address:port',
    help: 'where people with a certificate operate this server from elsewhere, or off',
  },
  serverMetricsListen: {
    path: 'server.listen.metrics',
    text: 'text',
    of: serverOnly,
    applies: 'restart',
    value: 'address:port',
    help: 'where the metrics of this server are served, or off',
  },
  serverHosts: {
    path: 'server.hosts',
    text: 'list',
    of: serverOnly,
    applies: 'restart',
    value: 'names',
    help: 'names and addresses under which this server is called, for its certificates',
  },
  serverAccount: {
    path: 'server.account',
    text: 'text',
    of: serverOnly,
    applies: 'restart',
    value: 'account',
    help: 'account of the nodes that are enrolled',
  },
  serverEtcd: {
    path: 'server.etcd',
    text: 'list',
    of: serverOnly,
    applies: 'restart',
    value: 'urls',
    help: "members of the etcd that the servers share; none: this server's own store",
  },
  serverEtcdCluster: {
    path: 'server.etcdCluster',
    text: 'text',
    of: serverOnly,
    applies: 'restart',
    value: 'name',
    help: 'name of this control plane in etcd',
  },
  serverEtcdCa: {
    path: 'server.etcdCa',
    text: 'text',
    of: serverOnly,
    applies: 'restart',
    value: 'file',
    help: "roots of etcd's certificates",
  },
  serverEtcdCert: {
    path: 'server.etcdCert',
    text: 'text',
    of: serverOnly,
    applies: 'restart',
    value: 'file',
    help: 'certificate of this server for etcd',
  },
  serverEtcdKey: {
    path: 'server.etcdKey',
    text: 'text',
    of: serverOnly,
    applies: 'restart',
    value: 'file',
    help: 'private key of that certificate',
  },
  nodeward: {
    path: 'client.server.nodeward',
    text: 'list',
    of: agentOnly,
    applies: 'restart',
    value: 'hosts',
    help: 'servers of the control plane, host or host:port',
  },
  installer: {
    path: 'client.server.installer',
    text: 'text',
    of: agentOnly,
    applies: 'live',
    value: 'url',
    help: 'where scripts by name come from',
  },
  conductor: {
    path: 'client.server.conductor',
    text: 'text',
    of: agentOnly,
    applies: 'live',
    value: 'url',
    help: 'where scripts by path come from',
  },
  packages: {
    path: 'client.server.packages',
    text: 'text',
    of: agentOnly,
    applies: 'live',
    value: 'url',
    help: 'where packages of Kubernetes come from',
  },
  nodeIp: {
    path: 'node.ip',
    text: 'text',
    of: agentOnly,
    applies: 'restart',
    value: 'address',
    help: 'address that this node says it has',
  },
  instructionsAllow: {
    path: 'instructions.allow',
    text: 'list',
    of: agentOnly,
    applies: 'live',
    value: 'types',
    help: 'the only instruction types that are carried out',
  },
  instructionsDeny: {
    path: 'instructions.deny',
    text: 'list',
    of: agentOnly,
    applies: 'live',
    value: 'types',
    help: 'instruction types that are not carried out',
  },
  scriptsAllow: {
    path: 'instructions.scripts.allow',
    text: 'list',
    of: agentOnly,
    applies: 'live',
    value: 'names',
    help: 'the only scripts that are run; a * at the end stands for anything',
  },
  scriptsDeny: {
    path: 'instructions.scripts.deny',
    text: 'list',
    of: agentOnly,
    applies: 'live',
    value: 'names',
    help: 'scripts that are not run; a * at the end stands for anything',
  },
  kubectlAllow: {
    path: 'instructions.kubectl.allow',
    text: 'list',
    of: agentOnly,
    applies: 'live',
    value: 'verbs',
    help: 'the only verbs of kubectl that are run; a * at the end stands for anything',
  },
  kubectlDeny: {
    path: 'instructions.kubectl.deny',
    text: 'list',
    of: agentOnly,
    applies: 'live',
    value: 'verbs',
    help: 'verbs of kubectl that are not run; a * at the end stands for anything',
  },
  auditOnFailure: {
    path: 'audit.onFailure',
    text: 'text',
    of: agentOnly,
    applies: 'restart',
    value: 'mode',
    help: 'what happens when the audit log cannot be written: refuse or continue',
  },
  overlayCidr: {
    path: 'overlay.cidr',
    text: 'text',
    of: serverOnly,
    applies: 'restart',
    value: 'network',
    help: 'IPv4 network of the overlay, whose addresses nodes get; none: no overlay',
  },
  overlayEndpoint: {
    path: 'overlay.endpoint',
    text: 'text',
    of: agentOnly,
    applies: 'restart',
    value: 'address',
    help: 'address under which the peers of the overlay reach this node, or none',
  },
  overlayNetworks: {
    path: 'overlay.networks',
    text: 'list',
    of: agentOnly,
    applies: 'restart',
    value: 'networks',
    help: 'IPv4 networks behind this node that its peers reach through it',
  },
  vipAddress: {
    path: 'vip.address',
    text: 'text',
    of: agentOnly,
    applies: 'restart',
    value: 'address',
    help: 'virtual IP of the control plane, which this node may get',
  },
  vipInterface: {
    path: 'vip.interface',
    text: 'text',
    of: agentOnly,
    applies: 'restart',
    value: 'name',
    help: 'interface for it; the one on whose network it is, unless given',
  },
  vipOnDisconnect: {
    path: 'vip.onDisconnect',
    text: 'text',
    of: agentOnly,
    applies: 'restart',
    value: 'mode',
    help: 'what its holder does without the control plane: drop or keep',
  },
  vipCandidates: {
    path: 'vip.candidates',
    text: 'list',
    of: serverOnly,
    applies: 'restart',
    value: 'nodes',
    help: 'nodes that may have the virtual IP: ids, or control-planes; none: there is no virtual IP',
  },
};

export const settingNames = Object.keys(settings) as readonly Setting[];

/** `dataplane.connectTimeout` is `HOLDFAST_DATAPLANE_CONNECT_TIMEOUT`. */
export function variableOf(setting: Setting): string {
  return `HOLDFAST_${words(setting).join('_').toUpperCase()}`;
}

/** `dataplane.connectTimeout` is `--dataplane-connect-timeout`. */
export function flagOf(setting: Setting): string {
  return `--${words(setting).join('-').toLowerCase()}`;
}

function words(setting: Setting): readonly string[] {
  return settings[setting].path.split(/[.-]|(?=[A-Z])/);
}

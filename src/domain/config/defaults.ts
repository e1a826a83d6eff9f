import { addressPort, ipv4Range } from '../kernel/network.js';
import { aid } from '../link/model.js';
import type { Config, Mode } from './model.js';

export function defaults(mode: Mode): Config {
  return {
    logLevel: 'info',
    labels: {},
    readyTimeoutMs: 30_000,
    outboxCapacity: 4096,
    vipRange: known(ipv4Range(mode === 'dev' ? '127.192.0.0/16' : '10.192.0.0/16')),
    metricsListen: known(addressPort('127.0.0.1:9193')),
    dnsListen: mode === 'dev' ? known(addressPort('127.0.0.1:15353')) : 'off',
    dnsZone: ['holdfast'],
    threads: 'auto',
    connectTimeoutMs: 2_000,
    maxConnections: 'auto',
    busyPollUs: 0,
    ejectionFailures: 5,
    ejectionReturnMs: 10_000,
    handoverGraceMs: 900_000,
    dataPath: 'auto',
    tableOwner: true,
    manageSysctls: true,
    markBits: { carried: 29, cut: 30 },
    staleAfterMs: 30_000,
    serverL1Listen: known(addressPort('0.0.0.0:9191')),
    serverL2Listen: known(addressPort('0.0.0.0:9192')),
    serverAdminListen: 'off',
    // Beside an agent on the same machine, which has 9193.
    serverMetricsListen: known(addressPort('127.0.0.1:9195')),
    serverHosts: [],
    serverAccount: aid('default'),
    serverEtcd: [],
    serverEtcdCluster: 'default',
    nodeward: [],
    installer: 'https://get.runos.com',
    packages: 'https://pkgs.k8s.io',
    instructionsDeny: ['REINSTALL_NODE'],
    scriptsDeny: [],
    kubectlDeny: [],
    auditOnFailure: 'refuse',
    overlayNetworks: [],
    vipOnDisconnect: 'drop',
    vipCandidates: [],
  };
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new RangeError('a constant of the configuration is invalid');
  return value;
}

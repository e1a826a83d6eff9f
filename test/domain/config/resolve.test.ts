import { describe, expect, test } from 'vitest';
import { defaults } from '../../../src/domain/config/defaults.js';
import { type Config, flagOf, type Mode, settingNames, variableOf } from '../../../src/domain/config/model.js';
import { type ConfigInputs, resolveConfig } from '../../../src/domain/config/plan.js';
import { type ConfigFile, configError, describeProblem } from '../../../src/domain/config/problem.js';

/** A file in which every key stands on the line of its depth-first number. */
function file(value: unknown): ConfigFile {
  return { file: 'holdfast.yaml', value, problems: [], lineOf: (path) => path.length * 10 };
}

function resolve(inputs: Partial<ConfigInputs>) {
  return resolveConfig({ mode: 'production', environment: {}, flags: {}, ...inputs });
}

function configOf(inputs: Partial<ConfigInputs>): Config {
  const result = resolve(inputs);
  if (!result.valid) throw configError(result.problems);
  return result.config;
}

function problemsOf(inputs: Partial<ConfigInputs>): readonly string[] {
  const result = resolve(inputs);
  return result.valid ? [] : result.problems.map(describeProblem);
}

describe('defaults', () => {
  const production = {
    logLevel: 'info',
    labels: {},
    readyTimeoutMs: 30_000,
    outboxCapacity: 4096,
    vipRange: { network: '10.192.0.0', prefixLength: 16 },
    metricsListen: { address: '127.0.0.1', port: 9193 },
    dnsListen: 'off',
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
    serverL1Listen: { address: '0.0.0.0', port: 9191 },
    serverL2Listen: { address: '0.0.0.0', port: 9192 },
    serverAdminListen: 'off',
    serverMetricsListen: { address: '127.0.0.1', port: 9195 },
    serverHosts: [],
    serverAccount: 'default',
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

  test.each<{ name: string; mode: Mode; file?: ConfigFile; config: unknown }>([
    { name: 'production without a file', mode: 'production', config: production },
    { name: 'an empty file', mode: 'production', file: file(null), config: production },
    { name: 'empty groups written out', mode: 'production', file: file({ vip: {}, metrics: {} }), config: production },
    {
      name: 'dev',
      mode: 'dev',
      config: {
        ...production,
        vipRange: { network: '127.192.0.0', prefixLength: 16 },
        dnsListen: { address: '127.0.0.1', port: 15353 },
      },
    },
  ])('$name', ({ mode, file, config }) => {
    expect(configOf({ mode, file })).toEqual(config);
    expect(defaults(mode)).toEqual(config);
  });
});

test('every setting, from a file', () => {
  const etcd = {
    etcd: 'https://etcd.example:2379',
    etcdCluster: 'blue',
    etcdCa: '/e/ca.crt',
    etcdCert: '/e/etcd.crt',
    etcdKey: '/e/etcd.key',
  };
  const value = {
    nodeName: 'node-a',
    logLevel: 'trace',
    labels: { 'topology.kubernetes.io/zone': 'a', empty: '' },
    readyTimeout: '5m',
    outbox: { capacity: 1 },
    vip: {
      range: '100.64.0.0/10',
      address: 'fd09:0::64',
      interface: 'bond0.7',
      onDisconnect: 'keep',
      candidates: 'control-planes',
    },
    metrics: { listen: '[::1]:9193' },
    dns: { listen: '10.0.0.1:53', zone: 'cluster.local' },
    dataplane: {
      threads: 8,
      connectTimeout: '500ms',
      maxConnections: 10_000_000,
      busyPoll: '200us',
      ejection: { failures: 100, returnAfter: '1m' },
      handoverGrace: '1m',
      path: 'kernel',
      tableOwner: 'off',
      manageSysctls: false,
      markBits: [0, 31],
    },
    log: { staleAfter: '1m' },
    server: {
      listen: { l1: '127.0.0.1:1', l2: '127.0.0.1:2', admin: '127.0.0.1:3', metrics: '[::]:4' },
      hosts: ['a.example'],
      account: 'acme',
      ...etcd,
    },
    client: {
      server: {
        nodeward: 'a.example',
        installer: 'https://get.example',
        conductor: 'https://api.example',
        packages: 'https://p.example',
      },
    },
    node: { ip: 'fd00:0::9' },
    instructions: {
      allow: [],
      deny: ['UNINSTALL_NODE'],
      scripts: { allow: ['a*'], deny: ['*'] },
      kubectl: { allow: ['get', 'rollout *'], deny: '*' },
    },
    audit: { onFailure: 'continue' },
    overlay: { cidr: '10.78.0.0/16', endpoint: '192.0.2.1', networks: '10.1.0.0/24' },
  };
  expect(configOf({ file: file(value) })).toEqual({
    nodeName: 'node-a',
    logLevel: 'trace',
    labels: { 'topology.kubernetes.io/zone': 'a', empty: '' },
    readyTimeoutMs: 300_000,
    outboxCapacity: 1,
    vipRange: { network: '100.64.0.0', prefixLength: 10 },
    metricsListen: { address: '::1', port: 9193 },
    dnsListen: { address: '10.0.0.1', port: 53 },
    dnsZone: ['cluster', 'local'],
    threads: 8,
    connectTimeoutMs: 500,
    maxConnections: 10_000_000,
    busyPollUs: 200,
    ejectionFailures: 100,
    ejectionReturnMs: 60_000,
    handoverGraceMs: 60_000,
    dataPath: 'kernel',
    tableOwner: false,
    manageSysctls: false,
    markBits: { carried: 0, cut: 31 },
    staleAfterMs: 60_000,
    serverL1Listen: { address: '127.0.0.1', port: 1 },
    serverL2Listen: { address: '127.0.0.1', port: 2 },
    serverAdminListen: { address: '127.0.0.1', port: 3 },
    serverMetricsListen: { address: '::', port: 4 },
    serverHosts: ['a.example'],
    serverAccount: 'acme',
    serverEtcd: ['https://etcd.example:2379'],
    serverEtcdCluster: 'blue',
    serverEtcdCa: '/e/ca.crt',
    serverEtcdCert: '/e/etcd.crt',
    serverEtcdKey: '/e/etcd.key',
    nodeward: [{ host: 'a.example', port: 9192 }],
    installer: 'https://get.example',
    conductor: 'https://api.example',
    packages: 'https://p.example',
    nodeIp: 'fd00::9',
    instructionsAllow: [],
    instructionsDeny: ['UNINSTALL_NODE'],
    scriptsAllow: ['a*'],
    scriptsDeny: ['*'],
    kubectlAllow: ['get', 'rollout *'],
    kubectlDeny: ['*'],
    auditOnFailure: 'continue',
    overlayCidr: { network: '10.78.0.0', prefixLength: 16 },
    overlayEndpoint: '192.0.2.1',
    overlayNetworks: [{ network: '10.1.0.0', prefixLength: 24 }],
    vipAddress: 'fd09::64',
    vipInterface: 'bond0.7',
    vipOnDisconnect: 'keep',
    vipCandidates: ['control-planes'],
  });
});

test('every setting, from variables and from flags', () => {
  const texts = {
    nodeName: 'node-a',
    logLevel: 'error',
    labels: 'zone=a,rack=',
    readyTimeoutMs: '1s',
    outboxCapacity: '16',
    vipRange: '192.168.0.0/24',
    metricsListen: 'off',
    dnsListen: '127.0.0.123:53',
    dnsZone: 'svc.example.',
    threads: 'auto',
    connectTimeoutMs: '1m',
    maxConnections: '1',
    busyPollUs: '1us',
    ejectionFailures: 'off',
    ejectionReturnMs: '1s',
    handoverGraceMs: '1s',
    dataPath: 'proxy',
    tableOwner: 'on',
    manageSysctls: 'off',
    markBits: '7,6',
    staleAfterMs: '1m',
    serverL1Listen: '127.0.0.1:1',
    serverL2Listen: '[::1]:2',
    serverAdminListen: '0.0.0.0',
    serverMetricsListen: 'off',
    serverHosts: 'a.example,10.0.0.1',
    serverAccount: 'acme',
    serverEtcd: 'http://10.0.0.1:2379,http://[fd00::1]:2379',
    serverEtcdCluster: 'green',
    serverEtcdCa: '/e/ca.crt',
    serverEtcdCert: '/e/etcd.crt',
    serverEtcdKey: '/e/../etcd.key',
    nodeward: 'a.example,b.example:1,[fd00::1]:2,10.0.0.1',
    installer: 'https://get.example',
    conductor: 'http://api.example/base',
    packages: 'http://mirror.example:8080/k8s',
    nodeIp: '10.0.0.9',
    instructionsAllow: 'GET_NODE_STATUS',
    instructionsDeny: 'UNINSTALL_NODE,REINSTALL_NODE',
    scriptsAllow: 'setup/*',
    scriptsDeny: 'setup/bad.sh,/t/x',
    kubectlAllow: 'get,rollout *',
    kubectlDeny: 'exec',
    auditOnFailure: 'continue',
    overlayCidr: '10.78.0.0/16',
    overlayEndpoint: 'none',
    overlayNetworks: '10.1.0.0/24',
    vipAddress: '10.9.0.100',
    vipInterface: 'eth0',
    vipOnDisconnect: 'keep',
    vipCandidates: 'n1,control-planes',
  };
  const config = {
    nodeName: 'node-a',
    logLevel: 'error',
    labels: { zone: 'a', rack: '' },
    readyTimeoutMs: 1_000,
    outboxCapacity: 16,
    vipRange: { network: '192.168.0.0', prefixLength: 24 },
    metricsListen: 'off',
    dnsListen: { address: '127.0.0.123', port: 53 },
    dnsZone: ['svc', 'example'],
    threads: 'auto',
    connectTimeoutMs: 60_000,
    maxConnections: 1,
    busyPollUs: 1,
    ejectionFailures: 0,
    ejectionReturnMs: 1_000,
    handoverGraceMs: 1_000,
    dataPath: 'proxy',
    tableOwner: true,
    manageSysctls: false,
    markBits: { carried: 7, cut: 6 },
    staleAfterMs: 60_000,
    serverL1Listen: { address: '127.0.0.1', port: 1 },
    serverL2Listen: { address: '::1', port: 2 },
    serverAdminListen: { address: '0.0.0.0', port: 9194 },
    serverMetricsListen: 'off',
    serverHosts: ['a.example', '10.0.0.1'],
    serverAccount: 'acme',
    serverEtcd: ['http://10.0.0.1:2379', 'http://[fd00::1]:2379'],
    serverEtcdCluster: 'green',
    serverEtcdCa: '/e/ca.crt',
    serverEtcdCert: '/e/etcd.crt',
    serverEtcdKey: '/etcd.key',
    nodeward: [
      { host: 'a.example', port: 9192 },
      { host: 'b.example', port: 1 },
      { host: 'fd00::1', port: 2 },
      { host: '10.0.0.1', port: 9192 },
    ],
    installer: 'https://get.example',
    conductor: 'http://api.example/base',
    packages: 'http://mirror.example:8080/k8s',
    nodeIp: '10.0.0.9',
    instructionsAllow: ['GET_NODE_STATUS'],
    instructionsDeny: ['UNINSTALL_NODE', 'REINSTALL_NODE'],
    scriptsAllow: ['setup/*'],
    scriptsDeny: ['setup/bad.sh', '/t/x'],
    kubectlAllow: ['get', 'rollout *'],
    kubectlDeny: ['exec'],
    auditOnFailure: 'continue',
    overlayCidr: { network: '10.78.0.0', prefixLength: 16 },
    overlayEndpoint: 'none',
    overlayNetworks: [{ network: '10.1.0.0', prefixLength: 24 }],
    vipAddress: '10.9.0.100',
    vipInterface: 'eth0',
    vipOnDisconnect: 'keep',
    vipCandidates: ['n1', 'control-planes'],
  };
  const environment = Object.fromEntries(settingNames.map((setting) => [variableOf(setting), texts[setting]]));
  expect(configOf({ flags: texts })).toEqual(config);
  expect(configOf({ environment })).toEqual(config);
});

test('names of variables and flags follow from the path in the file', () => {
  expect(settingNames.map((setting) => `${variableOf(setting)} ${flagOf(setting)}`)).toEqual([
    'HOLDFAST_NODE_NAME --node-name',
    'HOLDFAST_LOG_LEVEL --log-level',
    'HOLDFAST_LABELS --labels',
    'HOLDFAST_READY_TIMEOUT --ready-timeout',
    'HOLDFAST_OUTBOX_CAPACITY --outbox-capacity',
    'HOLDFAST_VIP_RANGE --vip-range',
    'HOLDFAST_METRICS_LISTEN --metrics-listen',
    'HOLDFAST_DNS_LISTEN --dns-listen',
    'HOLDFAST_DNS_ZONE --dns-zone',
    'HOLDFAST_DATAPLANE_THREADS --dataplane-threads',
    'HOLDFAST_DATAPLANE_CONNECT_TIMEOUT --dataplane-connect-timeout',
    'HOLDFAST_DATAPLANE_MAX_CONNECTIONS --dataplane-max-connections',
    'HOLDFAST_DATAPLANE_BUSY_POLL --dataplane-busy-poll',
    'HOLDFAST_DATAPLANE_EJECTION_FAILURES --dataplane-ejection-failures',
    'HOLDFAST_DATAPLANE_EJECTION_RETURN_AFTER --dataplane-ejection-return-after',
    'HOLDFAST_DATAPLANE_HANDOVER_GRACE --dataplane-handover-grace',
    'HOLDFAST_DATAPLANE_PATH --dataplane-path',
    'HOLDFAST_DATAPLANE_TABLE_OWNER --dataplane-table-owner',
    'HOLDFAST_DATAPLANE_MANAGE_SYSCTLS --dataplane-manage-sysctls',
    'HOLDFAST_DATAPLANE_MARK_BITS --dataplane-mark-bits',
    'HOLDFAST_LOG_STALE_AFTER --log-stale-after',
    'HOLDFAST_SERVER_LISTEN_L1 --server-listen-l1',
    'HOLDFAST_SERVER_LISTEN_L2 --server-listen-l2',
    'HOLDFAST_SERVER_LISTEN_ADMIN --server-listen-admin',
    'HOLDFAST_SERVER_LISTEN_METRICS --server-listen-metrics',
    'HOLDFAST_SERVER_HOSTS --server-hosts',
    'HOLDFAST_SERVER_ACCOUNT --server-account',
    'HOLDFAST_SERVER_ETCD --server-etcd',
    'HOLDFAST_SERVER_ETCD_CLUSTER --server-etcd-cluster',
    'HOLDFAST_SERVER_ETCD_CA --server-etcd-ca',
    'HOLDFAST_SERVER_ETCD_CERT --server-etcd-cert',
    'HOLDFAST_SERVER_ETCD_KEY --server-etcd-key',
    'HOLDFAST_CLIENT_SERVER_NODEWARD --client-server-nodeward',
    'HOLDFAST_CLIENT_SERVER_INSTALLER --client-server-installer',
    'HOLDFAST_CLIENT_SERVER_CONDUCTOR --client-server-conductor',
    'HOLDFAST_CLIENT_SERVER_PACKAGES --client-server-packages',
    'HOLDFAST_NODE_IP --node-ip',
    'HOLDFAST_INSTRUCTIONS_ALLOW --instructions-allow',
    'HOLDFAST_INSTRUCTIONS_DENY --instructions-deny',
    'HOLDFAST_INSTRUCTIONS_SCRIPTS_ALLOW --instructions-scripts-allow',
    'HOLDFAST_INSTRUCTIONS_SCRIPTS_DENY --instructions-scripts-deny',
    'HOLDFAST_INSTRUCTIONS_KUBECTL_ALLOW --instructions-kubectl-allow',
    'HOLDFAST_INSTRUCTIONS_KUBECTL_DENY --instructions-kubectl-deny',
    'HOLDFAST_AUDIT_ON_FAILURE --audit-on-failure',
    'HOLDFAST_OVERLAY_CIDR --overlay-cidr',
    'HOLDFAST_OVERLAY_ENDPOINT --overlay-endpoint',
    'HOLDFAST_OVERLAY_NETWORKS --overlay-networks',
    'HOLDFAST_VIP_ADDRESS --vip-address',
    'HOLDFAST_VIP_INTERFACE --vip-interface',
    'HOLDFAST_VIP_ON_DISCONNECT --vip-on-disconnect',
    'HOLDFAST_VIP_CANDIDATES --vip-candidates',
  ]);
});

test.each([
  ['client.server.nodeward', 'a.example:0'],
  ['client.server.nodeward', 'a_b.example'],
  ['client.server.nodeward', '10.0.0'],
  ['client.server.nodeward', ['a.example', 7]],
  ['client.server.nodeward', { a: 1 }],
  ['client.server.installer', 'ftp://get.example'],
  ['client.server.installer', 'https://user@get.example'],
  ['client.server.installer', 'https://get.example/'],
  ['server.listen.admin', 'control.example:9194'],
  ['server.listen.admin', '0.0.0.0:0'],
  ['vip.address', '10.9.0'],
  ['vip.address', '127.0.0.1'],
  ['vip.address', '0.0.0.0'],
  ['vip.address', '224.0.0.18'],
  ['vip.address', 'ff02::12'],
  ['vip.address', '::'],
  ['vip.interface', '-eth0'],
  ['vip.interface', 'a/b'],
  ['vip.interface', 'sixteen-letters-x'],
  ['vip.onDisconnect', 'hold'],
  ['vip.candidates', ['n 1']],
  ['server.listen.admin', 'on'],
  ['server.listen.admin', 9194],
  ['server.hosts', 'a..example'],
  ['server.account', '-a'],
  ['server.etcd', 'etcd.example:2379'],
  ['server.etcd', ['https://etcd.example:2379/v3']],
  ['server.etcd', 'https://a@etcd.example:2379'],
  ['server.etcd', 'https://etcd.example:0'],
  ['server.etcdCluster', 'a/b'],
  ['server.etcdCa', 'ca.crt'],
  ['server.listen.l1', '9191'],
  ['node.ip', '10.0.0.256'],
  ['instructions.deny', ['NOTHING']],
  ['instructions.scripts.deny', ['a b']],
  ['audit.onFailure', 'ignore'],
])('%s: %j is refused at its place', (path, value) => {
  const nested = path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
  const result = resolveConfig({ mode: 'production', file: file(nested), environment: {}, flags: {} });
  expect(result.valid ? [] : result.problems.map(({ path: at, problem }) => [at, problem.startsWith('expected ')])).toEqual([
    [path, true],
  ]);
});

describe('settings of the data plane', () => {
  test.each<{ dataplane: object; problem: string }>([
    { dataplane: { maxConnections: 0 }, problem: 'maxConnections: expected a whole number from 1 to 10000000, or auto, found 0' },
    { dataplane: { busyPoll: '201us' }, problem: 'busyPoll: expected 1us to 200us, or off, found "201us"' },
    { dataplane: { busyPoll: '0us' }, problem: 'busyPoll: expected 1us to 200us, or off, found "0us"' },
    { dataplane: { busyPoll: 50 }, problem: 'busyPoll: expected 1us to 200us, or off, found 50' },
    {
      dataplane: { ejection: { failures: 0 } },
      problem: 'ejection.failures: expected a whole number from 1 to 100, or off, found 0',
    },
    {
      dataplane: { ejection: { returnAfter: '0s' } },
      problem: 'ejection.returnAfter: expected a duration of 1ms to 576h, such as 500ms, 30s, 5m or 2h, found "0s"',
    },
    { dataplane: { path: 'user' }, problem: 'path: expected one of auto, kernel, proxy, found "user"' },
    { dataplane: { tableOwner: 1 }, problem: 'tableOwner: expected on or off, found 1' },
    { dataplane: { markBits: [29, 29] }, problem: 'markBits: expected two different numbers from 0 to 31, found a list' },
    { dataplane: { markBits: [1, 32] }, problem: 'markBits: expected two different numbers from 0 to 31, found a list' },
    { dataplane: { markBits: [1] }, problem: 'markBits: expected two different numbers from 0 to 31, found a list' },
    { dataplane: { ejection: 5 }, problem: 'ejection: expected keys and values: failures, returnAfter, found 5' },
    { dataplane: { ejection: { failure: 5 } }, problem: 'ejection.failure: unknown key, did you mean failures?' },
  ])('$problem', ({ dataplane, problem }) => {
    const depth = problem.startsWith('ejection.') ? 30 : 20;
    expect(problemsOf({ file: file({ dataplane }) })).toEqual([`holdfast.yaml:${depth}: dataplane.${problem}`]);
  });

  test('variables and flags of keys that are three deep do not hide each other', () => {
    const environment = { HOLDFAST_DATAPLANE_EJECTION_FAILURES: '7', HOLDFAST_DATAPLANE_EJECTION_RETURN_AFTER: '3s' };
    expect(configOf({ environment, flags: { busyPollUs: 'off' } })).toMatchObject({
      ejectionFailures: 7,
      ejectionReturnMs: 3_000,
      busyPollUs: 0,
    });
    expect(problemsOf({ flags: { ejectionReturnMs: 'soon' } })).toEqual([
      '--dataplane-ejection-return-after: dataplane.ejection.returnAfter: expected a duration of 1ms to 576h, such as 500ms, 30s, 5m or 2h, found "soon"',
    ]);
  });
});

describe('precedence', () => {
  const inputs = {
    file: file({ logLevel: 'debug', readyTimeout: '1s', labels: { from: 'file', only: 'file' } }),
    environment: { HOLDFAST_LOG_LEVEL: 'warn', HOLDFAST_LABELS: 'from=environment', HOLDFAST_METRICS_LISTEN: '' },
    flags: { logLevel: 'error' },
  };

  test.each<{ name: string; setting: keyof Config; value: unknown }>([
    { name: 'a flag is over a variable and a file', setting: 'logLevel', value: 'error' },
    { name: 'a file is over a default', setting: 'readyTimeoutMs', value: 1_000 },
    { name: 'labels are taken whole', setting: 'labels', value: { from: 'environment' } },
    { name: 'an empty variable is unset', setting: 'metricsListen', value: { address: '127.0.0.1', port: 9193 } },
    { name: 'a default', setting: 'outboxCapacity', value: 4096 },
  ])('$name', ({ setting, value }) => {
    expect(configOf(inputs)[setting]).toEqual(value);
  });
});

describe('problems', () => {
  test.each<{ name: string; mode?: Mode; value: unknown; problems: readonly string[] }>([
    {
      name: 'an unknown key is named with the one that was meant',
      value: { logLevl: 'info', dataplane: { thread: 2 }, node_name: 'a' },
      problems: [
        'holdfast.yaml:20: dataplane.thread: unknown key, did you mean threads?',
        'holdfast.yaml:10: logLevl: unknown key, did you mean logLevel?',
        'holdfast.yaml:10: node_name: unknown key, did you mean nodeName?',
      ],
    },
    {
      name: 'a key in the wrong place',
      value: { connectTimeout: '2s' },
      problems: ['holdfast.yaml:10: connectTimeout: unknown key, did you mean dataplane.connectTimeout?'],
    },
    {
      name: 'a key that resembles none',
      value: { vip: { whatever: 1 } },
      problems: [
        'holdfast.yaml:20: vip.whatever: unknown key, expected one of range, address, interface, onDisconnect, candidates',
      ],
    },
    {
      name: 'the whole file is a list',
      value: [],
      problems: [
        'holdfast.yaml:0: expected keys and values: nodeName, logLevel, labels, readyTimeout, outbox, vip, metrics, dns, dataplane, log, server, client, node, instructions, audit, overlay, found a list',
      ],
    },
    {
      name: 'groups that are none',
      value: { vip: null, metrics: 'off' },
      problems: [
        'holdfast.yaml:10: vip: expected keys and values: range, address, interface, onDisconnect, candidates, found nothing',
        'holdfast.yaml:10: metrics: expected keys and values: listen, found "off"',
      ],
    },
    {
      name: 'numbers where text is expected and the other way round',
      value: { nodeName: 7, readyTimeout: 30, outbox: { capacity: '4096' } },
      problems: [
        'holdfast.yaml:10: nodeName: expected a DNS-1123 label: 1 to 63 characters of a-z, 0-9 and -, not at either end, found 7',
        'holdfast.yaml:10: readyTimeout: expected a duration of 1ms to 576h, such as 500ms, 30s, 5m or 2h, found 30',
        'holdfast.yaml:20: outbox.capacity: expected a whole number from 1 to 1048576, found "4096"',
      ],
    },
    {
      name: 'labels one by one',
      value: { labels: { zone: 1, '-bad': 'x', ok: 'a', long: 'x'.repeat(64) } },
      problems: [
        'holdfast.yaml:20: labels.zone: expected text of at most 63 letters, digits, -, _ and . (in quotes), found 1',
        'holdfast.yaml:20: labels.-bad: expected a label key, [prefix/]name, found "x"',
        `holdfast.yaml:20: labels.long: expected text of at most 63 letters, digits, -, _ and . (in quotes), found "${'x'.repeat(64)}"`,
      ],
    },
    {
      name: 'a long value is cut',
      value: { logLevel: 'x'.repeat(1000) },
      problems: [`holdfast.yaml:10: logLevel: expected one of trace, debug, info, warn, error, fatal, found "${'x'.repeat(78)}…`],
    },
    {
      name: 'a prototype key is one like any other',
      value: JSON.parse('{"__proto__": {"logLevel": "x"}}'),
      problems: [
        'holdfast.yaml:10: __proto__: unknown key, expected one of nodeName, logLevel, labels, readyTimeout, outbox, vip, metrics, dns, dataplane, log, server, client, node, instructions, audit, overlay',
      ],
    },
  ])('$name', ({ mode = 'production', value, problems }) => {
    expect(problemsOf({ mode, file: file(value) })).toEqual(problems);
  });

  test('those of the file, the variables and the flags in one pass', () => {
    const inputs = {
      file: {
        ...file(undefined),
        problems: [{ origin: { from: 'file', file: 'x.yaml', line: 3 }, path: '', problem: 'bad' }] as const,
      },
      environment: { HOLDFAST_DATAPLANE_THREADS: '9', HOLDFAST_LABELS: 'a=b,c', HOLDFAST_LOG_LEVEL: 'loud' },
      flags: { connectTimeoutMs: '0s' },
    };
    expect(problemsOf(inputs)).toEqual([
      'x.yaml:3: bad',
      'HOLDFAST_LOG_LEVEL: logLevel: expected one of trace, debug, info, warn, error, fatal, found "loud"',
      'HOLDFAST_LABELS: labels: expected labels, key: value each (as text: a=b,c=d), found "a=b,c"',
      'HOLDFAST_DATAPLANE_THREADS: dataplane.threads: expected a whole number from 1 to 8, or auto, found 9',
      '--dataplane-connect-timeout: dataplane.connectTimeout: expected a duration of 1ms to 576h, such as 500ms, 30s, 5m or 2h, found "0s"',
    ]);
  });

  test('a label in a variable is named with the variable', () => {
    expect(problemsOf({ environment: { HOLDFAST_LABELS: 'a=?' } })).toEqual([
      'HOLDFAST_LABELS: labels.a: expected text of at most 63 letters, digits, -, _ and . (in quotes), found "?"',
    ]);
  });

  test('one error holds them all', () => {
    const origin = { from: 'flag', flag: '--x' } as const;
    expect(configError([{ origin, path: 'x', problem: 'bad' }]).message).toBe('config.invalid: --x: x: bad');
    expect(
      configError([
        { origin, path: 'x', problem: 'bad' },
        { origin, path: 'y', problem: 'worse' },
      ]).message,
    ).toBe('config.invalid: 2 problems\n  --x: x: bad\n  --x: y: worse');
  });
});

describe('accepted values', () => {
  const accepts = (mode: Mode, setting: keyof Config, text: string) =>
    problemsOf({ mode, flags: { [setting]: text } }).length === 0;

  test.each<{ setting: keyof Config; mode: Mode; good: readonly string[]; bad: readonly string[] }>([
    {
      setting: 'vipRange',
      mode: 'production',
      good: ['10.0.0.0/8', '10.192.0.0/28', '172.16.0.0/12', '192.168.255.240/28', '100.64.0.0/10', '100.127.0.0/16'],
      bad: [
        '10.192.0.0/29',
        '10.192.0.1/16',
        '10.192.0.0',
        '10.192.0.0/016',
        '172.16.0.0/11',
        '172.32.0.0/16',
        '192.169.0.0/16',
        '100.128.0.0/16',
        '0.0.0.0/0',
        '8.0.0.0/8',
        '127.192.0.0/16',
        'fd00::/112',
        '10.192.0.0/16 ',
      ],
    },
    {
      setting: 'vipRange',
      mode: 'dev',
      good: ['127.0.0.0/8', '127.192.0.0/16', '127.255.255.240/28'],
      bad: ['10.192.0.0/16', '126.0.0.0/8', '0.0.0.0/0', '127.192.0.0/29'],
    },
    {
      setting: 'metricsListen',
      mode: 'production',
      good: ['off', '0.0.0.0:9193', '[::]:9193', '10.0.0.1:1', '127.0.0.1:65535'],
      bad: [
        'on',
        '9193',
        ':9193',
        'localhost:9193',
        '127.0.0.1',
        '127.0.0.1:0',
        '127.0.0.1:65536',
        '::1:9193',
        '[127.0.0.1]:9193',
        '127.0.0.1:09193',
      ],
    },
    {
      setting: 'metricsListen',
      mode: 'dev',
      good: ['off', '127.0.0.1:1', '127.3.2.1:1', '[::1]:1'],
      bad: ['0.0.0.0:1', '[::]:1', '10.0.0.1:1'],
    },
    { setting: 'threads', mode: 'production', good: ['1', '8', 'auto'], bad: ['0', '9', '1.5', '-1', 'many'] },
    { setting: 'outboxCapacity', mode: 'production', good: ['1', '1048576'], bad: ['0', '1048577', 'x', '1e3'] },
    { setting: 'connectTimeoutMs', mode: 'production', good: ['1ms', '576h'], bad: ['0ms', '577h', '2', '2 s', '-2s'] },
    {
      setting: 'nodeName',
      mode: 'production',
      good: ['a', 'node-1', '1', 'x'.repeat(63)],
      bad: ['A', '-a', 'a-', 'a.b', 'a_b', 'x'.repeat(64)],
    },
  ])('$setting in $mode', ({ setting, mode, good, bad }) => {
    expect(good.filter((text) => !accepts(mode, setting, text))).toEqual([]);
    expect(bad.filter((text) => accepts(mode, setting, text))).toEqual([]);
  });
});

test('unknown variables of ours are warned of, others and those read elsewhere are not', () => {
  const environment = {
    HOLDFAST_LOGLEVEL: 'debug',
    HOLDFAST_COLOUR_OF_THE_SKY: 'blue',
    HOLDFAST_CONFIG: '/x',
    HOLDFAST_DATA_DIR: '/x',
    HOLDFAST_ADMIN: 'x',
    HOLDFAST_ADMIN_CERT: 'x',
    HOLDFAST_ADDON: 'x',
    HOLDFAST_RUNNER: 'x',
    HOLDFAST_TASK: 'x',
    LOG_LEVEL: 'debug',
  };
  expect(resolve({ environment }).warnings).toEqual([
    'unknown environment variable HOLDFAST_COLOUR_OF_THE_SKY is not used',
    'unknown environment variable HOLDFAST_LOGLEVEL is not used, did you mean HOLDFAST_LOG_LEVEL?',
  ]);
});

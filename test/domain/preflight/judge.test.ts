import { describe, expect, test } from 'vitest';
import { hostPort, ipv4Range, type PortNumber } from '../../../src/domain/kernel/network.js';
import { isFit, judgeMachine, preflightChecks, refuseSkip } from '../../../src/domain/preflight/judge.js';
import type { Answer, PreflightFacts, RepositoryState, Wanted } from '../../../src/domain/preflight/model.js';
import { readIptables } from '../../../src/domain/preflight/read-iptables.js';

const GIB = 1024 ** 3;
const NOW = 1_800_000_000_000;
const pods = ipv4Range('10.244.0.0/16');
const worker: Wanted = {
  role: 'worker',
  server: hostPort('control.test', 9191 as PortNumber),
  ca: { path: '/ca.crt' },
  ranges: pods === undefined ? [] : [pods],
  targets: ['https://registry.test/'],
  knownAnswer: 'http://known.test/204',
  udpEcho: hostPort('echo.test', 7 as PortNumber),
  asksRepositories: true,
};
const controlPlane: Wanted = { ...worker, role: 'control-plane' };

const target: Answer = { url: 'https://registry.test/', status: 404, begin: 'no', offsetMs: 400 };
const known: Answer = { url: 'http://known.test/204', status: 204, begin: '' };
const debian: RepositoryState = {
  file: '/etc/apt/sources.list',
  uri: 'http://deb.test/debian',
  suite: 'bookworm',
  isTrusted: false,
  answer: { status: 200, isSigned: true },
};
const input = (rule: string) => [readIptables(`-P INPUT ACCEPT\n-N ufw-user-input\n-A INPUT -j ufw-user-input\n${rule}\n`)];

const sound: PreflightFacts = {
  now: NOW,
  userId: 0,
  capabilities: 0x1ff_ffff_ffffn,
  init: 'systemd',
  programs: ['conntrack', 'ip', 'iptables', 'modprobe', 'mount', 'nft', 'nsenter', 'systemctl'],
  osRelease: 'ID=debian\nVERSION_ID="12"\n',
  architecture: 'x64',
  cpus: 2,
  memoryBytes: 2 * GIB,
  filesystems: [{ path: '/', freeBytes: 40 * GIB, inodes: 100, freeInodes: 50 }],
  swaps: [],
  listeners: [{ protocol: 'tcp', port: 22 }],
  modules: { overlay: true, br_netfilter: true, nf_conntrack: true, nf_tables: true },
  cgroup: ['cpuset', 'cpu', 'io', 'memory', 'pids'],
  sysctls: { 'net.ipv4.ip_forward': '1', 'net.bridge.bridge-nf-call-iptables': '1' },
  clusters: [],
  hostname: 'node-1',
  machineId: 'a'.repeat(32),
  nameservers: ['192.0.2.1'],
  ca: { sha256: 'f'.repeat(64), notAfter: NOW + 1 },
  networks: [{ device: 'eth0', address: '192.0.2.7', prefixLength: 24 }],
  isClockSynchronized: true,
  packageLock: '',
  proxy: {},
  openFiles: 1_048_576,
  fsyncMs: 1,
  lookup: { addresses: 1, ms: 3 },
  way: { reach: { stage: 'through' }, isDistrusted: false },
  answers: [target],
  knownAnswer: known,
  serverClock: { url: 'https://control.test:9191', status: 415, begin: '', offsetMs: -900 },
  repositories: [debian],
  udpEcho: 'answered',
  firewall: [],
};

/** `check state finding` of all that are not well. */
function told(facts: Partial<PreflightFacts>, wanted: Wanted = controlPlane): readonly string[] {
  return judgeMachine({ ...sound, ...facts }, wanted, new Set()).flatMap(({ check, state, finding }) =>
    state === 'ok' ? [] : [`${check} ${state}: ${finding}`],
  );
}

test('nothing is said against a sound machine', () => {
  expect(told({})).toEqual([]);
});

test('what is unknown never blocks, and is said', () => {
  const results = judgeMachine({ now: NOW, proxy: {} }, controlPlane, new Set());
  expect(results.map(({ check }) => check)).toEqual(preflightChecks.map(({ name }) => name));
  expect(results.filter(({ state }) => state !== 'unknown').map(({ check }) => check)).toEqual(['proxy']);
  expect(isFit(results)).toBe(true);
});

describe('one fault fails one check, with cause and remedy', () => {
  const silent = 'no answer within 5 s';
  test.each<[string, Partial<PreflightFacts>, string]>([
    ['a user', { userId: 1000 }, 'root problem: it runs as uid 1000'],
    ['a container', { capabilities: ~(1n << 12n) & 0x1ff_ffff_ffffn }, 'capabilities problem: missing: CAP_NET_ADMIN'],
    ['swap', { swaps: ['/dev/sda2'] }, 'swap problem: swap is on: /dev/sda2'],
    ['an API server', { listeners: [{ protocol: 'tcp', port: 6443 }] }, 'ports problem: in use: 6443'],
    ['no module', { modules: { ...sound.modules, overlay: false } }, 'modules problem: not there: overlay'],
    ['an unclear module', { modules: { ...sound.modules, overlay: undefined } }, 'modules unknown: it cannot be told of overlay'],
    ['cgroup v1', { cgroup: 'v1' }, 'cgroup problem: the machine has cgroup v1'],
    ['no memory controller', { cgroup: ['cpu', 'cpuset', 'pids'] }, 'cgroup problem: cgroup v2 lacks memory'],
    [
      'no forwarding',
      { sysctls: { ...sound.sysctls, 'net.ipv4.ip_forward': '0' } },
      'sysctls problem: not so: net.ipv4.ip_forward=1',
    ],
    ['a cluster', { clusters: ['/etc/rancher/k3s'] }, 'clusters problem: a cluster has left /etc/rancher/k3s'],
    ['localhost', { hostname: 'localhost' }, 'hostname problem: "localhost" cannot name a node'],
    ['a capital', { hostname: 'Node' }, 'hostname problem: "Node" cannot name a node'],
    ['no machine id', { machineId: '' }, 'machine-id problem: the machine has no id'],
    [
      'a copied disk',
      { dbusMachineId: 'b'.repeat(32) },
      'machine-id warning: D-Bus has the id of another machine: the disk was copied from it',
    ],
    [
      'a free clock',
      { isClockSynchronized: false },
      'clock warning: the clock follows nothing: certificates fail when it has drifted',
    ],
    ['apt', { packageLock: '77' }, 'package-lock warning: process 77 holds the package manager'],
    ['no systemd', { init: 'sh' }, 'init problem: process 1 is sh'],
    ['no tools', { programs: sound.programs?.slice(1) }, 'tools problem: missing: conntrack'],
    ['another system', { osRelease: 'ID=arch\n' }, 'os warning: arch is not tested'],
    ['another processor', { architecture: 'ia32' }, 'architecture problem: there are no programs for ia32'],
    ['one CPU', { cpus: 1 }, 'cpu problem: 1 CPU, a control plane needs 2'],
    ['1 GiB', { memoryBytes: GIB }, 'memory problem: 1.0 GiB, a control-plane needs 2 GiB'],
    [
      'a full disk',
      { filesystems: [{ path: '/var/lib/etcd', freeBytes: GIB, inodes: 0, freeInodes: 0 }] },
      'disk problem: /var/lib/etcd has 1.0 GiB free, 20 GiB are needed',
    ],
    [
      'no inodes',
      { filesystems: [{ path: '/var', freeBytes: 40 * GIB, inodes: 100, freeInodes: 4 }] },
      'disk problem: /var has 4 inodes free',
    ],
    [
      'no way out',
      { answers: [{ url: 'https://registry.test/', failed: 'connect ECONNREFUSED 192.0.2.1:443' }] },
      'egress problem: https://registry.test/: connect ECONNREFUSED 192.0.2.1:443',
    ],
    [
      'a portal that redirects',
      { knownAnswer: { ...known, status: 302, location: 'http://login.test/' } },
      'captive-portal problem: http://known.test/204 answers a redirect to http://login.test/: a portal stands between',
    ],
    [
      'a portal that answers itself',
      { knownAnswer: { ...known, status: 200, begin: '<html>' } },
      'captive-portal problem: http://known.test/204 answers status 200: a portal stands between',
    ],
    [
      'a clock that is behind',
      { answers: [{ ...target, offsetMs: -61_000 }], serverClock: undefined },
      'clock-offset warning: 61 s behind https://registry.test/',
    ],
    [
      'a clock of another day',
      { answers: [], serverClock: { url: 'https://control.test:9191', status: 415, begin: '', offsetMs: 86_400_000 } },
      'clock-offset problem: 86400 s ahead of https://control.test:9191: certificates are refused',
    ],
    [
      'a repository that is gone',
      { repositories: [{ ...debian, answer: { failed: 'getaddrinfo ENOTFOUND deb.test' } }] },
      'apt problem: http://deb.test/debian bookworm: getaddrinfo ENOTFOUND deb.test',
    ],
    [
      'a repository that nobody signs',
      { repositories: [debian, { ...debian, suite: 'own', answer: { status: 404, isSigned: false } }] },
      'apt problem: http://deb.test/debian own: status 404, and nothing signed',
    ],
    [
      'a repository that is trusted blindly',
      { repositories: [{ ...debian, isTrusted: true }] },
      'apt warning: /etc/apt/sources.list takes http://deb.test/debian bookworm without a signature',
    ],
    [
      'a repository behind a proxy',
      { repositories: [{ ...debian, answer: { failed: 'connect ETIMEDOUT' } }], proxy: { http_proxy: 'http://192.0.2.9:3128' } },
      'apt unknown: apt comes to them through a proxy, or not by HTTP',
    ],
    ['no repository', { repositories: [] }, 'apt warning: apt has no repository: nothing can be installed'],
    [
      'no UDP',
      { udpEcho: { failed: 'nothing came back in 3 attempts of 1 s' } },
      'udp-egress problem: echo.test:7: nothing came back in 3 attempts of 1 s: the overlay would not come through either',
    ],
    [
      'a rule of ufw',
      { firewall: input('-A ufw-user-input -p tcp -m tcp --dport 10250 -j DROP') },
      'firewall problem: TCP 10250: ufw filter ufw-user-input: -A ufw-user-input -p tcp -m tcp --dport 10250 -j DROP',
    ],
    ['a low limit', { openFiles: 1024 }, 'limits warning: a process may open 1024 files: connections are refused beyond'],
    ['no resolver', { nameservers: [] }, 'resolver problem: /etc/resolv.conf names no server'],
    [
      'a stale resolver',
      { nameservers: ['127.0.0.53'] },
      'resolver problem: /etc/resolv.conf names 127.0.0.53, where nothing listens: a former membership has left it',
    ],
    [
      'a network in the range',
      { networks: [{ device: 'eth0', address: '10.244.3.9', prefixLength: 24 }] },
      'ranges problem: 10.244.3.0/24 of this machine lies in 10.244.0.0/16',
    ],
    ['no CA', { ca: { problem: '/ca.crt is not there' } }, 'ca problem: /ca.crt is not there'],
    ['an old CA', { ca: { sha256: '', notAfter: 0 } }, 'ca problem: it was valid until 1970-01-01T00:00:00Z'],
    [
      'a proxy',
      { proxy: { https_proxy: 'http://p:3128' } },
      'proxy warning: https_proxy is set, and the agent connects without it',
    ],
    ['no name', { lookup: { failed: 'ENOTFOUND', ms: 2 } }, 'dns problem: control.test is not found (ENOTFOUND)'],
    [
      'a silent resolver',
      { lookup: { failed: 'EAI_AGAIN', ms: 4_000 } },
      'dns problem: control.test is not found (EAI_AGAIN), after 4000 ms: the resolver does not answer',
    ],
    ['a slow resolver', { lookup: { addresses: 1, ms: 1_500 } }, 'dns warning: the resolver took 1500 ms for control.test'],
  ])('%s', (_, facts, expected) => {
    expect(told(facts)).toEqual([expected]);
    const [bad] = judgeMachine({ ...sound, ...facts }, controlPlane, new Set()).filter(({ state }) => state !== 'ok');
    if (bad?.state !== 'unknown') expect(bad).toHaveProperty('remedy', expect.stringMatching(/\w/));
  });

  test('a slow disk says its consequence', () => {
    expect(told({ fsyncMs: 40 })).toEqual([expect.stringContaining('etcd loses its leader')]);
  });

  test('a clock of the past', () => {
    expect(told({ now: 0 })).toEqual(['clock problem: the clock says 1970-01-01T00:00:00Z']);
  });

  test.each<[string, PreflightFacts['way'], readonly string[]]>([
    [
      'closed',
      { reach: { stage: 'closed', detail: 'ECONNREFUSED' }, isDistrusted: false },
      ['reachability problem: control.test:9191 refuses connections', 'tls unknown: control.test:9191 showed no certificate'],
    ],
    [
      'dropped',
      { reach: { stage: 'silent', detail: silent }, isDistrusted: false },
      [`reachability problem: control.test:9191: ${silent}`, 'tls unknown: control.test:9191 showed no certificate'],
    ],
    // A time-out within TLS is no interception.
    [
      'broken off',
      { reach: { stage: 'tls', detail: 'ECONNRESET' }, isDistrusted: false },
      ['tls unknown: control.test:9191 showed no certificate'],
    ],
  ])('the way to the server: %s', (_, way, expected) => {
    expect(told({ way })).toEqual(expected);
  });

  test('a foreign certificate', () => {
    const way = { reach: { stage: 'tls', detail: 'self-signed' }, isDistrusted: true } as const;
    expect(told({ way })).toEqual([expect.stringMatching(/^tls problem: control.test:9191 is not trusted: self-signed/)]);
  });
});

describe('what is no fault', () => {
  test.each<[string, Partial<PreflightFacts>, Wanted]>([
    ['one CPU of a worker', { cpus: 1 }, worker],
    ['an etcd beside a worker', { listeners: [{ protocol: 'tcp', port: 2379 }] }, worker],
    ['2 GiB less what the firmware takes', { memoryBytes: 1.85 * GIB }, controlPlane],
    ['a route to more than the range', { networks: [{ device: 'eth0', address: '10.0.0.0', prefixLength: 8 }] }, worker],
    ['our own CNI in the range', { networks: [{ device: 'cni0', address: '10.244.1.1', prefixLength: 24 }] }, worker],
    ['a resolver here that listens', { nameservers: ['127.0.0.53'], listeners: [{ protocol: 'udp', port: 53 }] }, worker],
    ['a proxy that the server is exempt from', { proxy: { https_proxy: 'p', no_proxy: '10.0.0.1, .test' } }, worker],
  ])('%s', (_, facts, wanted) => {
    expect(told(facts, wanted)).toEqual([]);
  });
});

describe('--skip', () => {
  test('leaves a check out and says so', () => {
    const results = judgeMachine({ ...sound, swaps: ['/swap'] }, worker, new Set(['swap']));
    expect(results.find(({ check }) => check === 'swap')).toEqual({
      check: 'swap',
      state: 'skipped',
      finding: 'left out by --skip',
    });
    expect(isFit(results)).toBe(true);
  });

  test('refuses what is unknown or fatal', () => {
    expect(refuseSkip(['swap', 'fsync'])).toBeUndefined();
    expect(refuseSkip(['swop'])).toContain('there is no check "swop"');
    expect(refuseSkip(['root'])).toBe('check root cannot be left out');
  });
});

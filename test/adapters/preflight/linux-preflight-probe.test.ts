import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { dirname, join } from 'node:path';
import { createServer } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { LinuxPreflightProbe } from '../../../src/adapters/preflight/linux-preflight-probe.js';
import type { PortNumber } from '../../../src/domain/kernel/network.js';
import { absolutePath } from '../../../src/domain/kernel/paths.js';
import { judgeMachine } from '../../../src/domain/preflight/judge.js';
import type { CheckResult, Wanted } from '../../../src/domain/preflight/model.js';
import { preflightProbeContract } from '../../contract/preflight-probe.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeCommandRunner } from '../../fakes/fake-command-runner.js';
import { FakeHostFacts } from '../../fakes/fake-host-facts.js';
import { FakePreflightProbe } from '../../fakes/fake-preflight-probe.js';
import { tempFolder } from '../../support/temp-folder.js';
import { throwawayCertificate } from '../../support/throwaway-certificate.js';

const options = { signal: new AbortController().signal };
const SOCKETS = '  sl  local_address rem_address   st\n';
const programs = ['conntrack', 'ip', 'iptables', 'modprobe', 'mount', 'nft', 'nsenter', 'systemctl'];

const SOUND: Readonly<Record<string, string>> = {
  ...Object.fromEntries(programs.map((name) => [`usr/sbin/${name}`, ''])),
  'proc/1/comm': 'systemd\n',
  'proc/cpuinfo': 'processor : 0\nprocessor : 1\n',
  'proc/meminfo': 'MemTotal: 4194304 kB\n',
  'proc/swaps': 'Filename Type\n',
  'proc/locks': '',
  'proc/modules': 'overlay 1\nbr_netfilter 1\nnf_conntrack 1\nnf_tables 1\n',
  'proc/net/tcp': SOCKETS,
  'proc/net/udp': SOCKETS,
  'proc/self/limits': 'Max open files  1024  1048576  files\n',
  'proc/self/status': 'CapEff:\t000001ffffffffff\n',
  'proc/sys/kernel/hostname': 'node-1\n',
  'proc/sys/net/ipv4/ip_forward': '1\n',
  'proc/sys/net/bridge/bridge-nf-call-iptables': '1\n',
  'sys/fs/cgroup/cgroup.controllers': 'cpuset cpu io memory pids\n',
  'etc/machine-id': `${'a'.repeat(32)}\n`,
  'etc/apt/sources.list': 'deb http://deb.test/debian bookworm main\n',
  'etc/resolv.conf': 'nameserver 192.0.2.1\n',
  'var/lib/nothing': '',
};

interface Machine {
  readonly folder: string;
  readonly commands: FakeCommandRunner;
  readonly host: FakeHostFacts;
  readonly env: Record<string, string>;
  readonly probe: LinuxPreflightProbe;
}

async function put(folder: string, path: string, text: string): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true });
  await writeFile(join(folder, path), text);
}

async function machine(): Promise<Machine> {
  const folder = await tempFolder();
  for (const [path, text] of Object.entries(SOUND)) await put(folder, path, text);
  const root = absolutePath(folder);
  if (root === undefined) throw new Error(folder);
  const [commands, host, env] = [new FakeCommandRunner(), new FakeHostFacts(), {}];
  host.release = 'ID=debian\nVERSION_ID="12"\n';
  host.on = [{ device: 'eth0', address: '192.0.2.7', prefixLength: 24 }];
  commands.program(['timedatectl'], { stdout: 'yes\n' });
  commands.program(['iptables', '--list-rules'], { stdout: '-P INPUT ACCEPT\n' });
  const clock = new FakeClock(Date.now());
  return { folder, commands, host, env, probe: new LinuxPreflightProbe({ root, host, commands, clock, env }) };
}

const range = { network: '10.96.0.0', prefixLength: 12 } as Wanted['ranges'][number];
const nobody: Wanted = { role: 'control-plane', ranges: [range] };

/** The disk and the user of whoever runs the tests are as they are: what a fault changes is compared. */
async function results({ probe }: Machine, wanted: Wanted): Promise<ReadonlyMap<string, CheckResult>> {
  const found = judgeMachine(await probe.look(wanted, options), wanted, new Set(['fsync']));
  return new Map(found.map((result) => [result.check, result]));
}

async function changed(made: Machine, fault: () => Promise<void>, wanted = nobody): Promise<readonly CheckResult[]> {
  const before = await results(made, wanted);
  await fault();
  const after = await results(made, wanted);
  return [...after.values()].filter(({ check, state }) => before.get(check)?.state !== state);
}

preflightProbeContract('fake', async (hostname) => {
  const probe = new FakePreflightProbe();
  probe.facts = { now: 1, proxy: {}, hostname, lookup: { addresses: 1, ms: 1 } };
  return probe;
});

preflightProbeContract('Linux', async (hostname) => {
  const made = await machine();
  await put(made.folder, 'proc/sys/kernel/hostname', `${hostname}\n`);
  return made.probe;
});

test('a sound machine is sound, and keeps nothing of the probe', async () => {
  const made = await machine();
  const found = await results(made, nobody);
  // Of whoever runs the tests.
  const rest = [...found.values()].filter(({ check, state }) => state !== 'ok' && !['disk', 'root', 'fsync'].includes(check));
  expect(rest.map(({ check, state }) => `${check} ${state}`)).toEqual([
    'ca unknown',
    'dns unknown',
    'reachability unknown',
    'tls unknown',
    'egress unknown',
    'captive-portal unknown',
    'clock-offset unknown',
    'apt unknown',
    'udp-egress unknown',
  ]);
  expect(await readdir(join(made.folder, 'var/lib'))).toEqual(['nothing']);
});

describe('a broken machine fails just that check', () => {
  const file = (path: string, text: string) => (made: Machine) => put(made.folder, path, text);
  const socket = (address: string, state: string) => `${SOCKETS}   0: ${address} 00000000:0000 ${state} 0:0\n`;

  test.each<[string, string, (made: Machine) => Promise<void> | void]>([
    ['init', 'problem', file('proc/1/comm', 'tini\n')],
    ['tools', 'problem', ({ folder }) => rm(join(folder, 'usr/sbin/nft'))],
    ['os', 'warning', ({ host }) => void Object.assign(host, { release: 'ID=fedora\nVERSION_ID=40\n' })],
    ['cpu', 'problem', file('proc/cpuinfo', 'processor : 0\n')],
    ['memory', 'problem', file('proc/meminfo', 'MemTotal: 1048576 kB\n')],
    ['swap', 'problem', file('proc/swaps', 'Filename Type\n/swap.img file\n')],
    ['ports', 'problem', file('proc/net/tcp', socket('00000000:192B', '0A'))],
    ['ports', 'problem', file('proc/net/tcp6', socket('00000000000000000000000000000000:094B', '0A'))],
    [
      'cgroup',
      'problem',
      ({ folder }) =>
        rm(join(folder, 'sys/fs/cgroup/cgroup.controllers')).then(() => put(folder, 'sys/fs/cgroup/memory/tasks', '')),
    ],
    ['sysctls', 'problem', file('proc/sys/net/ipv4/ip_forward', '0\n')],
    ['clusters', 'problem', file('etc/kubernetes/kubelet.conf', '')],
    ['hostname', 'problem', file('proc/sys/kernel/hostname', 'localhost.localdomain\n')],
    ['machine-id', 'problem', file('etc/machine-id', 'uninitialized\n')],
    ['machine-id', 'problem', ({ folder }) => rm(join(folder, 'etc/machine-id'))],
    ['machine-id', 'warning', file('var/lib/dbus/machine-id', `${'b'.repeat(32)}\n`)],
    ['resolver', 'problem', file('etc/resolv.conf', 'nameserver 127.0.0.53\n')],
    ['capabilities', 'problem', file('proc/self/status', 'CapEff:\t00000000a80425fb\n')],
    ['limits', 'warning', file('proc/self/limits', 'Max open files  1024  4096  files\n')],
    ['apt', 'warning', file('etc/apt/sources.list', 'deb [trusted=yes] http://deb.test/debian bookworm main\n')],
    [
      'firewall',
      'problem',
      ({ commands }) => commands.program(['iptables', '--list-rules'], { stdout: '-P INPUT ACCEPT\n-A INPUT -p tcp -j DROP\n' }),
    ],
    ['clock', 'warning', ({ commands }) => commands.program(['timedatectl'], { stdout: 'no\n' })],
    [
      'ranges',
      'problem',
      ({ host }) => void Object.assign(host, { on: [{ device: 'eth0', address: '10.100.0.1', prefixLength: 24 }] }),
    ],
    ['proxy', 'warning', ({ env }) => void Object.assign(env, { HTTPS_PROXY: 'http://192.0.2.9:3128' })],
  ])('%s: %s', async (check, state, fault) => {
    const wanted = check === 'proxy' ? { ...nobody, server: { host: '127.0.0.1', port: 1 as PortNumber } } : nobody;
    const made = await machine();
    expect(await changed(made, async () => fault(made), wanted)).toEqual([
      { check, state, finding: expect.stringMatching(/\w/), remedy: expect.stringMatching(/\w/) },
    ]);
  });

  test('modules: unknown without a list, loaded for real where modprobe can', async () => {
    const made = await machine();
    await put(made.folder, 'proc/modules', 'overlay 1\nbr_netfilter 1\nnf_conntrack 1\n');
    expect((await results(made, nobody)).get('modules')?.state).toBe('unknown');
    made.commands.program(['modprobe', '--', 'nf_tables'], {});
    expect((await results(made, nobody)).get('modules')?.state).toBe('ok');
    expect(made.commands.dump()).toContain('modprobe -- nf_tables\n');
  });

  test('modules: a sign of built-in code is enough', async () => {
    const made = await machine();
    await put(made.folder, 'proc/modules', 'overlay 1\nbr_netfilter 1\nnf_conntrack 1\n');
    await put(made.folder, 'sys/module/nf_tables/version', '');
    expect((await results(made, nobody)).get('modules')?.state).toBe('ok');
  });

  test.runIf(process.getuid?.() === 0)('disk: a small filesystem of its own', async () => {
    const made = await machine();
    const etcd = join(made.folder, 'var/lib/etcd');
    await mkdir(etcd);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'preflight', etcd]);
    onTestFinished(() => void execFileSync('umount', [etcd]));
    expect((await results(made, nobody)).get('disk')).toMatchObject({
      state: 'problem',
      finding: expect.stringContaining('/var/lib/etcd has 0.0 GiB free'),
    });
  });

  test('package-lock: who holds it', async () => {
    const made = await machine();
    const lock = join(made.folder, 'var/lib/dpkg/lock-frontend');
    await put(made.folder, 'var/lib/dpkg/lock-frontend', '');
    const [dev, ino] = execFileSync('stat', ['--format=%Hd:%Ld %i', lock], { encoding: 'utf8' }).trim().split(' ');
    const place = (dev ?? '')
      .split(':')
      .map((part) => Number(part).toString(16).padStart(2, '0'))
      .join(':');
    await put(made.folder, 'proc/locks', `1: POSIX  ADVISORY  WRITE 4242 ${place}:${ino} 0 EOF\n`);
    expect((await results(made, nobody)).get('package-lock')).toMatchObject({
      state: 'warning',
      finding: 'process 4242 holds the package manager',
    });
  });
});

describe('the way to the control plane', () => {
  async function listening(server: ReturnType<typeof createTcpServer>): Promise<PortNumber> {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    return port as PortNumber;
  }
  const to = (port: PortNumber, path: string, sha256?: string): Wanted => ({
    ...nobody,
    server: { host: '127.0.0.1', port },
    ca: { path, sha256 },
  });
  const states = async (wanted: Wanted) => {
    const found = await results(await machine(), wanted);
    return ['ca', 'dns', 'reachability', 'tls'].map((check) => `${check} ${found.get(check)?.state}`);
  };

  test('is open, or shows a certificate of somebody else', async () => {
    const [own, other] = [await tempFolder(), await tempFolder()];
    const pair = throwawayCertificate(own, ['IP:127.0.0.1']);
    throwawayCertificate(other, ['IP:127.0.0.1']);
    const server = createServer({ ...pair, ALPNProtocols: ['h2'] }, (socket) =>
      socket.on('error', () => {}).once('data', () => socket.end()),
    );
    const port = await listening(server);
    expect(await states(to(port, join(own, 'cert.pem')))).toEqual(['ca ok', 'dns ok', 'reachability ok', 'tls ok']);
    expect(await states(to(port, join(other, 'cert.pem')))).toEqual(['ca ok', 'dns ok', 'reachability ok', 'tls problem']);
    expect((await states(to(port, join(own, 'cert.pem'), 'f'.repeat(64))))[0]).toBe('ca problem');
    expect((await states(to(port, join(own, 'nothing'))))[0]).toBe('ca problem');
  });

  test('is closed, and broken off', async () => {
    const own = await tempFolder();
    throwawayCertificate(own, ['IP:127.0.0.1']);
    const path = join(own, 'cert.pem');
    const server = createTcpServer((socket) => void socket.destroy());
    const port = await listening(server);
    expect(await states(to(port, path))).toEqual(['ca ok', 'dns ok', 'reachability ok', 'tls unknown']);
    server.close();
    await once(server, 'close');
    expect(await states(to(port, path))).toEqual(['ca ok', 'dns ok', 'reachability problem', 'tls unknown']);
  });

  test('has a name that cannot be one', async () => {
    const wanted: Wanted = { ...nobody, server: { host: `${'a'.repeat(64)}.test`, port: 1 as PortNumber } };
    const found = await results(await machine(), wanted);
    expect(found.get('dns')?.state).toBe('problem');
    expect(found.get('reachability')?.state).toBe('unknown');
  });
});

test('hostile files stop nothing', async () => {
  const made = await machine();
  execFileSync('mkfifo', [join(made.folder, 'var/lib/dbus-fifo')]);
  await rm(join(made.folder, 'etc/resolv.conf'));
  await symlink(join(made.folder, 'var/lib/dbus-fifo'), join(made.folder, 'etc/resolv.conf'));
  await put(made.folder, 'proc/meminfo', '\0'.repeat(1_000_000));
  await rm(join(made.folder, 'proc/swaps'));
  await mkdir(join(made.folder, 'proc/swaps'));
  const found = await results(made, nobody);
  expect(['resolver', 'memory', 'swap'].map((check) => found.get(check)?.state)).toEqual(['unknown', 'unknown', 'unknown']);
});

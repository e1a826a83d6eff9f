import { describe, expect, test } from 'vitest';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { logKey } from '../../../src/domain/log/model.js';
import { formatNodeInfo, machineAddresses, type NodeInfo, nodeInfoKey, nodeOfInfoKey } from '../../../src/domain/node/model.js';
import { prettyName, readDisks, readGpus, readVersion } from '../../../src/domain/node/probe.js';
import { refuseNodeInfo } from '../../../src/domain/node/schema.js';

const info: NodeInfo = {
  ...{ hostname: 'web', os: 'Debian', kernel: '6.1', architecture: 'x64', addresses: ['10.0.0.1'], memoryBytes: 1_024 },
  cpu: { model: 'Fast', count: 4 },
  disks: [{ mount: '/', device: '/dev/vda1', filesystem: 'ext4', bytes: 10 }],
  gpus: [{ uuid: 'GPU-1', model: 'G', memoryBytes: 5 }],
  ...{ versions: { kubelet: '1.20.2' }, version: '0.1.0', labels: { zone: 'a' }, subsystems: { link: 'ready' } },
};

test('a key for each node', () => {
  expect(nodeInfoKey('web-1' as NodeName)).toBe('node/web-1');
  expect(nodeOfInfoKey(logKey('node/web-1'))).toBe('web-1');
  for (const other of ['node/a/b', 'node/A', 'service/default/a']) expect(nodeOfInfoKey(logKey(other))).toBeUndefined();
});

describe('a record', () => {
  test('is taken as it is written', () => {
    expect(refuseNodeInfo(formatNodeInfo(info))).toBeUndefined();
    expect(refuseNodeInfo(formatNodeInfo({ ...info, disks: undefined, gpus: [] }))).toBeUndefined();
  });

  test.each<[string, object, string]>([
    ['a member that nobody knows', { more: 1 }, 'record: '],
    ['a hostname of 1 MB', { hostname: 'x'.repeat(1_000_000) }, 'hostname: '],
    ['1,000 addresses', { addresses: Array.from({ length: 1_000 }, () => '10.0.0.1') }, 'addresses: '],
    ['negative memory', { memoryBytes: -1 }, 'memoryBytes: '],
    [
      '300 subsystems',
      { subsystems: Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`s${at}`, 'ready'])) },
      'subsystems: ',
    ],
  ])('%s is refused', (_, changed, problem) => {
    expect(refuseNodeInfo(formatNodeInfo({ ...info, ...changed }))).toContain(problem);
  });

  test('no JSON, and not in canonical form', () => {
    expect(refuseNodeInfo('{')).toBe('it is no JSON');
    expect(refuseNodeInfo(JSON.stringify(info))).toBe('it is not in canonical form');
  });
});

test('addresses of the machine: those of workloads, of ours and of one link alone are not', () => {
  const of = (device: string, address: string) => ({ device, address });
  const all = [
    ...[of('lo', '127.0.0.1'), of('eth0', '10.0.0.2'), of('eth0', 'fe80::1'), of('eth1', '10.0.0.1'), of('eth1', '10.0.0.2')],
    ...[of('wg0', '10.9.0.1'), of('cilium_host', '10.1.0.1'), of('veth1', '169.254.1.1'), of('docker0', '172.17.0.1')],
    ...[of('eth0', '2001:db8::1'), of('br0', '192.168.0.1'), of('br-1', '172.18.0.1')],
  ];
  expect(machineAddresses(all)).toEqual(['10.0.0.1', '10.0.0.2', '192.168.0.1', '2001:db8::1']);
});

test('real filesystems, each device once', () => {
  const text = `Filesystem     Type      1-blocks       Used  Available Capacity Mounted on
/dev/vda1      ext4   1000 10 990 2% /
tmpfs          tmpfs  100 0 100 0% /run
/dev/vda1      ext4   1000 10 990 2% /var/lib/kubelet/pods/x
/dev/vdb       xfs    2000 20 1980 2% /srv/with space
nfs:/x         nfs4   5000 1 1 1% /mnt
`;
  expect(readDisks(text)).toEqual([
    { mount: '/', device: '/dev/vda1', filesystem: 'ext4', bytes: 1_000 },
    { mount: '/srv/with space', device: '/dev/vdb', filesystem: 'xfs', bytes: 2_000 },
  ]);
  expect(readDisks('')).toEqual([]);
});

test.each([
  ['none', '\n', []],
  [
    'by UUID, whatever their order',
    'GPU-b0, NVIDIA A100, 40960\nGPU-a0, NVIDIA A100, 40960\n',
    [
      { uuid: 'GPU-a0', model: 'NVIDIA A100', memoryBytes: 42_949_672_960 },
      { uuid: 'GPU-b0', model: 'NVIDIA A100', memoryBytes: 42_949_672_960 },
    ],
  ],
  ['something else', 'No devices were found\n', undefined],
  ['more than there can be', 'GPU-a, X, 1\n'.repeat(65), undefined],
])('GPUs: %s', (_, text, expected) => {
  expect(readGpus(text)).toEqual(expected);
});

test('versions and the name of the system', () => {
  expect(readVersion('Kubernetes v1.20.2\n')).toBe('1.20.2');
  expect(readVersion('containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1\n')).toBe('1.6.20~ds1');
  expect(readVersion('unknown')).toBeUndefined();
  expect(prettyName('ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')).toBe('Debian GNU/Linux 12 (bookworm)');
  expect(prettyName('ID=debian')).toBeUndefined();
});

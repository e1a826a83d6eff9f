import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { LinuxHostFacts, parseRoutes } from '../../../src/adapters/certificate/linux-host-facts.js';
import { hostCidrs } from '../../../src/domain/certificate/host.js';
import { absolutePath } from '../../../src/domain/kernel/paths.js';
import { hostFactsContract } from '../../contract/host-facts.contract.js';
import { FakeHostFacts } from '../../fakes/fake-host-facts.js';
import { tempFolder } from '../../support/temp-folder.js';
import { options } from './support.js';

const DEBIAN = 'ID=debian\nVERSION_ID="12"\n';

hostFactsContract('fake', async (machineId) => {
  const facts = new FakeHostFacts();
  facts.id = machineId;
  return facts;
});

async function machineOf(files: Readonly<Record<string, string>>): Promise<LinuxHostFacts> {
  const folder = await tempFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  const root = absolutePath(folder);
  if (root === undefined) throw new Error(folder);
  return new LinuxHostFacts(root);
}

hostFactsContract('Linux', (machineId) =>
  machineOf({ 'etc/os-release': DEBIAN, ...(machineId === undefined ? {} : { 'etc/machine-id': `${machineId}\n` }) }),
);

describe('the files of a machine', () => {
  test.each([
    ['the one of D-Bus', { 'var/lib/dbus/machine-id': 'b\n' }, 'b'],
    ["systemd's before that", { 'etc/machine-id': 'a\n', 'var/lib/dbus/machine-id': 'b\n' }, 'a'],
    ["D-Bus' where systemd's is empty", { 'etc/machine-id': '\n', 'var/lib/dbus/machine-id': 'b\n' }, 'b'],
    ['none in an image that was never started', { 'etc/machine-id': 'uninitialized\n' }, undefined],
  ])('machine id: %s', async (_, files, id) => {
    expect(await (await machineOf(files)).machineId(options)).toBe(id);
  });

  test('os-release in /usr, and none at all', async () => {
    expect(await (await machineOf({ 'usr/lib/os-release': DEBIAN })).osRelease(options)).toBe(DEBIAN);
    expect(await (await machineOf({})).osRelease(options)).toBe('');
  });

  test('routes of the kernel, lowest byte first', () => {
    const text = [
      'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
      'eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0',
      'eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
      'eth1\t0000140A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0',
      'broken',
      '',
    ].join('\n');
    expect(parseRoutes(text)).toEqual([
      { device: 'eth0', address: '0.0.0.0', prefixLength: 0 },
      { device: 'eth0', address: '192.168.0.0', prefixLength: 24 },
      { device: 'eth1', address: '10.20.0.0', prefixLength: 16 },
    ]);
    expect(hostCidrs(parseRoutes(text))).toEqual(['10.20.0.0/16', '192.168.0.0/24']);
  });
});

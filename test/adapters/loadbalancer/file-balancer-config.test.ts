import { execFileSync } from 'node:child_process';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ExecaCommandRunner } from '../../../src/adapters/command/execa-command-runner.js';
import { FileBalancerConfig } from '../../../src/adapters/loadbalancer/file-balancer-config.js';
import { nameServers } from '../../../src/domain/loadbalancer/names.js';
import { FakeCommandRunner } from '../../fakes/fake-command-runner.js';
import { endpoint } from '../../support/endpoint.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };
const servers = nameServers([endpoint('10.0.0.1')], [], []);

async function rig() {
  const folder = await tempFolder();
  const [file, memoryFile, ipv6Facts] = ['haproxy.cfg', 'api-servers.json', 'if_inet6'].map((name) => join(folder, name));
  const places = { file: file ?? '', memoryFile: memoryFile ?? '', ipv6Facts: ipv6Facts ?? '' };
  return { ...places, folder, config: new FileBalancerConfig({ ...places, commands: new ExecaCommandRunner() }) };
}

test('everybody may read the file, and nobody else what is remembered', async () => {
  const { config, file, memoryFile } = await rig();
  await config.place('global\n', options);
  await config.remember(servers, options);
  expect([(await stat(file)).mode & 0o777, (await stat(memoryFile)).mode & 0o777]).toEqual([0o644, 0o600]);
});

test('what stands in its place and is no file is named', async () => {
  const { config, file, memoryFile } = await rig();
  execFileSync('mkfifo', [file]);
  await mkdir(memoryFile);
  const unusable = (text: string) =>
    expect.objectContaining({ code: 'loadbalancer.unusable', message: expect.stringContaining(text) });
  await expect(config.read(options)).rejects.toEqual(unusable('haproxy.cfg is not a regular file'));
  await expect(config.remember(servers, options)).rejects.toEqual(unusable('api-servers.json cannot be written'));
  expect(await config.remembered(options)).toBeUndefined();
});

test('a missing folder is named', async () => {
  const { config, folder } = await rig();
  await rm(folder, { recursive: true });
  await expect(config.place('global\n', options)).rejects.toThrow(/ENOENT \(its folder is missing\)/);
});

test('IPv6 is there when the kernel lists its addresses', async () => {
  const { config, ipv6Facts } = await rig();
  expect(await config.hasIpv6(options)).toBe(false);
  await writeFile(ipv6Facts, '');
  expect(await config.hasIpv6(options)).toBe(true);
});

test('a HAProxy that does not end is told of', async () => {
  const { file, memoryFile } = await rig();
  const commands = new FakeCommandRunner();
  commands.program(['haproxy'], { exitCode: -1, timedOut: true });
  expect(await new FileBalancerConfig({ file, memoryFile, commands }).test('global\n', options)).toBe('haproxy -c took too long');
});

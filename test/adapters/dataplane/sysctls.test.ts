import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ProcSysctls } from '../../../src/adapters/dataplane/proc-sysctls.js';
import { sysctlsContract } from '../../contract/sysctls.contract.js';
import { FakeSysctls } from '../../fakes/fake-sysctls.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };
const FORWARD = 'net.ipv4.ip_forward';

sysctlsContract('fake', async (values) => {
  const sysctls = new FakeSysctls(values);
  return { open: () => sysctls, reset: async (name, value) => sysctls.reset(name, value) };
});

/** Files as they stand below /proc/sys. */
async function kernel(values: Readonly<Record<string, string>>) {
  const folder = await tempFolder();
  const path = (name: string) => join(folder, 'sys', ...name.split('.'));
  const reset = async (name: string, value: string) => {
    await mkdir(dirname(path(name)), { recursive: true });
    await writeFile(path(name), `${value}\n`);
  };
  for (const [name, value] of Object.entries(values)) await reset(name, value);
  const memory = join(folder, 'sysctls.json');
  return { folder, memory, reset, open: () => new ProcSysctls(memory, join(folder, 'sys')) };
}

sysctlsContract('files', kernel);

describe('the memory', () => {
  test('is JSON, and goes when all is restored', async () => {
    const { folder, memory, open } = await kernel({ [FORWARD]: '0' });
    await open().set(new Map([[FORWARD, '1']]), options);
    expect(await readFile(memory, 'utf8')).toBe('{"net.ipv4.ip_forward":{"before":"0","set":"1"}}\n');
    await open().restore(options);
    expect(await readdir(folder)).toEqual(['sys']);
  });

  test('nothing is set when it cannot be written', async () => {
    const { memory, open } = await kernel({ [FORWARD]: '0' });
    await mkdir(memory);
    await expect(open().set(new Map([[FORWARD, '1']]), options)).rejects.toThrow();
    expect(await open().read([FORWARD], options)).toEqual(new Map([[FORWARD, '0']]));
  });

  test.each([
    ['half of it', '{"net.ipv4.ip_for'],
    ['null', 'null'],
    ['another form', '{"net.ipv4.ip_forward":"0"}'],
    ['a path out of the folder', '{"....sysctls":{"before":"0","set":"1"},"../x":{"before":"0","set":"1"}}'],
  ])('%s is none', async (_, text) => {
    const { memory, open } = await kernel({ [FORWARD]: '1' });
    await writeFile(memory, text);
    await open().restore(options);
    expect(await open().read([FORWARD], options)).toEqual(new Map([[FORWARD, '1']]));
  });
});

test('the real kernel is read, and refuses a value that is none', async () => {
  const folder = await tempFolder();
  const sysctls = new ProcSysctls(join(folder, 'sysctls.json'));
  expect([...(await sysctls.read(['kernel.ostype', 'net.ipv4.nothing'], options))]).toEqual([['kernel.ostype', 'Linux']]);
  await expect(sysctls.set(new Map([['kernel.ostype', 'Other']]), options)).rejects.toMatchObject({
    code: 'dataplane.sysctl_not_set',
  });
});

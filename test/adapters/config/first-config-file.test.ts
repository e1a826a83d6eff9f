import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FirstConfigFile } from '../../../src/adapters/config/first-config-file.js';
import { YamlConfigFile } from '../../../src/adapters/config/yaml-config-file.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };

test('of the data directory and the machine the first file that is there counts, whole, also when it cannot be used', async () => {
  const folder = await tempFolder();
  const [own, machine] = [join(folder, 'holdfast.yaml'), join(folder, 'config.yaml')];
  const source = new FirstConfigFile([own, machine].map((path) => new YamlConfigFile(path, { required: false })));
  expect(await source.read(options)).toBeUndefined();
  await writeFile(machine, 'logLevel: debug\nnode: { ip: 10.0.0.7 }\n');
  expect(await source.read(options)).toMatchObject({ file: machine, value: { logLevel: 'debug', node: { ip: '10.0.0.7' } } });
  await writeFile(own, 'logLevel: warn\n');
  expect(await source.read(options)).toMatchObject({ file: own, value: { logLevel: 'warn' }, problems: [] });
  await writeFile(own, 'logLevel: [\n');
  expect((await source.read(options))?.problems).not.toEqual([]);
  await expect(source.read({ signal: AbortSignal.abort() })).rejects.toThrow();
});

test('a folder in a file’s place is told, not passed over', async () => {
  const folder = await tempFolder();
  const own = join(folder, 'holdfast.yaml');
  await mkdir(own);
  const source = new FirstConfigFile([new YamlConfigFile(own, { required: false })]);
  expect((await source.read(options))?.problems).toMatchObject([{ problem: 'is a directory' }]);
});

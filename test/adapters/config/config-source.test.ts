import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { YamlConfigFile } from '../../../src/adapters/config/yaml-config-file.js';
import { configSourceContract } from '../../contract/config-source.contract.js';
import { FakeConfigSource } from '../../fakes/fake-config-source.js';
import { tempFolder } from '../../support/temp-folder.js';

configSourceContract('fake', async () => {
  const source = new FakeConfigSource();
  return { source, write: async (value) => source.write(value), spoil: async () => source.spoil('is a directory') };
});

configSourceContract('yaml file', async () => {
  const file = join(await tempFolder(), 'holdfast.yaml');
  return {
    source: new YamlConfigFile(file, { required: false }),
    write: (value) => writeFile(file, JSON.stringify(value)),
    spoil: () => writeFile(file, 'logLevel: [\n'),
  };
});

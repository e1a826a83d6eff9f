import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DurableMachineFiles } from '../../../src/adapters/files/durable-machine-files.js';
import { machineFilesContract } from '../../contract/machine-files.contract.js';
import { FakeMachineFiles } from '../../fakes/fake-machine-files.js';
import { absolute } from '../../support/admin-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };

machineFilesContract('durable', async () => {
  const folder = await tempFolder();
  return { files: new DurableMachineFiles(), at: (path) => absolute(join(folder, path)) };
});
machineFilesContract('fake', async () => ({ files: new FakeMachineFiles(), at: (path) => absolute(`/t/${path}`) }));

describe('durable files of the machine', () => {
  test('have the mode that was asked for, also where another stood, and nothing is left beside them', async () => {
    const folder = await tempFolder();
    const path = absolute(join(folder, 'sub/key'));
    await mkdir(join(folder, 'sub'), { mode: 0o755 });
    await writeFile(path, 'former', { mode: 0o644 });
    await new DurableMachineFiles().replace([{ path, text: 'x', mode: 0o600 }], options);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, 'sub'))).mode & 0o777).toBe(0o755);
    expect(await readdir(join(folder, 'sub'))).toEqual(['key']);
  });

  test('when one cannot be written none is put in place, and it is named', async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, 'no-folder'), '');
    const [good, bad] = [absolute(join(folder, 'good')), absolute(join(folder, 'no-folder/x'))];
    const writing = new DurableMachineFiles().replace(
      [good, bad].map((path) => ({ path, text: 'x', mode: 0o600 })),
      options,
    );
    await expect(writing).rejects.toMatchObject({
      code: 'adoption.file_failed',
      facts: { problem: expect.stringContaining(bad) },
    });
    expect(await readdir(folder)).toEqual(['no-folder']);
  });

  test('what is no small text is refused by name', async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, 'binary'), Buffer.of(0xff, 0xff, 0x00));
    const files = new DurableMachineFiles();
    for (const name of ['', 'binary']) {
      const path = absolute(join(folder, name));
      await expect(files.read(path, options)).rejects.toMatchObject({ code: 'adoption.file_failed' });
    }
  });
});

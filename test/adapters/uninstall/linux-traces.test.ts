import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { LinuxTraces } from '../../../src/adapters/uninstall/linux-traces.js';
import type { AbsolutePath } from '../../../src/domain/kernel/paths.js';
import { tracesContract } from '../../contract/traces.contract.js';
import { FakeTraces } from '../../fakes/fake-traces.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };

tracesContract('in memory', async (files, mounts) => ({ traces: new FakeTraces(files, mounts), folder: '' }));

tracesContract('of Linux', async (files, mounts) => {
  const folder = await tempFolder();
  for (const file of files) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), '');
  }
  const mountInfo = join(folder, 'mountinfo');
  const line = (path: string) => `36 35 98:0 / ${folder}${path} rw,noatime master:1 - ext3 /dev/root rw\n`;
  await writeFile(mountInfo, mounts.map(line).join(''));
  return { traces: new LinuxTraces(mountInfo), folder };
});

test('a link is removed, and what it leads to stays; a folder is not read through one', async () => {
  const folder = await tempFolder();
  await mkdir(join(folder, 'foreign'));
  await writeFile(join(folder, 'foreign/file'), 'mine');
  await symlink(join(folder, 'foreign'), join(folder, 'certs'));
  const traces = new LinuxTraces();
  const link = join(folder, 'certs') as AbsolutePath;
  expect(await traces.entries(link, options)).toEqual([]);
  await traces.remove(link, options);
  expect(await readdir(folder)).toEqual(['foreign']);
  expect(await readdir(join(folder, 'foreign'))).toEqual(['file']);
});

test('mounts whose names have spaces are found', async () => {
  const folder = await tempFolder();
  const mountInfo = join(folder, 'mountinfo');
  await writeFile(mountInfo, '36 35 98:0 / /d/a\\040b rw - tmpfs tmpfs rw\n');
  expect(await new LinuxTraces(mountInfo).mountsBelow('/d' as AbsolutePath, options)).toEqual(['/d/a b']);
});

test('when mounts cannot be read nothing is removed', async () => {
  const folder = await tempFolder();
  const traces = new LinuxTraces(join(folder, 'missing'));
  await expect(traces.remove(folder as AbsolutePath, options)).rejects.toMatchObject({ code: 'uninstall.not_removed' });
  expect(await readdir(folder)).toEqual([]);
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadAddon } from '../../../src/adapters/dataplane/addon.js';
import { lockDataDir } from '../../../src/adapters/dataplane/data-dir-lock.js';
import { type AbsolutePath, makePaths } from '../../../src/domain/kernel/paths.js';
import { tempFolder } from '../../support/temp-folder.js';

const pathsIn = (folder: string) => makePaths({ root: '/' as AbsolutePath, dataDir: folder as AbsolutePath });

/** Another process that holds the lock until it is killed. */
async function holder(lock: string) {
  const program = `const addon = require(${JSON.stringify(join(process.cwd(), 'build/Release/holdfast.node'))});
    addon.lockFile(process.argv[1]); console.log('locked'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['-e', program, lock], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}

test('a data directory that another process has is refused by name, until that process ends, however it ends', async () => {
  const paths = pathsIn(await tempFolder());
  const child = await holder(paths.lock);
  expect(() => lockDataDir(loadAddon(), paths)).toThrow(
    expect.objectContaining({ code: 'agent.data_dir_locked', message: expect.stringContaining(paths.dataDir) }),
  );
  child.kill('SIGKILL');
  await once(child, 'close');
  lockDataDir(loadAddon(), paths);
});

test('a folder that is not there is no other daemon', async () => {
  const paths = pathsIn(join(await tempFolder(), 'absent'));
  expect(() => lockDataDir(loadAddon(), paths)).toThrow(expect.not.objectContaining({ code: 'agent.data_dir_locked' }));
});

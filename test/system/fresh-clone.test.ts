import { execFile } from 'node:child_process';
import { chmod, chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryFolder } from './support/daemon.js';

const run = promisify(execFile);
const repository = join(import.meta.dirname, '../..');
/** `nobody`: an ordinary user that every Debian has. */
const ORDINARY_USER = 65_534;

async function demo(
  clone: string,
  home: string,
): Promise<{ readonly report: Record<string, unknown>; readonly stderr: string; readonly ms: number }> {
  const startedAt = performance.now();
  const { stdout, stderr } = await run('npm', ['run', '-s', 'demo', '--', '--once', '--output', 'json'], {
    cwd: clone,
    uid: ORDINARY_USER,
    gid: ORDINARY_USER,
    env: { PATH: systemPath(), HOME: home, npm_config_cache: join(home, 'cache'), ...npmSettings() },
  });
  return { report: JSON.parse(stdout), stderr, ms: performance.now() - startedAt };
}

/** Without the Node that this test runs on: a fresh machine has only its own. */
function systemPath(): string {
  return (process.env.PATH ?? '')
    .split(':')
    .filter((folder) => !folder.includes('node_modules'))
    .join(':');
}

/** How this machine reaches its registry. */
function npmSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => /^npm_config_(registry|cafile)$|^NODE_EXTRA_CA_CERTS$|_proxy$/i.test(name)),
  );
}

test('a fresh clone in a path with a space, an ordinary user, an empty npm cache: the demo runs, and the second time at once', async () => {
  await using folder = await temporaryFolder();
  await chmod(folder.path, 0o755);
  const clone = join(folder.path, 'a clone');
  const home = join(folder.path, 'home');
  await run('git', ['-c', 'safe.directory=*', 'clone', '--quiet', '--no-hardlinks', repository, clone]);
  await mkdir(home);
  await chown(home, ORDINARY_USER, ORDINARY_USER);
  await run('chown', ['-R', `${ORDINARY_USER}:${ORDINARY_USER}`, clone]);

  const first = await demo(clone, home);
  expect(first.report).toMatchObject({ failed: 0, stopped: 'clean' });
  expect(first.stderr).toMatch(/installing npm packages/);

  const second = await demo(clone, home);
  expect(second.report).toMatchObject({ failed: 0, stopped: 'clean' });
  expect(second.stderr).not.toMatch(/installing|building/);
  expect(second.ms).toBeLessThan(first.ms);
});

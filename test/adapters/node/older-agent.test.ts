import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findOlderAgent } from '../../../src/adapters/node/older-agent.js';
import { absolute } from '../../support/admin-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

/** A machine of its own, whose lock file is there and held by nobody. */
async function machine() {
  const root = await tempFolder();
  await mkdir(join(root, 'run/runos'), { recursive: true });
  const lock = join(root, 'run/runos/agent.lock');
  await writeFile(lock, '');
  const found = () => findOlderAgent(absolute(root));
  const run = async (pid: number, ...argv: readonly string[]) => {
    await mkdir(join(root, 'proc', String(pid)), { recursive: true });
    await writeFile(join(root, 'proc', String(pid), 'cmdline'), `${argv.join('\0')}\0`);
  };
  return { root, lock, found, run };
}

describe('B5: another agent on this machine', () => {
  test('none on a machine that never had one, nor by a lock file that nobody holds', async () => {
    expect(await findOlderAgent(absolute(await tempFolder()))).toBeUndefined();
    expect(await (await machine()).found()).toBeUndefined();
  });

  test('by its lock, held by a real process, until that ends', async () => {
    const { root, lock, found } = await machine();
    await symlink('/proc', join(root, 'proc'));
    const holder = spawn('flock', ['-n', lock, '-c', 'echo held; read _'], { stdio: ['pipe', 'pipe', 'ignore'] });
    onTestFinished(() => void holder.kill());
    await once(holder.stdout, 'data');
    expect(await found()).toMatch(new RegExp(`^process \\d+ holds ${lock}$`));
    holder.stdin.end();
    await once(holder, 'exit');
    expect(await found()).toBeUndefined();
  });

  test('by a lock of another file with the same number: none', async () => {
    const { root, lock, found } = await machine();
    const { ino } = await stat(lock);
    await mkdir(join(root, 'proc'));
    await writeFile(join(root, 'proc/locks'), `1: FLOCK  ADVISORY  WRITE 7 fff:fff:${ino} 0 EOF\n`);
    expect(await found()).toBeUndefined();
  });

  test.each([
    ['/usr/local/bin/runos-agent', 'process 77, runos-agent, runs'],
    ['runos-node-agent', 'process 77, runos-node-agent, runs'],
    ['/usr/bin/runos', undefined],
    ['/opt/holdfast/bin/holdfast', undefined],
    ['/usr/bin/vim', undefined],
  ])('by its process: %s', async (program, expected) => {
    const { found, run } = await machine();
    await run(1, '/sbin/init');
    await run(77, program, '/usr/bin/runos-agent');
    expect(await found()).toBe(expected);
  });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { disableLine, enabledOlderUnits, findOlderAgent } from '../../../src/adapters/node/older-agent.js';
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
    expect(await found()).toEqual({
      what: expect.stringMatching(new RegExp(`^process \\d+ holds ${lock}$`)),
      stop: expect.stringMatching(/^(kill \d+|systemctl disable --now \S+\.service)$/),
    });
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
    expect((await found())?.what).toBe(expected);
  });

  test('by its unit, whatever its program is called, with the line that stops it', async () => {
    const { root, found, run } = await machine();
    await run(77, '/usr/bin/node', '/opt/agent.js');
    const group = join(root, 'proc/77/cgroup');
    await writeFile(group, '0::/system.slice/cron.service\n');
    expect(await found()).toBeUndefined();
    await writeFile(group, '0::/system.slice/runos-node-agent.service\n');
    expect(await found()).toEqual({
      what: 'process 77 of runos-node-agent.service runs',
      stop: 'systemctl disable --now runos-node-agent.service',
    });
  });

  test('the line that stops a program names its unit, else its process', async () => {
    const { root, found, run } = await machine();
    await run(77, '/usr/bin/runos-agent');
    expect((await found())?.stop).toBe('kill 77');
    await writeFile(join(root, 'proc/77/cgroup'), '1:name=systemd:/system.slice/agent@a.service/main\n');
    expect((await found())?.stop).toBe('systemctl disable --now agent@a.service');
  });

  test('units that start with the machine, and no others', async () => {
    const root = await tempFolder();
    expect(await enabledOlderUnits(absolute(root))).toEqual([]);
    const units = join(root, 'etc/systemd/system');
    await mkdir(join(units, 'multi-user.target.wants'), { recursive: true });
    await mkdir(join(units, 'network.target.requires'));
    await writeFile(join(units, 'runos-other-agent.service'), '');
    expect(await enabledOlderUnits(absolute(root))).toEqual([]);
    for (const at of ['multi-user.target.wants', 'network.target.requires']) {
      await symlink('/lib/systemd/system/runos-agent.service', join(units, at, 'runos-agent.service'));
      await symlink('/lib/systemd/system/cron.service', join(units, at, 'cron.service'));
    }
    await symlink('/x', join(units, 'multi-user.target.wants/runos-a-agent.service'));
    expect(await enabledOlderUnits(absolute(root))).toEqual(['runos-a-agent.service', 'runos-agent.service']);
    expect(disableLine(['a.service', 'b.service'])).toBe('systemctl disable --now a.service b.service');
  });
});

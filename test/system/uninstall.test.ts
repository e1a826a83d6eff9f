import { execFile } from 'node:child_process';
import { readFile, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from './support/daemon.js';

const run = promisify(execFile);
const packageRoot = join(import.meta.dirname, '../..');
const script = join(import.meta.dirname, 'support/throwaway-node.sh');
const THROWAWAY = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'];
/** Lines that a whole removal says, one a step. */
const STEPS = 18;

const folders: AsyncDisposable[] = [];
afterAll(() => Promise.all(folders.map((folder) => folder[Symbol.asyncDispose]())));

async function throwawayFolder(): Promise<string> {
  const folder = await temporaryFolder();
  folders.push(folder);
  return folder.path;
}

async function remove(kills: number, ...verb: readonly string[]) {
  const folder = await throwawayFolder();
  const [mnt, net] = await Promise.all(['mnt', 'net'].map((name) => readlink(`/proc/self/ns/${name}`)));
  const env = { ...process.env, HOST_MNT: mnt, HOST_NET: net };
  const args = [...THROWAWAY, 'bash', script, packageRoot, folder, String(kills), ...verb];
  const { stdout } = await run('unshare', args, { env, timeout: 60_000 });
  const read = (name: string) => readFile(join(folder, name), 'utf8').catch(() => '');
  return { stdout, folder, read, root: join(folder, 'root') };
}

/** What stays of a machine on which nothing of the removal is wrong: it is the one before. */
const CLEAN = 'exit 0\n';

test('it refuses to run on a real machine', async () => {
  const [mnt, net] = await Promise.all(['mnt', 'net'].map((name) => readlink(`/proc/self/ns/${name}`)));
  const env = { ...process.env, HOST_MNT: mnt, HOST_NET: net };
  await expect(run('bash', [script, packageRoot, '/nowhere', '0', 'uninstall'], { env })).rejects.toMatchObject({ code: 99 });
});

describe('uninstall', () => {
  test('leaves the machine as it was before there was a node', async () => {
    const { stdout, read } = await remove(0, 'uninstall', '--reboot');
    expect(stdout).toBe(CLEAN);
    expect((await read('err')).trim().split('\n')).toHaveLength(STEPS);
    const log = await read('log');
    expect(log).toContain('kubeadm reset --force\n');
    expect(log.trim().split('\n').at(-1)).toBe('systemctl reboot');
  });

  test.each(Array.from({ length: STEPS }, (_, at) => at + 1))(
    'killed -9 after step %i and begun anew it ends the same',
    async (kills) => {
      const { stdout } = await remove(kills, 'uninstall');
      expect(stdout).toBe(CLEAN);
    },
  );

  test('--dry-run says all of it and does nothing', async () => {
    const { stdout, read } = await remove(0, 'uninstall', '--dry-run', '-o', 'json');
    expect(stdout).toMatch(/^exit 0\n/);
    for (const left of [
      './data/node-identity.json',
      'wg0',
      'proto 202',
      './etc/dnsmasq.d/runos.conf',
      './etc/haproxy/haproxy.cfg',
    ])
      expect(stdout).toContain(`${left}`);
    const { dryRun, steps } = JSON.parse(await read('out'));
    expect([dryRun, steps.length]).toEqual([true, STEPS]);
    expect(await read('log')).toBe('');
  });
});

describe('reinstall', () => {
  async function withCommand(kills: number) {
    const folder = await throwawayFolder();
    const command = join(folder, 'command');
    await writeFile(command, `echo installed anew >>${folder}/installed\n`);
    const removed = await remove(kills, 'reinstall', '--reboot', '--command-file', command);
    const installed = await readFile(join(folder, 'installed'), 'utf8').catch(() => '');
    return { ...removed, installed };
  }

  test('runs its command when all else is gone, then the machine starts anew', async () => {
    const { stdout, read, installed } = await withCommand(0);
    expect(stdout).toBe(CLEAN);
    expect(installed).toBe('installed anew\n');
    expect((await read('log')).trim().split('\n').at(-1)).toBe('systemctl reboot');
  });

  test.each([1, 5, 9])('killed -9 after step %i and begun anew it has run its command once', async (kills) => {
    const { stdout, installed } = await withCommand(kills);
    expect(stdout).toBe(CLEAN);
    expect(installed).toBe('installed anew\n');
  });
});

test('cleanup keeps the node', async () => {
  const { stdout } = await remove(0, 'cleanup');
  expect(stdout).toMatch(/^exit 0\n/);
  expect(stdout).toContain('> ./data/node-identity.json');
  expect(stdout).toContain('> ./etc/kubernetes/kubelet.conf');
  expect(stdout).not.toContain('wg0');
  expect(stdout).not.toContain('proto 202');
  expect(stdout).not.toContain('runos.conf');
});

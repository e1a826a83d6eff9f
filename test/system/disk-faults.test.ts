import { execFile } from 'node:child_process';
import { copyFile, mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { Backend } from './support/backends.js';
import { Daemon, runCli, temporaryFolder } from './support/daemon.js';
import { ask } from './support/load.js';
import { serviceManifest } from './support/manifests.js';

const run = promisify(execFile);

/** A file system of its own that can be filled. Needs root. */
async function smallDisk(path: string, size: string) {
  await mkdir(path);
  await run('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path]);
  return { path, [Symbol.asyncDispose]: async () => void (await run('umount', ['-l', path])) };
}

/** Takes all that is left. */
async function fill(folder: string): Promise<string> {
  const file = join(folder, 'ballast');
  const handle = await open(file, 'w');
  const block = Buffer.alloc(64 * 1024);
  try {
    for (;;) await handle.write(block);
  } catch {
    return file;
  } finally {
    await handle.close();
  }
}

describe('a full disk', () => {
  test('applies are refused as not written, reads and traffic go on, and with room again applies work', async () => {
    await using folder = await temporaryFolder();
    await using disk = await smallDisk(join(folder.path, 'disk'), '4m');
    const backend = await Backend.start();
    const daemon = new Daemon(join(disk.path, 'data'));
    try {
      await daemon.start();
      await daemon.apply(serviceManifest({ name: 'before', endpoints: [{ port: backend.port }] }));
      const before = await daemon.json<{ status: { vip: string } }>('get', 'service', 'before');
      const ballast = await fill(disk.path);

      let refused = { code: 0, stderr: '' };
      for (let index = 0; index < 200 && refused.code === 0; index++) {
        refused = await daemon.cli(['apply', '-f', '-'], serviceManifest({ name: `filler-${index}`, endpoints: [] }));
      }
      expect(refused.code).toBe(1);
      expect(refused.stderr).toMatch(/log\.not_written/);
      const { revision } = (await daemon.json<{ log: { revision: number } }>('status')).log;
      expect(await ask(before.status.vip, 18_080)).toBe(String(backend.port));
      const status = await daemon.cli(['status']);
      expect({ code: status.code, says: /log-store/.test(status.stdout) }).toEqual({ code: 4, says: true });

      await rm(ballast);
      const after = await daemon.apply(serviceManifest({ name: 'after', endpoints: [] }));
      expect(after.revision).toBe(revision + 1);
      expect((await daemon.cli(['status'])).code).toBe(0);
    } finally {
      await daemon.stop('SIGKILL');
      await backend.kill();
    }
  });
});

describe('a damaged log', () => {
  test('the start is refused with the way out, and restore brings back what the newest copy holds', async () => {
    await using folder = await temporaryFolder();
    const dataDir = join(folder.path, 'data');
    const daemon = new Daemon(dataDir);
    await daemon.start();
    await daemon.apply(serviceManifest({ name: 'kept', endpoints: [] }));
    const kept = await daemon.json<{ status: { vip: string } }>('get', 'service', 'kept');
    await daemon.stop();
    await copyFile(join(dataDir, 'log.db'), join(folder.path, 'good'));

    const damaged = await readFile(join(dataDir, 'log.db'));
    damaged.fill(0x55, Math.floor(damaged.length / 2), Math.floor(damaged.length / 2) + 4096);
    await writeFile(join(dataDir, 'log.db'), damaged);
    const { code, stderr } = await runCli(['dev', '--data-dir', dataDir, '--metrics-listen', 'off']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/log\.corrupt.*log\.db/s);
    expect(stderr).toMatch(/holdfast restore/);
    expect(stderr).not.toMatch(/^\s+at /m);

    const restored = await runCli(['restore', join(folder.path, 'good'), '--data-dir', dataDir]);
    expect(restored).toMatchObject({ code: 0 });
    await daemon.start();
    expect((await daemon.json<{ status: { vip: string } }>('get', 'service', 'kept')).status.vip).toBe(kept.status.vip);
    await daemon.stop();
  });

  test('restore without a copy says that there is none and changes nothing', async () => {
    await using folder = await temporaryFolder();
    const dataDir = join(folder.path, 'data');
    await mkdir(dataDir);
    await writeFile(join(dataDir, 'log.db'), 'rubbish');
    const { code, stderr } = await runCli(['restore', '--data-dir', dataDir]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/cop(y|ies)/);
    expect(await readFile(join(dataDir, 'log.db'), 'utf8')).toBe('rubbish');
  });

  test('restore beside a running daemon is refused', async () => {
    await using folder = await temporaryFolder();
    const daemon = new Daemon(join(folder.path, 'data'));
    await daemon.start();
    try {
      const { code, stderr } = await daemon.cli(['restore']);
      expect(code).toBe(1);
      expect(stderr).toMatch(/agent\.data_dir_locked/);
    } finally {
      await daemon.stop();
    }
  });
});

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/daemon.js';
import { Fleet } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';

/** A machine whose reboot is told and does nothing; a program that is not in mounts of its own does not start. */
async function throwaway(folder: string): Promise<readonly string[]> {
  const log = join(folder, 'log');
  const fake = join(folder, 'fake');
  await writeFile(fake, `#!/bin/sh\necho "$0 $*" >>${log}\n`, { mode: 0o755 });
  const host = await readlink('/proc/self/ns/mnt');
  const inside = `
    [ "$(readlink /proc/self/ns/mnt)" != "${host}" ] || exit 99
    mount -t tmpfs tmpfs /usr/local/sbin
    for program in systemctl reboot; do cp ${fake} /usr/local/sbin/$program; done
    for program in /usr/bin/systemctl /usr/sbin/reboot; do [ ! -e $program ] || mount --bind ${fake} $program; done
    exec "$@"`;
  return ['sh', '-euc', inside, 'sh'];
}

test('UNINSTALL_NODE through a real server: answered, then the node is gone, and the machine starts anew', async () => {
  await using folder = await temporaryFolder();
  await using fleet = await Fleet.start({ agentsWithin: await throwaway(folder.path) });
  await fleet.linked();
  const { nid, daemon } = fleet.agent();
  const foreign = `${daemon.root}/etc/dnsmasq.d/other.conf`;
  await mkdir(`${daemon.root}/etc/dnsmasq.d`, { recursive: true });
  await writeFile(foreign, 'no-hosts\n');
  await writeFile(`${daemon.dataDir}/notes.txt`, 'mine');
  const sent = await fleet.server.cli(['send', nid, 'UNINSTALL_NODE', '--yes', '--wait', '-o', 'json']);
  expect([sent.code, sent.stderr]).toEqual([0, '']);
  expect(sent.stdout).toContain('NO_CONTENT');
  const log = await until(
    () => readFile(join(folder.path, 'log'), 'utf8'),
    (text) => text.includes('reboot'),
    60_000,
  );
  expect(log).toMatch(/systemctl reboot\n$/);
  expect(existsSync(`${daemon.dataDir}/node-identity.json`)).toBe(false);
  expect(existsSync(`${daemon.dataDir}/certs`)).toBe(false);
  expect(existsSync(`${daemon.dataDir}.removal`)).toBe(false);
  expect(await readFile(foreign, 'utf8')).toBe('no-hosts\n');
  expect(await readFile(`${daemon.dataDir}/notes.txt`, 'utf8')).toBe('mine');
  const routes = ['netns', 'exec', daemon.space.name, 'ip', '-4', 'route', 'show', 'table', 'local', 'proto', '202'];
  expect((await promisify(execFile)('ip', routes)).stdout).toBe('');
  await daemon.stop();
});

test('A16b: the agent is killed once the order is there, and it is carried out all the same', async () => {
  await using folder = await temporaryFolder();
  await using fleet = await Fleet.start({ agentsWithin: await throwaway(folder.path) });
  await fleet.linked();
  const { nid, daemon } = fleet.agent();
  await fleet.send(nid, 'UNINSTALL_NODE', {});
  await until(
    async () => existsSync(`${daemon.dataDir}.removal/order.json`),
    (there) => there,
  );
  await daemon.stop('SIGKILL');
  // It may have been started already, and be through: then there is no node to start any more.
  await daemon.start().catch(() => {});
  await until(
    () => readFile(join(folder.path, 'log'), 'utf8'),
    (text) => text.includes('systemctl reboot'),
    60_000,
  );
  // An agent that is started on a machine without a node makes itself an identity before it finds that out.
  expect(existsSync(`${daemon.dataDir}/certs`)).toBe(false);
  await daemon.stop();
});

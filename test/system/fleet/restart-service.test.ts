import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../support/daemon.js';
import { Fleet } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';

/** systemd's programs as their documentation has them, in the agent's own mount namespace: each writes its argv into a log. */
const WITHIN =
  'mount --make-rprivate / && mount -t tmpfs tmpfs /run/systemd && mkdir /run/systemd/system && mount --bind "$0/bin" /usr/local/bin && exec "$@"';

let stack: AsyncDisposableStack;
let fleet: Fleet;
let folder: string;

beforeAll(async () => {
  stack = new AsyncDisposableStack();
  folder = stack.use(await temporaryFolder()).path;
  await mkdir(join(folder, 'bin'));
  await writeFile(join(folder, 'log'), '');
  for (const name of ['systemctl', 'systemd-run']) {
    await writeFile(join(folder, 'bin', name), `#!/bin/sh\necho "${name} $*" >> '${folder}/log'\n`);
    await chmod(join(folder, 'bin', name), 0o755);
  }
  fleet = stack.use(await Fleet.start({ agentsWithin: ['unshare', '-m', 'sh', '-c', WITHIN, folder] }));
});
afterAll(() => stack.disposeAsync());

test('RESTART_SERVICE by `send`: answered, then systemd is given a timer that restarts the agent, once', async () => {
  const { nid } = fleet.agent();
  const send = ['send', nid, 'RESTART_SERVICE', '--tag', 'once', '--wait', '-o', 'json'];
  const { code } = await fleet.server.cli(send);
  expect(code).toBe(0);
  const timers = async () =>
    (await readFile(join(folder, 'log'), 'utf8')).split('\n').filter((line) => line.startsWith('systemd-run '));
  const [timer] = await until(timers, (lines) => lines.length > 0, 10_000);
  expect(timer).toMatch(/^systemd-run --collect --quiet --unit=\S+ --on-active=\d+s .* systemctl holdfast-agent(\.service)?$/);
  // The same tag is the same instruction.
  await fleet.server.cli(send);
  expect(await timers()).toHaveLength(1);
});

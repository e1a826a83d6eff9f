import { execFile } from 'node:child_process';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../support/daemon.js';
import { Fleet } from '../support/fleet.js';
import { until } from '../support/fleet-daemon.js';

/** systemd's programs as their documentation has them, in the agent's own mount namespace: each writes its argv into a log. */
const WITHIN =
  'mount --make-rprivate / && mount -t tmpfs tmpfs /run/systemd && mkdir /run/systemd/system && mount --bind "$0/bin" /usr/local/bin && exec "$@"';

const run = promisify(execFile);

/** `systemctl`: dnsmasq.service is a real dnsmasq on the file that the agent writes; `$S` is a folder for its state. */
const SYSTEMCTL = `case "$1" in
restart)
  [ ! -e "$S/pid" ] || kill "$(cat "$S/pid")"
  dnsmasq --conf-file="$(cat "$S/root")/etc/dnsmasq.d/runos.conf" --pid-file="$S/pid" --listen-address=127.0.0.1 --bind-interfaces \\
    --no-resolv --no-hosts --user=root
  date +%s%N > "$S/started" ;;
show)
  [ -e "$S/pid" ] && state=active || state=inactive
  printf 'LoadState=loaded\\nActiveState=%s\\nExecMainStartTimestampMonotonic=%s\\n' "$state" "$(cat "$S/started")" ;;
esac
`;

let stack: AsyncDisposableStack;
let fleet: Fleet;
let folder: string;

beforeAll(async () => {
  stack = new AsyncDisposableStack();
  folder = stack.use(await temporaryFolder()).path;
  await mkdir(join(folder, 'bin'));
  await writeFile(join(folder, 'log'), '');
  await writeFile(join(folder, 'started'), '0');
  for (const [name, body] of Object.entries({ systemctl: SYSTEMCTL, 'systemd-run': '' })) {
    const program = `#!/bin/sh\nS='${folder}'\necho "${name} $*" >> "$S/log"\n${body}`;
    await writeFile(join(folder, 'bin', name), program);
    await chmod(join(folder, 'bin', name), 0o755);
  }
  fleet = stack.use(await Fleet.start({ agentsWithin: ['unshare', '-m', 'sh', '-c', WITHIN, folder] }));
  const { root } = fleet.agent().daemon;
  await writeFile(join(folder, 'root'), root);
  await mkdir(join(root, 'etc/dnsmasq.d'), { recursive: true });
});
afterAll(async () => {
  const pid = Number(await readFile(join(folder, 'pid'), 'utf8').catch(() => ''));
  if (pid > 0) process.kill(pid);
  await stack.disposeAsync();
});

test('UPDATE_DNSMASQ by `send`: what dig is answered is what was sent, and stays so when a broken file comes', async () => {
  const { nid, daemon } = fleet.agent();
  const dig = ['dig', '+short', '+time=1', '+tries=1', '@127.0.0.1', 'node.test'];
  const answered = async () => (await run('ip', ['netns', 'exec', daemon.space.name, ...dig])).stdout;
  const send = (fileContents: string) =>
    fleet.server.cli(['send', nid, 'UPDATE_DNSMASQ', '--json', JSON.stringify({ fileContents }), '--wait', '-o', 'json']);
  for (const address of ['192.0.2.9', '192.0.2.10']) {
    expect(await send(`address=/node.test/${address}\n`)).toMatchObject({ code: 0, stderr: '' });
    expect(await answered()).toBe(`${address}\n`);
  }
  expect((await send('address=/node.test/no-address\n')).code).toBe(1);
  expect(await answered()).toBe('192.0.2.10\n');
});

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

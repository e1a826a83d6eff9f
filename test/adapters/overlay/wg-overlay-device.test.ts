import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { OverlayKeyFile } from '../../../src/adapters/overlay/overlay-key-file.js';
import { UfwRanges } from '../../../src/adapters/overlay/ufw-ranges.js';
import { WgOverlayDevice } from '../../../src/adapters/overlay/wg-overlay-device.js';
import type { OverlayConfig } from '../../../src/domain/overlay/model.js';
import { FakeCommandRunner } from '../../fakes/fake-command-runner.js';
import { keyOf } from '../../fakes/fake-overlay-device.js';
import { ranges } from '../../support/overlay-peers.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };
const empty: OverlayConfig = { self: undefined, mtu: 1_420, peers: [], untouched: [], routes: [] };
const SECRET = Buffer.alloc(32, 9).toString('base64');

/** A machine whose programs say what is written here, and whose kernel has WireGuard or not. */
async function machine({ kernel = true, systemdRun }: { readonly kernel?: boolean; readonly systemdRun?: string } = {}) {
  const commands = new FakeCommandRunner();
  const key = new OverlayKeyFile(join(await tempFolder(), 'overlay.key'));
  let made: string | undefined;
  const make = (kind: string) => () => {
    made = kind;
    return {};
  };
  commands.program(['ip', '-j'], { stdout: '[]' });
  commands.program(['ip', '-j', '-d', 'link'], () => {
    if (made === undefined) return { exitCode: 1, stderr: 'Device "wg0" does not exist.\n' };
    return { stdout: JSON.stringify([{ mtu: 1_420, flags: [], linkinfo: { info_kind: made } }]) };
  });
  commands.program(['ip', 'link', 'set'], {});
  commands.program(['ip', 'link', 'add'], kernel ? make('wireguard') : { exitCode: 2, stderr: 'Error: Unknown device type.\n' });
  for (const program of [['setsid'], ['systemd-run']]) commands.program(program, make('tun'));
  commands.program(['wg', 'show'], { stdout: `${SECRET}\t${keyOf('x')}\t51820\toff\n` });
  commands.program(['wg', 'set'], {});
  const device = new WgOverlayDevice({ commands, key, firewall: new UfwRanges(commands), systemdRun });
  const ran = (program: string) => commands.ran.filter(({ argv }) => argv[0] === program).map(({ argv }) => argv.join(' '));
  return { commands, device, key, ran };
}

test('the link is that of the kernel where it has WireGuard', async () => {
  const { device, ran } = await machine();
  await device.set(empty, options);
  expect(ran('ip')).toContain('ip link add wg0 type wireguard');
  expect([ran('setsid'), ran('systemd-run')]).toEqual([[], []]);
  expect((await device.observe(options)).link?.kind).toBe('kernel');
});

test('else it is wireguard-go, in a session of its own, or a unit where there is systemd', async () => {
  const alone = await machine({ kernel: false });
  await alone.device.set(empty, options);
  expect(alone.ran('setsid')).toEqual(['setsid --fork --wait wireguard-go wg0']);
  const managed = await machine({ kernel: false, systemdRun: 'systemd-run' });
  await managed.device.set(empty, options);
  expect(managed.ran('systemd-run')).toEqual([
    'systemd-run --quiet --collect --unit=holdfast-wg0 --service-type=forking wireguard-go wg0',
  ]);
  expect((await managed.device.observe(options)).link?.kind).toBe('wireguard-go');
});

test('where there is neither, both are named', async () => {
  const { device, commands } = await machine({ kernel: false });
  commands.program(['setsid'], { exitCode: 1, stderr: 'setsid: failed to execute wireguard-go' });
  const says = /ip link add: Error: Unknown device type\.; wireguard-go: setsid: failed to execute/;
  await expect(device.set(empty, options)).rejects.toMatchObject({
    code: 'overlay.not_set',
    message: expect.stringMatching(says),
  });
});

test('a key that the interface has is kept in the file, and is in no argument and no message', async () => {
  const { device, commands, key } = await machine();
  await device.set(empty, options);
  expect((await readFile(key.path, 'utf8')).trim()).toBe(SECRET);
  expect(commands.dump()).not.toContain(SECRET);
  commands.program(['wg', 'show'], { stdout: `${SECRET}\t${keyOf('x')}\tno port\toff\n` });
  const error = await device.observe(options).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'overlay.unreadable' });
  expect(JSON.stringify(error) + String(error)).not.toContain(SECRET);
});

test('many peers are set some at once; the one that is refused is named, and the others are set', async () => {
  const { device, commands } = await machine();
  const letters = [...'abcdefghijklmnpqrstuvwyzABCDEFGHIJKLMNPQRSTUVWYZ0123456789'];
  const peers = letters.map((letter, at) => {
    return { publicKey: keyOf(letter), endpoint: { at: 'none' as const }, ranges: ranges(`10.78.1.${at}`) };
  });
  commands.program(['wg', 'set'], ({ argv }) => (argv.includes(keyOf('c')) ? { exitCode: 1, stderr: 'no such thing\n' } : {}));
  expect(await device.set({ ...empty, peers }, options)).toEqual([{ publicKey: keyOf('c'), reason: 'wg: no such thing' }]);
  const calls = commands.ran.filter(({ argv }) => argv[0] === 'wg' && argv.includes('persistent-keepalive'));
  // Fifty, each of these by itself, and the rest.
  expect(calls).toHaveLength(1 + 50 + 1);
});

test('a machine without ping says nothing of its paths', async () => {
  const { device } = await machine();
  const [range] = ranges('10.78.0.2');
  expect(range === undefined ? '' : await device.probe(range.network, 64, options)).toBeUndefined();
});

test('an interface with another key than this node has is somebody else’s, and stays', async () => {
  const { device, ran } = await machine();
  await device.set(empty, options);
  await device.remove(options);
  expect(ran('ip').filter((line) => line.includes('del'))).toEqual([]);
  const strange = await machine();
  await strange.device.remove(options);
  expect(strange.ran('ip')).toEqual([]);
});

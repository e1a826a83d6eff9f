import { execFileSync } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { overlayDeviceContract } from '../contract/overlay-device.contract.js';
import { OverlaySpace } from '../support/overlay-space.js';

const options = { signal: new AbortController().signal };

async function space(): Promise<OverlaySpace> {
  const made = await OverlaySpace.make();
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

overlayDeviceContract('wireguard-go', async () => {
  const machine = await space();
  return { device: machine.device, breakReading: async () => void (await machine.sh('mount --bind /bin/false /usr/bin/wg')) };
});

const empty = { self: undefined, mtu: 1_420, peers: [], untouched: [], routes: [] };

test('the private key is in a file for this user alone, and in no argument of a process', async () => {
  const machine = await space();
  await machine.device.set(empty, options);
  const path = join(machine.folder, 'overlay.key');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const key = (await readFile(path, 'utf8')).trim();
  expect((await machine.sh('wg show wg0 private-key')).trim()).toHaveLength(44);
  expect(execFileSync('ps', ['axww', '-o', 'args']).toString()).not.toContain(key);
  const { publicKey, link } = await machine.device.observe(options);
  expect({ publicKey, kind: link?.kind }).toEqual({
    publicKey: (await machine.sh('wg show wg0 public-key')).trim(),
    kind: 'wireguard-go',
  });
});

test('an interface that is there already keeps its key, which its peers know', async () => {
  const machine = await space();
  await machine.sh('wireguard-go wg0 && wg genkey > /var/run/wireguard/own && wg set wg0 private-key /var/run/wireguard/own');
  const own = (await machine.sh('wg show wg0 public-key')).trim();
  expect((await machine.device.observe(options)).publicKey).toBe(own);
  await machine.device.set(empty, options);
  expect((await machine.sh('wg show wg0 public-key')).trim()).toBe(own);
});

test('an interface of that name that is no WireGuard interface is left alone', async () => {
  const machine = await space();
  await machine.sh('ip link add wg0 type veth peer name other');
  await expect(machine.device.set(empty, options)).rejects.toMatchObject({ code: 'overlay.foreign' });
});

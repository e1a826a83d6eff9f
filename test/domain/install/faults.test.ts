import { expect, test } from 'vitest';
import { classifyFault } from '../../../src/domain/install/faults.js';

/** What apt, dpkg, curl and kubeadm write. */
test.each<[string, string]>([
  ['NA_APT_LOCK', 'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1234 (unattended-upgr)'],
  ['NA_APT_LOCK', 'E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?'],
  ['NA_APT_LOCK', 'E: Unable to lock directory /var/lib/apt/lists/'],
  ['NA_DISK_FULL', 'dpkg: error processing archive x.deb: cannot copy: failed to write (No space left on device)'],
  ['NA_DISK_FULL', "E: You don't have enough free space in /var/cache/apt/archives/."],
  ['NA_NET_UNREACH', "Err:1 https://pkgs.k8s.io/core:/stable:/v1.33/deb  InRelease\n  Could not resolve 'pkgs.k8s.io'"],
  ['NA_NET_UNREACH', 'W: Failed to fetch http://deb.debian.org/debian/dists/x/InRelease  Temporary failure resolving'],
  ['NA_NET_UNREACH', 'curl: (7) Failed to connect to 10.0.0.1 port 443: Connection refused'],
  ['NA_NET_UNREACH', 'dial tcp: lookup registry.k8s.io: no such host'],
  ['NA_PKG_NOTFOUND', 'E: Unable to locate package kubelet'],
  ['NA_PKG_NOTFOUND', "E: Version '1.33.99-*' for 'kubeadm' was not found"],
  ['NA_PKG_NOTFOUND', "E: Package 'containerd.io' has no installation candidate"],
  ['NA_HELD_PKGS', 'E: Held packages were changed and -y was used without --allow-change-held-packages.'],
  ['NA_HELD_PKGS', 'E: Unable to correct problems, you have held broken packages.'],
  ['NA_HELD_PKGS', "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."],
  ['NA_PERMISSION', 'E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)'],
  [
    'NA_PERMISSION',
    'E: Unable to lock directory /var/lib/apt/lists/, are you root?\n'.replace('Unable to lock directory', 'Problem with'),
  ],
  [
    'NA_REPO_GPG',
    "W: GPG error: https://pkgs.k8s.io InRelease: The following signatures couldn't be verified: NO_PUBKEY 234654DA9A296436",
  ],
  ['NA_REPO_GPG', 'E: Conflicting values set for option Signed-By regarding source https://pkgs.k8s.io/'],
  ['NA_KUBEADM', '[preflight] Some fatal errors occurred:\n\t[ERROR NumCPU]: the number of available CPUs 1 is less'],
  ['NA_KUBEADM', "error execution phase control-plane: couldn't complete the static pod upgrade"],
  ['NA_CONTAINERD', 'Job for containerd.service failed because the control process exited with error code.'],
  ['NA_GENERIC', 'something else'],
  ['NA_GENERIC', ''],
])('%s: %s', (code, output) => {
  const fault = classifyFault(output);
  expect(fault.code).toBe(code);
  expect(fault.cause).not.toBe('');
  expect(fault.remedy).not.toBe('');
});

test('the cause stands before what follows from it', () => {
  expect(classifyFault('E: Failed to fetch x\nwrite (28: No space left on device)').code).toBe('NA_DISK_FULL');
});

test('what passes is tried again, what does not is not', () => {
  expect(classifyFault('E: Could not get lock /x').passes).toBe(true);
  expect(classifyFault('could not resolve host').passes).toBe(true);
  expect(classifyFault('E: Unable to locate package x').passes).toBe(false);
  expect(classifyFault('no space left on device').passes).toBe(false);
});

test('hostile output costs nothing', () => {
  const began = performance.now();
  for (const piece of ['signatures were ', 'containerd ', 'failed to create ', "version '", 'E: ']) {
    expect(classifyFault(piece.repeat(200_000)).code).toBeTruthy();
    expect(classifyFault(`${piece}\n`.repeat(100_000)).code).toBeTruthy();
  }
  expect(performance.now() - began).toBeLessThan(5_000);
});

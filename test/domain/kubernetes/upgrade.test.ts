import { describe, expect, test } from 'vitest';
import {
  aptList,
  isArmouredKey,
  packageState,
  parsePlace,
  placeText,
  programFailure,
  readUpgradedNode,
  repositoryUrl,
  skewProblem,
  upgradeSteps,
  versionIn,
} from '../../../src/domain/kubernetes/upgrade.js';

test('the place in the journal', () => {
  for (const step of upgradeSteps) {
    for (const from of ['1.32.1', '']) expect(parsePlace(placeText({ step, from }))).toEqual({ step, from });
  }
  for (const text of [undefined, '', 'kubeadm', 'reboot, from 1.32.1', 'kubeadm, from 1.32.1, and', 'body abc']) {
    expect(parsePlace(text)).toBeUndefined();
  }
});

test.each([
  ['1.32.1', '1.33.4', undefined],
  ['1.33.1', '1.33.4', undefined],
  ['1.33.4', '1.33.4', undefined],
  ['1.9.10', '1.10.0', undefined],
  ['1.33.5', '1.33.4', /does not go back/],
  ['1.34.0', '1.33.4', /does not go back/],
  ['1.31.9', '1.33.4', /more than one minor version/],
  ['1.33.4', '2.0.0', /more than one minor version/],
])('from %s to %s', (from, to, problem) => {
  const said = skewProblem(from, to);
  if (problem === undefined) expect(said).toBeUndefined();
  else expect(said).toMatch(problem);
});

test.each([
  ['Kubernetes v1.33.4\n', '1.33.4'],
  ['v3.18.3+g1234567', '3.18.3'],
  ['v1.33.4-eks-1', '1.33.4'],
  ['', ''],
  ['none', ''],
])('the version in %j', (text, version) => expect(versionIn(text)).toBe(version));

test.each([
  ['ii  1.33.4-1.1', { isInstalled: true, upstream: '1.33.4' }],
  ['hi  1.33.4-1.1', { isInstalled: true, upstream: '1.33.4' }],
  ['ii  1:1.7.27-0ubuntu1', { isInstalled: true, upstream: '1.7.27' }],
  ['rc  1.33.4-1.1', { isInstalled: false, upstream: '1.33.4' }],
  ['iU  1.33.4-1.1', { isInstalled: false, upstream: '1.33.4' }],
  ['iiR 1.33.4-1.1', { isInstalled: false, upstream: '1.33.4' }],
  ['', { isInstalled: false, upstream: '' }],
])('dpkg says %j', (line, state) => expect(packageState(line)).toEqual(state));

test('the list of packages', () => {
  const url = repositoryUrl('https://pkgs.k8s.io', '1.33.4');
  expect(aptList(url, '/etc/k.asc')).toBe('deb [signed-by=/etc/k.asc] https://pkgs.k8s.io/core:/stable:/v1.33/deb/ /\n');
});

describe('a signing key', () => {
  const key = (body: string) => `-----BEGIN PGP PUBLIC KEY BLOCK-----\n${body}\n-----END PGP PUBLIC KEY BLOCK-----\n`;
  test.each<[string, boolean]>([
    [key('Version: GnuPG v2.0.15 (GNU/Linux)\n\nmQENBGMHoXcBCADu\n=oC67'), true],
    [key('\nmQENBGMHoXcBCADu\n'), true],
    ['<html>-----BEGIN PGP PUBLIC KEY BLOCK-----</html>', false],
    [key('<script>'), false],
    [`${key('\nabc')}deb http://evil /\n`.replace('http', '\u0000'), false],
    ['', false],
  ])('%j', (text, is) => expect(isArmouredKey(text)).toBe(is));
});

describe('the node that kubectl shows', () => {
  const node = (version: string, ready: string) => ({
    status: { nodeInfo: { kubeletVersion: version }, conditions: [{ type: 'Ready', status: ready }] },
  });
  test.each<[unknown, unknown]>([
    [node('v1.33.4', 'True'), { version: '1.33.4', isReady: true }],
    [node('v1.33.4', 'False'), { version: '1.33.4', isReady: false }],
    [node('v1.33.4', 'Unknown'), { version: '1.33.4', isReady: false }],
    // Cordoned for the upgrade, and well.
    [
      { ...node('v1.33.4', 'True'), spec: { unschedulable: true } },
      { version: '1.33.4', isReady: true },
    ],
    [{ status: { nodeInfo: { kubeletVersion: 'v1.33.4' } } }, { version: '1.33.4', isReady: false }],
    [{ status: {} }, undefined],
    [{}, undefined],
    [null, undefined],
    ['x', undefined],
  ])('%j', (value, expected) => expect(readUpgradedNode(value)).toEqual(expected));
});

test('a failure tells cause and remedy, and of what the program wrote the last line', () => {
  const end = {
    exitCode: 100,
    timedOut: false,
    stdout: 'Reading…\n',
    stderr: `W: x\nE: Could not get lock /x${'y'.repeat(900)}\n`,
    dropped: 0,
  };
  const { cause, remedy } = programFailure('apt-get install', end);
  expect(cause).toMatch(
    /^another program holds the lock of the package database \(NA_APT_LOCK\): apt-get install: exit code 100: E: Could not get lock/,
  );
  expect(cause.length).toBeLessThan(500);
  expect(remedy).toMatch(/wait until apt/);
});

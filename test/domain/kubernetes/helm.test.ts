import { describe, expect, test } from 'vitest';
import {
  decideInstall,
  type HelmInstallPlan,
  historyArgv,
  installArgv,
  isAbsent,
  lastGood,
  listArgv,
  type ReleaseState,
  readReleases,
} from '../../../src/domain/kubernetes/helm.js';

const plan: HelmInstallPlan = {
  ...{ do: 'helm_install', release: 'web', namespace: 'ns', repoUrl: 'https://charts.test', chart: 'nginx' },
  ...{ version: '1.2.3', valuesUrl: '', timeoutMs: 900_000 },
};
const NOW = 1_000_000_000;
const state = (facts: Partial<ReleaseState>): ReleaseState => ({
  ...{ revision: 4, status: 'deployed', chart: 'nginx-1.2.3', updatedAt: NOW - 1_000 },
  ...facts,
});

test('argv: all that helm writes stands in the folder of the task', () => {
  expect(installArgv(plan, true).join(' ')).toBe(
    'helm upgrade --install web nginx --repo https://charts.test --namespace ns --create-namespace --version 1.2.3 --values %f/values.yaml ' +
      '--repository-config %f/repositories.yaml --repository-cache %f/repositories.yaml.cache --registry-config %f/repositories.yaml.registry.json',
  );
  const oci = { ...plan, repoUrl: 'oci://charts.test/x/', version: '' };
  expect(installArgv(oci, false).slice(0, 7).join(' ')).toBe(
    'helm upgrade --install web oci://charts.test/x/nginx --namespace ns',
  );
  expect(listArgv({ release: 'a.b', namespace: 'ns' }).join(' ')).toBe(
    'helm list --namespace ns --all --filter ^a\\.b$ --output json',
  );
  expect(historyArgv(plan).join(' ')).toBe('helm history web --namespace ns --output json');
});

describe('A8: what becomes of a release', () => {
  test.each<[string, ReleaseState | undefined, number | undefined, string]>([
    ['there is none', undefined, undefined, 'install'],
    ['there is none after an attempt', undefined, 0, 'install'],
    ['an older one is upgraded', state({ chart: 'nginx-1.0.0' }), undefined, 'install'],
    ['the same one is upgraded: its values may differ', state({}), undefined, 'install'],
    ['what the first attempt had not begun', state({}), 4, 'install'],
    ['what the first attempt has done', state({}), 3, 'done'],
    ['what somebody else has done meanwhile', state({ chart: 'other-1.2.3' }), 3, 'install'],
    ['another version', state({ chart: 'nginx-1.2.30' }), 3, 'install'],
    ['what the first attempt left failed', state({ status: 'failed' }), 3, 'install'],
    ['what the first attempt left half done', state({ status: 'pending-upgrade' }), 3, 'recover'],
    ['a first install, half done', state({ revision: 1, status: 'pending-install' }), 0, 'recover'],
    ['somebody works on it: helm says so', state({ status: 'pending-upgrade' }), undefined, 'install'],
    ['whoever worked on it is dead', state({ status: 'pending-upgrade', updatedAt: NOW - 900_000 }), undefined, 'recover'],
    ['nobody knows since when', state({ status: 'pending-rollback', updatedAt: undefined }), undefined, 'recover'],
    ['a removal that has died', state({ status: 'uninstalling', updatedAt: 0 }), undefined, 'recover'],
  ])('%s', (_, now, before, expected) => {
    expect(decideInstall(plan, now, before, NOW).do).toBe(expected);
  });

  test('the newest, whatever it is, when no version was asked for', () => {
    expect(decideInstall({ ...plan, version: '' }, state({ chart: 'nginx-9.9.9' }), 3, NOW).do).toBe('done');
    expect(decideInstall({ ...plan, version: 'v1.2.3' }, state({}), 3, NOW).do).toBe('done');
  });
});

test('the last whole revision', () => {
  const row = (revision: number, status: string) => ({ revision, status });
  expect(lastGood([row(1, 'superseded'), row(2, 'superseded'), row(3, 'failed'), row(4, 'pending-upgrade')])).toBe(2);
  expect(lastGood([row(1, 'pending-install')])).toBeUndefined();
});

test('rows of helm list, of which revisions are texts, and of helm history, of which they are numbers', () => {
  const instant = (text: string) => (text === 'noon' ? 12 : Number.NaN);
  const rows = [
    { name: 'web', namespace: 'ns', revision: '4', updated: 'noon', status: 'deployed', chart: 'nginx-1.2.3', app_version: '1' },
    { revision: 5, updated: 'later', status: 'failed', chart: 'nginx-1.2.3' },
  ];
  expect(readReleases(rows, instant)).toEqual([
    { revision: 4, status: 'deployed', chart: 'nginx-1.2.3', updatedAt: 12 },
    { revision: 5, status: 'failed', chart: 'nginx-1.2.3', updatedAt: undefined },
  ]);
  expect(readReleases(null, instant)).toEqual([]);
  for (const strange of [undefined, {}, [1], [{ revision: 'x', status: 's', chart: 'c' }], [{ revision: 1 }]])
    expect(readReleases(strange, instant)).toBeUndefined();
});

test('a release that is not there', () => {
  const end = { exitCode: 1, timedOut: false, stdout: '', dropped: 0 };
  expect(isAbsent({ ...end, stderr: 'Error: uninstall: Release not loaded: web: release: not found' })).toBe(true);
  expect(isAbsent({ ...end, stderr: 'Error: Kubernetes cluster unreachable' })).toBe(false);
});

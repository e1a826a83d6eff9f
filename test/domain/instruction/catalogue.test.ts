import { describe, expect, test } from 'vitest';
import { catalogue, kindOf } from '../../../src/domain/instruction/catalogue.js';
import type { Work } from '../../../src/domain/instruction/kinds/kind.js';
import { instructionTypes } from '../../../src/domain/instruction/model.js';

test('A8, D1: the table of kinds', () => {
  const lines = catalogue.map(({ type, scheduling, mayBeEmpty, maxPayloadBytes, read }) => {
    const { lanes, slot, deadlineMs, repeat } = scheduling;
    const payload = `${maxPayloadBytes / 1024}K${mayBeEmpty ? '?' : ''}`;
    return [type, lanes.join('+') || '-', slot, deadlineMs ?? '-', repeat, payload, read === undefined ? 'later' : 'built'].join(
      ' ',
    );
  });
  expect(lines.join('\n')).toBe(`SET_VPN_PEERS overlay urgent 60000 repeat 4096K built
GET_NODE_STATUS - read 10000 read 256K built
GET_CLUSTER_JOIN_CMD kubeadm work 90000 repeat 256K built
APPLY_OPERATOR cr/* work 300000 repeat 4096K built
APPLY_CR cr/* work 300000 repeat 4096K built
DELETE_CR cr/* work 120000 repeat 256K built
RUN_KUBECTL_COMMAND kubectl work 900000 never 256K built
RUN_REMOTE_SCRIPT - script 3600000 never 256K built
INSTALL_HELM_CHART helm/* work 900000 probe 256K built
UNINSTALL_HELM_CHART helm/* work 900000 repeat 256K built
RUN_WEB_REQUEST - work 30000 never 256K built
UNINSTALL_NODE * urgent - never 256K? built
REINSTALL_NODE * urgent - never 256K built
REMOVE_ETCD_MEMBER etcd work 120000 probe 256K built
UPDATE_DNSMASQ dnsmasq work 60000 probe 4096K built
UPGRADE_NODE_K8S k8s-packages+kubeadm+etcd+kubectl work 3600000 probe 256K built
VIP_ASSIGN vip urgent 4000 never 256K built
VIP_RELEASE vip urgent 2500 never 256K built
RESTART_SERVICE agent urgent 60000 never 256K? built`);
});

test('every type has one entry', () => {
  expect(catalogue.map(({ type }) => type).sort()).toEqual([...instructionTypes].sort());
  for (const type of instructionTypes) expect(kindOf(type)?.type).toBe(type);
  expect(kindOf('CANCEL')).toBeUndefined();
});

test('failures have the form of their kind', () => {
  const forms = Object.fromEntries(catalogue.map(({ type, failure }) => [type, failure('x')]));
  const { VIP_ASSIGN, UPGRADE_NODE_K8S, ...others } = forms;
  expect(VIP_ASSIGN).toEqual({ kind: 'none' });
  const value = { success: false, message: 'x', previousVersion: '', newVersion: '' };
  expect(UPGRADE_NODE_K8S).toEqual({ kind: 'json', type: 'UPGRADE_NODE_K8S_RESPONSE', value });
  for (const form of Object.values(others)) expect(form).toEqual({ kind: 'error', text: 'x' });
});

function read(type: string, payload: unknown): Work | string {
  const result = kindOf(type)?.read?.(payload, { yaml: (text) => JSON.parse(text) });
  if (result === undefined) return 'not built';
  return 'work' in result ? result.work : result.problem;
}

const b64 = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64');
const object = (metadata: object) => [{ apiVersion: 'v1', kind: 'Thing', metadata }];

describe('APPLY_CR, APPLY_OPERATOR, DELETE_CR', () => {
  test.each<[string, unknown, readonly string[], number]>([
    ['APPLY_CR', { crB64: b64(object({ name: 'a', namespace: 'a' })) }, ['cr/a/a'], 120_000],
    ['APPLY_CR', { crB64: b64(object({ name: 'a', namespace: 'b' })) }, ['cr/*'], 300_000],
    ['APPLY_CR', { crB64: b64(object({ name: 'a' })) }, ['cr/*'], 300_000],
    [
      'APPLY_CR',
      { crB64: b64([null, ...object({ name: 'a', namespace: 'a' }), ...object({ name: 'b', namespace: 'b' })]) },
      ['cr/a/a', 'cr/b/b'],
      120_000,
    ],
    ['APPLY_OPERATOR', { crdB64: b64(object({ name: 'a', namespace: 'a' })) }, ['cr/*'], 300_000],
    ['DELETE_CR', { type: 'volumes', id: 'a' }, ['cr/a/a'], 120_000],
  ])('D1: %s %j', (type, payload, lanes, deadlineMs) => {
    expect(read(type, payload)).toMatchObject({ lanes, deadlineMs, repeat: 'repeat', slot: 'work' });
  });

  test.each<[string, unknown, string]>([
    ['APPLY_CR', {}, 'crB64: base64 of YAML'],
    ['APPLY_CR', { crB64: 'a' }, 'crB64: no padded base64'],
    ['APPLY_CR', { crB64: Buffer.from([0xff]).toString('base64') }, 'crB64: no UTF-8 in the base64'],
    ['APPLY_CR', { crB64: b64('[]') }, 'crB64: there is nothing in it'],
    ['APPLY_CR', { crB64: b64([{ kind: 'x' }]) }, 'crB64: document 1: it has no apiVersion and kind'],
    [
      'APPLY_CR',
      { crB64: b64(object({ generateName: 'a-' })) },
      'crB64: document 1: an object with metadata.generateName is another one each time: give it a name',
    ],
    ['APPLY_OPERATOR', { crdB64: b64('{') }, "crdB64: Expected property name or '}' in JSON at position 1 (line 1 column 2)"],
    ['DELETE_CR', { type: 'volumes', id: '-a' }, 'id: a name of Kubernetes'],
    ['DELETE_CR', { type: '--all', id: 'a' }, 'type: the plural of a resource, such as volumes'],
  ])('%s %j is refused', (type, payload, problem) => {
    expect(read(type, payload)).toBe(problem);
  });

  test('what is too large to be parsed is taken for one that touches everything', () => {
    const large = `a: b\n${' '.repeat(600 * 1024)}`;
    expect(read('APPLY_CR', { crB64: b64(large) })).toMatchObject({ lanes: ['cr/*'] });
    expect(read('APPLY_CR', { crB64: b64(`${large}\n  generateName: x`) })).toContain('give it a name');
  });
});

describe('RUN_KUBECTL_COMMAND', () => {
  test.each<[readonly string[], object]>([
    [['get', 'pods'], { plan: { do: 'kubectl', verb: 'get', timeoutMs: 120_000 }, lanes: [], slot: 'read', repeat: 'read' }],
    [['cordon', 'a'], { plan: { do: 'kubectl', timeoutMs: 900_000 }, lanes: ['kubectl'], slot: 'work', repeat: 'repeat' }],
    [['create', 'ns', 'a'], { plan: { do: 'kubectl_once', argv: ['create', 'ns', 'a'] }, lanes: ['kubectl'], repeat: 'never' }],
  ])('%j', (argv, expected) => {
    expect(read('RUN_KUBECTL_COMMAND', argv)).toMatchObject(expected);
  });

  test.each<[unknown, string]>([
    [{}, 'payload: a list of arguments'],
    [[], 'payload: at least one argument'],
    [['a\0b'], '0: text without NUL'],
    [[1], '0: text'],
    [['logs', '-f', 'a'], 'kubectl logs -f does not end by itself'],
  ])('%j is refused', (argv, problem) => {
    expect(read('RUN_KUBECTL_COMMAND', argv)).toBe(problem);
  });
});

describe('INSTALL_HELM_CHART, UNINSTALL_HELM_CHART', () => {
  const install = { repoUrl: 'https://charts.test', myRepoName: 'r', myChartName: 'web', chartName: 'nginx', namespace: 'ns' };

  test('D1: the lane is the release', () => {
    expect(read('INSTALL_HELM_CHART', { ...install, valuesUrl: '', version: '1.2.3' })).toMatchObject({
      plan: {
        do: 'helm_install',
        release: 'web',
        namespace: 'ns',
        repoUrl: 'https://charts.test',
        chart: 'nginx',
        version: '1.2.3',
        valuesUrl: '',
      },
      lanes: ['helm/ns/web'],
      repeat: 'probe',
    });
    expect(read('UNINSTALL_HELM_CHART', { myRepoName: '', myChartName: 'web', namespace: 'ns' })).toMatchObject({
      plan: { do: 'helm_uninstall', release: 'web', namespace: 'ns' },
      lanes: ['helm/ns/web'],
      repeat: 'repeat',
    });
  });

  test.each<[object, string]>([
    [{ repoUrl: 'http://charts.test' }, 'repoUrl: a URL with https or oci'],
    [{ repoUrl: 'file:///etc' }, 'repoUrl: a URL with https or oci'],
    [{ repoUrl: 'https://a b' }, 'repoUrl: a URL with https or oci'],
    [{ myRepoName: '-r' }, 'myRepoName: a name of a-z, 0-9, ., _ and -, not with - first'],
    [{ myChartName: '--post-renderer' }, 'myChartName: a name of a-z, 0-9, ., _ and -, not with - first'],
    [{ chartName: 'a/b' }, 'chartName: a name of a-z, 0-9, ., _ and -, not with - first'],
    [{ namespace: 'A' }, 'namespace: a name of a-z, 0-9, ., _ and -, not with - first'],
    [{ namespace: 'a'.repeat(254) }, 'namespace: a name of a-z, 0-9, ., _ and -, not with - first'],
    [{ valuesUrl: 'http://x' }, 'valuesUrl: a URL with https'],
    [{ version: '--devel' }, 'version: a version'],
    [{ version: '1;2' }, 'version: a version'],
  ])('%j is refused', (changed, problem) => {
    expect(read('INSTALL_HELM_CHART', { ...install, ...changed })).toBe(problem);
  });
});

describe('RUN_REMOTE_SCRIPT', () => {
  test.each<[object, object]>([
    [{ script: 'a' }, { lanes: [], deadlineMs: 900_000, waiterMs: 900_000, repeat: 'never', slot: 'script' }],
    [{ script: 'a', timeoutSeconds: 0 }, { deadlineMs: 900_000 }],
    [{ script: 'a', timeoutSeconds: -5 }, { deadlineMs: 900_000 }],
    [
      { script: 'a', timeoutSeconds: 1 },
      { deadlineMs: 1_000, plan: { timeoutMs: 1_000 } },
    ],
    [{ script: 'a', timeoutSeconds: 99_999 }, { deadlineMs: 3_600_000 }],
    [{ script: 'a', lane: 'x' }, { lanes: ['script/x'] }],
    [{ script: 'a', lane: '' }, { lanes: [] }],
    [{ script: 'a', repeatable: true }, { repeat: 'repeat' }],
    // In the background it runs once, whatever is said.
    [
      { script: 'a', repeatable: true, runInBackground: true },
      { repeat: 'never', plan: { background: true } },
    ],
    [
      { script: '/t/a/b.sh', params: null, sha256: '' },
      { subject: { kind: 'script', name: '/t/a/b.sh' }, plan: { params: {}, sha256: undefined } },
    ],
    [{ script: 'a', params: { x: [1] }, sha256: 'AB'.repeat(32) }, { plan: { params: { x: [1] }, sha256: 'ab'.repeat(32) } }],
  ])('%j', (payload, expected) => {
    expect(read('RUN_REMOTE_SCRIPT', payload)).toMatchObject(expected);
  });

  test.each<[unknown, string]>([
    [undefined, 'payload: Invalid input: expected object, received undefined'],
    [[], 'payload: Invalid input: expected object, received array'],
    [{}, 'script: text'],
    [{ script: 'a..b' }, 'script: a script name without ..'],
    [{ script: 'a?b' }, 'script: a script name: letters, digits, _ . - and /'],
    [{ script: 'a', sha256: 'x' }, 'sha256: 64 hex digits'],
    [{ script: 'a', lane: '*' }, 'lane: a lane: 1 to 64 letters, digits, _ . -'],
    [{ script: 'a', timeoutSeconds: 1.5, runInBackground: 1 }, 'runInBackground: true or false; timeoutSeconds: a whole number'],
  ])('%j is refused: %s', (payload, problem) => {
    expect(read('RUN_REMOTE_SCRIPT', payload)).toBe(problem);
  });
});

test.each([
  ['', 'GET', 'read', 'read'],
  ['get', 'GET', 'read', 'read'],
  ['HEAD', 'HEAD', 'read', 'read'],
  ['OPTIONS', 'OPTIONS', 'read', 'read'],
  ['POST', 'POST', 'work', 'never'],
  ['DELETE', 'DELETE', 'work', 'never'],
])('A8, D1: RUN_WEB_REQUEST %j is %s of class %s', (method, expected, slot, repeat) => {
  expect(read('RUN_WEB_REQUEST', { url: 'x', method })).toMatchObject({ slot, repeat, plan: { method: expected } });
});

test('RESTART_SERVICE has a default', () => {
  expect(read('RESTART_SERVICE', {})).toMatchObject({ plan: { do: 'restart_service', delaySeconds: 2 } });
  expect(read('RESTART_SERVICE', { delaySeconds: 61 })).toBe('delaySeconds: at most 60');
});

describe('UPGRADE_NODE_K8S: versions are checked before anything runs', () => {
  const good = { targetKubernetesVersion: '1.33.4', kubeRepoVersion: 'v1.33', isFirstCp: true };
  test.each<[object, object]>([
    [good, { kubernetes: '1.33.4', containerd: '', helm: '', isFirstControlPlane: true }],
    [{ targetKubernetesVersion: 'v1.33.4' }, { kubernetes: '1.33.4', isFirstControlPlane: false }],
    [{ ...good, kubeRepoVersion: '' }, { kubernetes: '1.33.4' }],
    [
      { ...good, targetContainerdVersion: '1.7.27', targetHelmVersion: 'v3.18.3' },
      { containerd: '1.7.27', helm: '3.18.3' },
    ],
    [
      { ...good, targetContainerdVersion: '', targetHelmVersion: null },
      { containerd: '', helm: '' },
    ],
  ])('%j', (payload, plan) => {
    expect(read('UPGRADE_NODE_K8S', payload)).toMatchObject({ plan: { do: 'upgrade_node', ...plan } });
  });

  const bad = [
    '',
    '1.33',
    '1.33.4-1.1',
    '1.33.4 ',
    '1.33.4\n',
    '1.33.x',
    '1.33.4;reboot',
    '$(reboot)',
    '-1.33.4',
    '1.33.4444',
    '١.33.4',
  ];
  test.each(bad)('%j is no version of Kubernetes', (targetKubernetesVersion) => {
    expect(read('UPGRADE_NODE_K8S', { ...good, targetKubernetesVersion })).toMatch(/targetKubernetesVersion/);
  });
  test.each(bad.slice(1))('%j is none of containerd or helm', (text) => {
    expect(read('UPGRADE_NODE_K8S', { ...good, targetContainerdVersion: text })).toMatch(/targetContainerdVersion/);
    expect(read('UPGRADE_NODE_K8S', { ...good, targetHelmVersion: text })).toMatch(/targetHelmVersion/);
  });
  test.each(['v1.32', '1.33/../../x', 'main', '1.33.4'])('%j is not the repository of 1.33.4', (kubeRepoVersion) => {
    expect(read('UPGRADE_NODE_K8S', { ...good, kubeRepoVersion })).toMatch(/kubeRepoVersion/);
  });
  test('none at all', () => expect(read('UPGRADE_NODE_K8S', {})).toMatch(/targetKubernetesVersion/));
});

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
GET_CLUSTER_JOIN_CMD kubeadm work 90000 repeat 256K later
APPLY_OPERATOR cr/* work 300000 repeat 4096K later
APPLY_CR cr/* work 300000 repeat 4096K later
DELETE_CR cr/* work 120000 repeat 256K later
RUN_KUBECTL_COMMAND kubectl work 900000 never 256K later
RUN_REMOTE_SCRIPT - script 3600000 never 256K built
INSTALL_HELM_CHART helm/* work 900000 probe 256K later
UNINSTALL_HELM_CHART helm/* work 900000 repeat 256K later
RUN_WEB_REQUEST - work 30000 never 256K built
UNINSTALL_NODE * urgent - never 256K? later
REINSTALL_NODE * urgent - never 256K later
REMOVE_ETCD_MEMBER etcd work 120000 probe 256K later
UPDATE_DNSMASQ dnsmasq work 60000 probe 4096K later
UPGRADE_NODE_K8S k8s-packages+kubeadm+etcd+kubectl work 3600000 probe 256K later
VIP_ASSIGN vip urgent 4000 never 256K later
VIP_RELEASE vip urgent 2500 never 256K later
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
  const result = kindOf(type)?.read?.(payload);
  if (result === undefined) return 'not built';
  return 'work' in result ? result.work : result.problem;
}

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
      { script: '/t/a/b.sh', plan: { params: {}, sha256: undefined } },
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

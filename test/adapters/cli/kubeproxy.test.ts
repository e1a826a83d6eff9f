import { expect, test } from 'vitest';
import type { BalancerStatus } from '../../../src/ports/driving/api-balancer.js';
import { nodeCliRig } from '../../support/node-cli-rig.js';

const serving: BalancerStatus = {
  ...{ state: 'serving', port: 6_446, reloads: 1, changes: 4 },
  servers: [
    { name: 'api-1', endpoint: '10.0.0.1:6443', state: 'up', sessions: 12 },
    { name: 'api-2', endpoint: '[fd00::2]:6443', state: 'draining', sessions: 1 },
  ],
};
const shown = `SERVER  ENDPOINT        STATE     CONNECTIONS
api-1   10.0.0.1:6443   up        12
api-2   [fd00::2]:6443  draining  1
`;

test.each(['list', 'refresh'])('kubeproxy %s shows each server', async (verb) => {
  const { cli, apiBalancer } = await nodeCliRig();
  apiBalancer.current = serving;
  expect(await cli(['kubeproxy', verb])).toEqual({ code: 0, out: shown, err: 'balanced on port 6446\n' });
  const { out } = await cli(['kubeproxy', verb, '-o', 'json']);
  expect(JSON.parse(out)).toEqual(serving);
});

test('code 4 when it fails, or a server is down', async () => {
  const { cli, apiBalancer } = await nodeCliRig();
  apiBalancer.current = { ...serving, state: 'failing' };
  expect((await cli(['kubeproxy', 'list'])).code).toBe(4);
  apiBalancer.current = { ...serving, servers: [{ name: 'api-1', endpoint: '10.0.0.1:6443', state: 'down', sessions: 0 }] };
  expect((await cli(['kubeproxy', 'list'])).code).toBe(4);
});

test('a machine without HAProxy, and a control plane without a list', async () => {
  const { cli, apiBalancer } = await nodeCliRig();
  expect(await cli(['kubeproxy', 'list'])).toMatchObject({ code: 0, out: 'this machine has no HAProxy\n' });
  apiBalancer.current = { ...serving, state: 'waiting', servers: [] };
  expect(await cli(['kubeproxy', 'list'])).toMatchObject({ code: 0, out: 'the control plane has named no API servers yet\n' });
});

test('G1: a refresh is in the audit log, a list is not', async () => {
  const { cli, audit } = await nodeCliRig();
  await cli(['kubeproxy', 'list']);
  await cli(['kubeproxy', 'refresh']);
  expect(audit.records).toMatchObject([
    { type: 'admin.refresh', tag: 'kubeproxy', line: 'decision', result: 'allowed' },
    { type: 'admin.refresh', tag: 'kubeproxy', line: 'outcome', result: 'done' },
  ]);
});

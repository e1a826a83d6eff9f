import { expect, test } from 'vitest';
import { UpgradeLines } from '../../../src/app/fleet/upgrade-lines.js';
import type { NodeSession } from '../../../src/app/link/node-session.js';
import { payloadOf } from '../../../src/domain/link/payload.js';

function received(...messages: readonly { readonly type: string; readonly jsonB64: string }[]) {
  const told: string[] = [];
  const lines = new UpgradeLines({ nodelog: (nid, { severity, message }) => void told.push(`${nid} ${severity} ${message}`) });
  const session = { identity: { nid: 'n1' } } as NodeSession;
  const taken = messages.map((message) => lines.received(session, { tag: 't', ...message }));
  return { told, taken };
}
const line = (value: unknown) => ({ type: 'UpgradeNodeK8sLog', jsonB64: payloadOf(value) });

test('a line becomes an event of its node: 1 info, 2 warning, 3 error', () => {
  const { told } = received(...[1, 2, 3, 77].map((severity) => line({ message: 'kubeadm: done', severity })));
  expect(told).toEqual(['info', 'warning', 'failure', 'info'].map((severity) => `n1 ${severity} upgrade: kubeadm: done`));
});

test('what is no line is dropped, and other messages are somebody else’s', () => {
  const bad = [{}, [], null, 'x', { message: 1, severity: 1 }, { message: 'x' }, { message: 'x'.repeat(30_000), severity: 1 }];
  const { told, taken } = received(...bad.map(line), { type: 'UpgradeNodeK8sLog', jsonB64: '%' });
  expect([told, new Set(taken)]).toEqual([[], new Set([true])]);
  expect(received({ type: 'UPGRADE_NODE_K8S_RESPONSE', jsonB64: '' }).taken).toEqual([false]);
});

import { expect, test } from 'vitest';
import { NodeCallsService } from '../../../src/app/link/node-calls-service.js';
import { aid, nid, registrationId } from '../../../src/domain/link/model.js';
import type { PeerNode } from '../../../src/ports/driving/node-streams.js';

const node: PeerNode = {
  identity: { role: 'node', aid: aid('acme'), nid: nid('n1'), registration: registrationId('r1') },
  serial: '1',
  notAfter: 0,
  address: '127.0.0.1:1',
};
const options = { signal: new AbortController().signal };
const entry = { type: '', severity: 'info', message: 'm', code: '', cause: '', remedy: '', docsUrl: '' } as const;
const progress = { stepCompleted: 1, errorAtStep: 0, errorMessage: '' };
const reply = { type: 'X', tag: 't', jsonB64: '' };

test('knows no peers and no API servers, and passes news on', async () => {
  const news: unknown[] = [];
  const service = new NodeCallsService({
    status: ({ identity }, status) => news.push([identity.nid, status]),
    nodelog: (_, line) => news.push(line),
    installProgress: (_, made) => news.push(made),
    uploaded: async (_, message) => void news.push(message),
  });
  expect([await service.controlPlaneNodes(), await service.manualSync()]).toEqual([[], []]);
  await service.updateStatus(node, 'READY');
  await service.addNodelog(node, entry);
  await service.installProgress(node, progress);
  await service.uploaded(node, reply, options);
  expect(news).toEqual([['n1', 'READY'], entry, progress, reply]);
});

test('what nobody wants to know goes nowhere', async () => {
  const service = new NodeCallsService({});
  await service.updateStatus(node, 'READY');
  await service.addNodelog(node, entry);
  await service.installProgress(node, progress);
  await service.uploaded(node, reply, options);
});

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

const nobody = { sync: async () => ({ peers: [], address: '' }) };

test('asks for API servers and peers where they are known, and passes news on', async () => {
  const news: unknown[] = [];
  const peers = { sync: async () => ({ peers: [], address: '10.78.0.1/16' }) };
  const tell = {
    status: ({ identity }: PeerNode, status: string) => news.push([identity.nid, status]),
    nodelog: (_: PeerNode, line: unknown) => news.push(line),
    installProgress: (_: PeerNode, made: unknown) => news.push(made),
    uploaded: async (_: PeerNode, message: unknown) => void news.push(message),
  };
  const service = new NodeCallsService(tell, peers, (aid) => [{ vpnIp: aid, kubeEndpoint: 'e' }]);
  const self = { pubKey: 'k', endpointIp: '', ip: '', extraAllowedIps: [] };
  expect(await service.controlPlaneNodes(node)).toEqual([{ vpnIp: 'acme', kubeEndpoint: 'e' }]);
  expect(await service.manualSync(node, self, true, options)).toEqual({ peers: [], address: '10.78.0.1/16' });
  await service.updateStatus(node, 'READY');
  await service.addNodelog(node, entry);
  await service.installProgress(node, progress);
  await service.uploaded(node, reply, options);
  expect(news).toEqual([['n1', 'READY'], entry, progress, reply]);
});

test('what nobody wants to know goes nowhere', async () => {
  const service = new NodeCallsService({}, nobody, () => []);
  await service.updateStatus(node, 'READY');
  await service.addNodelog(node, entry);
  await service.installProgress(node, progress);
  await service.uploaded(node, reply, options);
});

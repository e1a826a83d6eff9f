import { mkdir, rm, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { ApiNodeRoles } from '../../../src/adapters/kubernetes/api-node-roles.js';
import { nodeRolesContract } from '../../contract/node-roles.contract.js';
import { tempFolder } from '../../support/temp-folder.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';

const pki = new ThrowawayPki('kubernetes root');
// As kubeadm's: the name, and not 127.0.0.1.
const api = pki.issue({ name: 'kube-apiserver', san: ['DNS:kubernetes', 'DNS:localhost'], usage: 'serverAuth' });
const admin = pki.issue({ name: 'kubernetes-admin' });
const signal = AbortSignal.timeout(60_000);
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});
afterAll(() => pki.remove());

const taint = { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' };
const node = (taints: readonly object[] = [taint]) => ({
  kind: 'Node',
  spec: { taints },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
});
const b64 = (text: string) => Buffer.from(text).toString('base64');

function kubeconfig(server: string, files = false): string {
  const user = files
    ? { 'client-certificate': 'pki/admin.crt', 'client-key': 'pki/admin.key' }
    : { 'client-certificate-data': b64(admin.certificate), 'client-key-data': b64(admin.privateKey) };
  return JSON.stringify({
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server, 'certificate-authority-data': b64(pki.root) } }],
    users: [{ name: 'u', user }],
  });
}

async function machine() {
  const folder = await tempFolder();
  const asked: string[] = [];
  let answer: RequestListener = (_, response) => void response.end(JSON.stringify(node()));
  const server = createServer(
    { cert: api.certificate, key: api.privateKey, ca: pki.root, requestCert: true, rejectUnauthorized: true },
    (request, response) => {
      const peer = (request.socket as TLSSocket).getPeerCertificate();
      asked.push(`${request.method} ${request.url} ${peer.subject.CN}`);
      answer(request, response);
    },
  );
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const path = (name: string) => join(folder, name);
  const roles = new ApiNodeRoles({
    apiServerManifest: path('kube-apiserver.yaml'),
    adminConfig: path('admin.conf'),
    kubeletConfig: path('kubelet.conf'),
    localApi: { host: '127.0.0.1', port },
    nodeName: 'db1',
  });
  return {
    roles,
    asked,
    folder,
    port,
    write: (name: string, text: string) => writeFile(path(name), text),
    answers: (listener: RequestListener) => {
      answer = listener;
    },
    becomeControlPlane: async () => {
      answer = (_, response) => void response.end(JSON.stringify(node()));
      await writeFile(path('kube-apiserver.yaml'), 'kind: Pod');
      // The load balancer that it names is never asked.
      await writeFile(path('admin.conf'), kubeconfig('https://lb.invalid:6446'));
    },
  };
}

nodeRolesContract('ApiNodeRoles', async () => {
  const { roles, becomeControlPlane, answers } = await machine();
  return {
    roles,
    becomeControlPlane,
    breakDown: async () => answers((_, response) => void response.writeHead(503).end()),
    fallSilent: async () => answers(() => {}),
  };
});

describe('ApiNodeRoles', () => {
  test('a control plane asks its own API server, with its certificate, once', async () => {
    const { roles, asked, becomeControlPlane } = await machine();
    await becomeControlPlane();
    expect(await roles.read({ signal })).toEqual({ isCp: true, isWorker: false, status: 'ready' });
    expect(asked).toEqual(['GET /api/v1/nodes/db1 kubernetes-admin']);
  });

  test('a worker asks the server of its kubeconfig; files beside it are read', async () => {
    const { roles, write, folder, port, answers } = await machine();
    await mkdir(join(folder, 'pki'));
    await write('pki/admin.crt', admin.certificate);
    await write('pki/admin.key', admin.privateKey);
    answers((_, response) => void response.end(JSON.stringify(node([]))));
    await write('kubelet.conf', kubeconfig(`https://localhost:${port}`, true));
    expect(await roles.read({ signal })).toEqual({ isCp: false, isWorker: true, status: 'ready' });
    // The certificate has no address.
    await write('kubelet.conf', kubeconfig(`https://127.0.0.1:${port}`, true));
    await expect(roles.read({ signal })).rejects.toThrow(/altnames|127\.0\.0\.1/);
    await rm(join(folder, 'kubelet.conf'));
    expect((await roles.read({ signal })).status).toBe('not_installed');
  });

  test.each([
    { name: 'another status', listener: 403, problem: 'the API server answers 403' },
    { name: 'no JSON', listener: 'nonsense', problem: 'admin.conf' },
    { name: 'null', listener: 'null', problem: 'the API server answers no Node' },
    { name: 'too much', listener: 'x'.repeat(1024 * 1024 + 1), problem: 'more than 1048576 bytes' },
  ])('$name is named', async ({ listener, problem }) => {
    const { roles, answers, becomeControlPlane } = await machine();
    await becomeControlPlane();
    answers((_, response) => void (typeof listener === 'number' ? response.writeHead(listener).end() : response.end(listener)));
    await expect(roles.read({ signal })).rejects.toThrow(problem);
  });

  test.each([
    { name: 'no kubeconfig', text: undefined, problem: 'admin.conf is not there' },
    { name: 'no YAML', text: '{', problem: 'admin.conf' },
    { name: 'empty', text: '', problem: 'the file is no mapping' },
    { name: 'another context', text: '{"current-context": "x", "contexts": []}', problem: 'it has no context x' },
  ])('a kubeconfig with $name is named', async ({ text, problem }) => {
    const { roles, write, folder, becomeControlPlane } = await machine();
    await becomeControlPlane();
    if (text === undefined) await rm(join(folder, 'admin.conf'));
    else await write('admin.conf', text);
    await expect(roles.read({ signal })).rejects.toThrow(problem);
  });
});

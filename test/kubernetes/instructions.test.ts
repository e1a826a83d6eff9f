import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../system/support/daemon.js';
import { Fleet } from '../system/support/fleet.js';
import { until } from '../system/support/fleet-daemon.js';
import { binaries, ChartRepository, Cluster } from './cluster.js';

const run = promisify(execFile);
const b64 = (text: string) => Buffer.from(text).toString('base64');

let stack: AsyncDisposableStack;
let fleet: Fleet;
let cluster: Cluster;
let repository: ChartRepository;

/** In the agent's own mount namespace the programs are in PATH, and the repository's root is one of the machine's. */
const WITHIN =
  'mount --make-rprivate / && mount --bind "$0/bin" /usr/local/bin && mount --bind "$0/roots.crt" /etc/ssl/certs/ca-certificates.crt && exec "$@"';

beforeAll(async () => {
  stack = new AsyncDisposableStack();
  const { path: folder } = stack.use(await temporaryFolder());
  await mkdir(join(folder, 'bin'));
  for (const name of ['kubectl', 'helm', 'kubeadm']) await symlink(join(binaries(), name), join(folder, 'bin', name));
  await makeCertificate(folder);
  await writeFile(
    join(folder, 'roots.crt'),
    (await readFile('/etc/ssl/certs/ca-certificates.crt', 'utf8')) + (await readFile(join(folder, 'charts/server.crt'), 'utf8')),
  );
  fleet = stack.use(await Fleet.start({ agentsWithin: ['unshare', '-m', 'sh', '-c', WITHIN, folder] }));
  const { daemon } = fleet.agent();
  cluster = stack.use(await Cluster.start(daemon.space, daemon.root));
  await makeCharts(join(folder, 'charts'));
  repository = stack.use(await ChartRepository.start(fleet.network.hub, join(folder, 'charts')));
});
afterAll(() => stack.disposeAsync());

async function makeCertificate(folder: string): Promise<void> {
  const charts = join(folder, 'charts');
  await mkdir(charts);
  const subject = ['-subj', '/CN=charts', '-addext', 'subjectAltName=IP:10.77.0.1'];
  const files = ['-keyout', join(charts, 'server.key'), '-out', join(charts, 'server.crt')];
  await run('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...subject, ...files]);
}

async function makeCharts(folder: string): Promise<void> {
  const source = join(folder, 'web');
  await mkdir(join(source, 'templates'), { recursive: true });
  await writeFile(
    join(source, 'templates/map.yaml'),
    'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: {{ .Release.Name }} }\ndata: { said: "{{ .Values.said }}" }\n',
  );
  await writeFile(join(source, 'values.yaml'), 'said: nothing\n');
  for (const version of ['1.0.0', '1.1.0']) {
    await writeFile(join(source, 'Chart.yaml'), `apiVersion: v2\nname: web\nversion: ${version}\n`);
    await cluster.helm('package', source, '--destination', folder);
  }
  await cluster.helm('repo', 'index', folder);
  await writeFile(join(folder, 'values.yaml'), 'said: hello\n');
}

/** What the agent answered. */
async function answer(type: string, payload: object): Promise<{ readonly type: string; readonly reply: unknown }> {
  const { nid } = fleet.agent();
  const { tag } = await fleet.send(nid, type, payload);
  const { state, reply } = await fleet.resultOf(nid, tag);
  return { type: String(state), reply };
}

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: volumes.runos.com }
spec:
  group: runos.com
  scope: Namespaced
  names: { plural: volumes, singular: volume, kind: Volume }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
`;
const namespace = 'apiVersion: v1\nkind: Namespace\nmetadata: { name: a1 }\n';
const volume = 'apiVersion: runos.com/v1\nkind: Volume\nmetadata: { name: a1, namespace: a1 }\nspec: { size: 1 }\n';

test('an operator, a custom resource of it, and its end', async () => {
  expect((await answer('APPLY_OPERATOR', { crdB64: b64(`${crd}---\n${namespace}`) })).reply).toEqual({});
  await cluster.kubectl('wait', '--for=condition=Established', 'crd/volumes.runos.com', '--timeout=20s');
  expect((await answer('APPLY_CR', { crB64: b64(volume) })).reply).toEqual({});
  expect(await cluster.kubectl('get', 'volume', 'a1', '-n', 'a1', '-o', 'jsonpath={.spec.size}')).toBe('1');
  expect((await answer('DELETE_CR', { type: 'volumes', id: 'a1' })).reply).toEqual({});
  expect(await cluster.kubectl('get', 'volume', '-n', 'a1', '-o', 'name')).toBe('');
  // Absent is success.
  expect((await answer('DELETE_CR', { type: 'volumes', id: 'a1' })).reply).toEqual({});
  expect((await answer('APPLY_CR', { crB64: b64(volume.replace('Volume', 'Nothing')) })).reply).toMatch(
    /^kubectl: exit code 1: .*no matches for kind "Nothing"/s,
  );
});

describe('RUN_KUBECTL_COMMAND', () => {
  test('reads, converging verbs, and those that run once', async () => {
    expect((await answer('RUN_KUBECTL_COMMAND', ['get', 'ns', 'kube-system', '-o', 'name'])).reply).toEqual({
      response: 'namespace/kube-system\n',
    });
    expect((await answer('RUN_KUBECTL_COMMAND', ['create', 'ns', 'once'])).reply).toEqual({
      response: 'namespace/once created\n',
    });
    expect((await answer('RUN_KUBECTL_COMMAND', ['label', 'ns', 'once', 'a=b', '--overwrite'])).reply).toEqual({
      response: expect.stringContaining('labeled'),
    });
    expect((await answer('RUN_KUBECTL_COMMAND', ['create', 'ns', 'once'])).reply).toMatch(/AlreadyExists|already exists/);
    expect(await cluster.kubectl('get', 'ns', 'once', '-o', 'jsonpath={.metadata.labels.a}')).toBe('b');
  });

  test('A4: one that runs once goes on when the agent is killed, and its end is answered', async () => {
    const { nid, daemon } = fleet.agent();
    const script = ['wait', '--for=condition=Never', 'ns/once', '--timeout=3s'];
    const { tag } = await fleet.send(nid, 'RUN_KUBECTL_COMMAND', [
      'patch',
      'ns',
      'once',
      '-p',
      '{"metadata":{"labels":{"p":"q"}}}',
    ]);
    await daemon.stop('SIGKILL');
    await daemon.start();
    const { reply } = await fleet.resultOf(nid, tag);
    expect(JSON.stringify(reply)).toMatch(/patched|INTERRUPTED|NOT_STARTED/);
    expect((await answer('RUN_KUBECTL_COMMAND', script)).reply).toMatch(/^kubectl: exit code 1: /);
  });
});

describe('charts', () => {
  const release = { myRepoName: 'r', myChartName: 'web', namespace: 'charts' };
  const install = (more: object = {}) => ({ ...release, repoUrl: repository.url, chartName: 'web', ...more });
  const said = () => cluster.kubectl('get', 'configmap', 'web', '-n', 'charts', '-o', 'jsonpath={.data.said}');

  test('install, upgrade, uninstall, and once more what is gone', async () => {
    expect((await answer('INSTALL_HELM_CHART', install({ version: '1.0.0' }))).reply).toEqual({
      response: expect.stringContaining('deployed'),
    });
    expect(await said()).toBe('nothing');
    expect((await answer('INSTALL_HELM_CHART', install())).reply).toEqual({ response: expect.stringContaining('REVISION: 2') });
    expect(await cluster.helm('list', '-n', 'charts')).toContain('web-1.1.0');
    expect((await answer('UNINSTALL_HELM_CHART', release)).reply).toEqual({ response: expect.stringContaining('uninstalled') });
    expect((await answer('UNINSTALL_HELM_CHART', release)).reply).toEqual({ response: 'release web in charts is not there' });
    expect(await cluster.helm('list', '-n', 'charts', '-q')).toBe('');
  });

  test('63: a release that a dead helm has left pending is brought back', async () => {
    await answer('INSTALL_HELM_CHART', install({ version: '1.0.0' }));
    // As helm leaves it when it is killed in an upgrade, long ago.
    const secret = await cluster.kubectl('get', 'secret', '-n', 'charts', '-o', 'json', 'sh.helm.release.v1.web.v1');
    const stored = JSON.parse(secret);
    const zipped = Buffer.from(Buffer.from(stored.data.release, 'base64').toString(), 'base64');
    const { gunzipSync, gzipSync } = await import('node:zlib');
    const body = JSON.parse(gunzipSync(zipped).toString());
    Object.assign(body, { version: 2 });
    Object.assign(body.info, { status: 'pending-upgrade', last_deployed: '2020-01-01T00:00:00Z' });
    stored.data.release = b64(gzipSync(JSON.stringify(body)).toString('base64'));
    stored.metadata = {
      name: 'sh.helm.release.v1.web.v2',
      namespace: 'charts',
      labels: { ...stored.metadata.labels, version: '2', status: 'pending-upgrade' },
    };
    const file = join(tmpdir(), `pending-${process.pid}.json`);
    await writeFile(file, JSON.stringify(stored));
    await cluster.kubectl('create', '-f', file);
    expect(await cluster.helm('list', '-n', 'charts')).toContain('pending-upgrade');
    expect((await answer('INSTALL_HELM_CHART', install())).reply).toEqual({ response: expect.stringContaining('deployed') });
    expect(await cluster.helm('list', '-n', 'charts')).toContain('web-1.1.0');
  });

  test('a chart that is not there has the form of its failure', async () => {
    expect((await answer('INSTALL_HELM_CHART', install({ chartName: 'none' }))).reply).toEqual({
      response: expect.stringMatching(/^helm: exit code 1: .*none.* not found/s),
    });
  });

  test('A8: nothing of a run stays in the machine', async () => {
    const { daemon } = fleet.agent();
    await until(
      () => readdir(join(daemon.dataDir, 'run')),
      (names) => names.length === 0,
    );
  });
});

describe('GET_CLUSTER_JOIN_CMD', () => {
  test('for a worker', async () => {
    const { reply } = await answer('GET_CLUSTER_JOIN_CMD', {});
    expect(reply).toEqual({
      joinCmd: expect.stringMatching(/^kubeadm join \S+:6443 --token \S+ +--discovery-token-ca-cert-hash sha256:[0-9a-f]{64}$/),
    });
  });

  test('for a control plane, with certificates that the key opens', async () => {
    const { daemon } = fleet.agent();
    const enc = join(daemon.root, 'etc/kubernetes/enc');
    await writeFile(join(enc, 'key.txt'), 's3cret\n');
    const { reply } = await answer('GET_CLUSTER_JOIN_CMD', { asCp: true });
    const key = (await readFile(join(enc, 'cert-upload-key.txt'), 'utf8')).trim();
    expect(reply).toEqual({
      joinCmd: expect.stringContaining(` --control-plane --certificate-key ${key}`),
      encryptionKey: 's3cret',
    });
    expect((await stat(join(enc, 'cert-upload-key.txt'))).mode & 0o777).toBe(0o600);
    expect(await cluster.kubectl('get', 'secret', 'kubeadm-certs', '-n', 'kube-system', '-o', 'name')).toBe(
      'secret/kubeadm-certs',
    );
    expect((await readdir(tmpdir())).filter((name) => name.startsWith('holdfast-kubeadm-'))).toEqual([]);
  });

  test('A8: neither the key nor a token is in the journal', async () => {
    const { daemon } = fleet.agent();
    const key = (await readFile(join(daemon.root, 'etc/kubernetes/enc/cert-upload-key.txt'), 'utf8')).trim();
    for (const name of await readdir(daemon.dataDir)) {
      if (!name.startsWith('journal.db') && name !== 'audit.log') continue;
      const bytes = await readFile(join(daemon.dataDir, name), 'latin1');
      expect(bytes.includes(key), name).toBe(false);
      expect(bytes.includes(b64(key).slice(4, 40)), name).toBe(false);
    }
  });
});

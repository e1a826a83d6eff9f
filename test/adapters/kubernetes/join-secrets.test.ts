import { chmod, mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { FileJoinSecrets } from '../../../src/adapters/kubernetes/file-join-secrets.js';
import { parseYamlDocuments } from '../../../src/adapters/kubernetes/yaml-documents.js';
import { joinSecretsContract } from '../../contract/join-secrets.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeJoinSecrets } from '../../fakes/fake-join-secrets.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };
const CLUSTER = 'apiVersion: kubeadm.k8s.io/v1beta2\nkind: ClusterConfiguration\nkubernetesVersion: v1.20.2\n';
const INIT = 'apiVersion: kubeadm.k8s.io/v1beta2\nkind: InitConfiguration\nnodeRegistration:\n  name: a\n';

joinSecretsContract('fake', async () => {
  const clock = new FakeClock();
  const secrets = new FakeJoinSecrets(clock);
  return {
    secrets,
    advance: (ms) => clock.advance(ms),
    setEncryptionKey: async (key) => {
      secrets.encryption = key;
    },
    copies: async () => secrets.copies.length,
  };
});

async function files(config: string) {
  const folder = await tempFolder();
  await mkdir(join(folder, 'enc'));
  await writeFile(join(folder, 'kubeadm-config.yaml'), config);
  const secrets = new FileJoinSecrets({
    certificateKeyFile: join(folder, 'enc', 'cert-upload-key.txt'),
    encryptionKeyFile: join(folder, 'enc', 'key.txt'),
    kubeadmConfig: join(folder, 'kubeadm-config.yaml'),
    clock: new SystemClock(),
  });
  return { folder, secrets };
}

joinSecretsContract('files', async () => {
  const { folder, secrets } = await files(CLUSTER);
  const before = await copiesIn();
  const keyFile = join(folder, 'enc', 'cert-upload-key.txt');
  await secrets.certificateKey(options);
  return {
    secrets,
    // The file becomes older: its time is the machine's.
    advance: async (ms) => {
      const { mtimeMs } = await stat(keyFile);
      await utimes(keyFile, (mtimeMs - ms) / 1_000, (mtimeMs - ms) / 1_000);
    },
    setEncryptionKey: (key) => writeFile(join(folder, 'enc', 'key.txt'), `${key}\n`),
    copies: async () => (await copiesIn()) - before,
  };
});

async function copiesIn(): Promise<number> {
  return (await readdir(tmpdir())).filter((name) => name.startsWith('holdfast-kubeadm-')).length;
}

test.each([
  ['an InitConfiguration carries the key', `${CLUSTER}---\n${INIT}`],
  ['one is made where there is none', CLUSTER],
])('%s, in a file of mode 0600', async (_, config) => {
  const { secrets, folder } = await files(config);
  const key = await secrets.certificateKey(options);
  const copy = await secrets.withUploadConfig(
    key,
    async (path) => ({ mode: (await stat(path)).mode & 0o777, text: await readFile(path, 'utf8') }),
    options,
  );
  expect(copy.mode).toBe(0o600);
  const documents = parseAllDocuments(copy.text).map((document) => document.toJS());
  expect(documents.map(({ kind, certificateKey }) => `${kind} ${certificateKey === key}`)).toEqual([
    'ClusterConfiguration false',
    'InitConfiguration true',
  ]);
  expect(documents[1].apiVersion).toBe('kubeadm.k8s.io/v1beta2');
  expect((await stat(join(folder, 'enc', 'cert-upload-key.txt'))).mode & 0o777).toBe(0o600);
  expect(parse(await readFile(join(folder, 'kubeadm-config.yaml'), 'utf8').then((text) => text.split('---')[0] ?? ''))).toEqual(
    parse(CLUSTER),
  );
});

test.each([
  ['no YAML', 'a: [', 'is no YAML'],
  ['nothing of kubeadm', 'kind: Pod\n', 'has no configuration of kubeadm'],
])('%s in the configuration', async (_, config, problem) => {
  const { secrets } = await files(config);
  await expect(secrets.withUploadConfig('k', async () => 1, options)).rejects.toMatchObject({
    code: 'kubernetes.unreadable',
    message: expect.stringContaining(problem),
  });
});

test('a broken key file is replaced, and a folder in its place is named', async () => {
  const { secrets, folder } = await files(CLUSTER);
  await writeFile(join(folder, 'enc', 'cert-upload-key.txt'), 'short');
  expect(await secrets.certificateKey(options)).toMatch(/^[0-9a-f]{64}$/);
  await mkdir(join(folder, 'enc', 'key.txt'));
  await expect(secrets.encryptionKey(options)).rejects.toMatchObject({ code: 'kubernetes.unreadable' });
  await chmod(join(folder, 'enc', 'key.txt'), 0o700);
});

test('YAML for Kubernetes: documents, what is wrong with its line, and no bomb of aliases', () => {
  expect(parseYamlDocuments('a: 1\n---\n---\nb: !!binary YQ==\n')).toMatchObject([{ a: 1 }, null, {}]);
  expect(() => parseYamlDocuments('a: [')).toThrow(/line 1/);
  const bomb = [
    'a: &a [x,x,x,x,x,x,x,x,x]',
    ...'bcdefg'.split('').map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdef'[at]}`).join(',')}]`),
  ];
  expect(() => parseYamlDocuments(bomb.join('\n'))).toThrow(/alias/i);
});

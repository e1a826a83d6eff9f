import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ThrowawayPki } from './throwaway-pki.js';

export interface LegacyWish {
  /** Of the certificate. */
  readonly nid: string;
  readonly aid: string;
  /** `host:port` of the mutual channel. */
  readonly server: string;
  /** More lines of the configuration, from the left edge. */
  readonly more?: string;
}

/** The files of an older agent below `root`, as its registration leaves them. */
export async function legacyMachine(root: string, pki: ThrowawayPki, { nid, aid, server, more = '' }: LegacyWish) {
  const folder = join(root, 'etc/runos');
  await mkdir(folder, { recursive: true });
  // Older than whatever else is issued in the test.
  const { certificate, privateKey } = pki.issue({ name: nid, organization: aid, from: '20250101000000Z', to: '20400101000000Z' });
  const at = {
    config: join(folder, 'config.yaml'),
    certificate: join(folder, 'mtls.crt'),
    privateKey: join(folder, 'mtls.key'),
    ca: join(folder, 'ca.crt'),
    publicCa: join(folder, 'public-ca.crt'),
  };
  await writeFile(at.certificate, certificate);
  await writeFile(at.privateKey, privateKey);
  await writeFile(at.ca, pki.root);
  await writeFile(at.publicCa, 'the root of the registration\n');
  await writeFile(
    at.config,
    `client:
  aid: ${aid}
  server:
    nodeward: ${server}
    installer: https://get.runos.com
    conductor: xxxxx
node: { nid: ${nid}, ip: 10.0.0.7 }
mtls:
  crt: /etc/runos/mtls.crt
  key: /etc/runos/mtls.key
  ca: /etc/runos/ca.crt
  public-ca: /etc/runos/public-ca.crt
unknown: [1, 2]
${more}`,
  );
  for (const path of [at.config, at.privateKey]) await chmod(path, 0o600);
  /** What stands there now, by part. */
  const read = async () =>
    Object.fromEntries(await Promise.all(Object.entries(at).map(async ([part, path]) => [part, await readFile(path, 'utf8')])));
  return { at, read };
}

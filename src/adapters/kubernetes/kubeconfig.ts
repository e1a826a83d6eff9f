import { dirname, isAbsolute, join } from 'node:path';
import { parse } from 'yaml';

/** What a call of the API server needs; PEM. */
export interface KubeAccess {
  readonly server: URL;
  readonly ca: string;
  readonly certificate: string;
  readonly privateKey: string;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The current context of a kubeconfig with a client certificate, as kubeadm writes them. `read` gives the text of files that it names.
 * @throws Error that names what is missing
 */
export async function kubeAccess(path: string, text: string, read: (path: string) => Promise<string>): Promise<KubeAccess> {
  const config = fields(parse(text), 'the file');
  const context = fields(named(config.contexts, config['current-context'], 'context').context, 'the context');
  const cluster = fields(named(config.clusters, context.cluster, 'cluster').cluster, 'the cluster');
  const user = fields(named(config.users, context.user, 'user').user, 'the user');
  const pem = async (from: Fields, name: string) => {
    const data = from[`${name}-data`];
    if (typeof data === 'string') return Buffer.from(data, 'base64').toString('utf8');
    const file = from[name];
    if (typeof file !== 'string') throw new Error(`it has no ${name}`);
    return read(isAbsolute(file) ? file : join(dirname(path), file));
  };
  return {
    server: new URL(String(cluster.server)),
    ca: await pem(cluster, 'certificate-authority'),
    certificate: await pem(user, 'client-certificate'),
    privateKey: await pem(user, 'client-key'),
  };
}

function named(list: unknown, name: unknown, what: string): Fields {
  const found = Array.isArray(list) ? list.find((item) => fields(item, what).name === name) : undefined;
  if (found === undefined) throw new Error(`it has no ${what} ${String(name)}`);
  return fields(found, what);
}

function fields(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null) throw new Error(`${what} is no mapping`);
  return Object.fromEntries(Object.entries(value));
}

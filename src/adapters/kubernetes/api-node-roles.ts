import { access, readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { isIP } from 'node:net';
import { AgentError } from '../../domain/kernel/errors.js';
import { type KubernetesNode, type Roles, rolesOf } from '../../domain/link/roles.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { NodeRoles } from '../../ports/link/node-roles.js';
import { errnoOf } from '../files/errno.js';
import { type KubeAccess, kubeAccess } from './kubeconfig.js';

/** A Node with its images is some 50 KiB. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** In every certificate of an API server that kubeadm makes, where 127.0.0.1 is not. */
const API_NAME = 'kubernetes';
/** What became of a node that has no Kubernetes, and never had. */
const NOT_INSTALLED: Roles = { isCp: false, isWorker: false, status: 'not_installed' };

export interface ApiNodeRolesParts {
  /** Is there on a control plane, and nowhere else. */
  readonly apiServerManifest: string;
  /** `admin.conf`, read on a control plane. */
  readonly adminConfig: string;
  /** `kubelet.conf`, read on other nodes. */
  readonly kubeletConfig: string;
  /** Where a control plane asks: its own API server, whatever its configuration names. */
  readonly localApi: { readonly host: string; readonly port: number };
  /** What Kubernetes calls this node. */
  readonly nodeName: string;
}

/** That it is a control plane is a fact of the machine; the rest says the API server, asked with the certificate of a kubeconfig. */
export class ApiNodeRoles implements NodeRoles {
  readonly #parts: ApiNodeRolesParts;

  constructor(parts: ApiNodeRolesParts) {
    this.#parts = parts;
  }

  async read({ signal }: CallOptions): Promise<Roles> {
    signal.throwIfAborted();
    const { apiServerManifest, adminConfig, kubeletConfig } = this.#parts;
    const isCp = await exists(apiServerManifest);
    const path = isCp ? adminConfig : kubeletConfig;
    const config = await textOf(path);
    if (config === undefined && !isCp) return NOT_INSTALLED;
    if (config === undefined) throw unreadable(`${path} is not there`);
    try {
      const kube = await kubeAccess(path, config, (file) => readFile(file, 'utf8'));
      return rolesOf(await this.#node(kube, isCp, signal), isCp);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof AgentError) throw error;
      throw unreadable(`${path}: ${error instanceof Error ? error.message : String(error)}`, error);
    }
  }

  async #node(kube: KubeAccess, isCp: boolean, signal: AbortSignal): Promise<KubernetesNode> {
    const { localApi, nodeName } = this.#parts;
    const { hostname, port } = kube.server;
    const host = isCp ? localApi.host : hostname.replace(/^\[|\]$/g, '');
    const where = { host, port: isCp ? localApi.port : Number(port || '443') };
    const servername = isCp ? API_NAME : isIP(host) === 0 ? host : '';
    const response = await get({ ...where, servername, path: `/api/v1/nodes/${encodeURIComponent(nodeName)}`, kube, signal });
    const body = await read(response);
    if (response.statusCode !== 200) throw unreadable(`the API server answers ${response.statusCode}`);
    const node: unknown = JSON.parse(body);
    if (typeof node !== 'object' || node === null) throw unreadable('the API server answers no Node');
    return node;
  }
}

interface Get {
  readonly host: string;
  readonly port: number;
  readonly servername: string;
  readonly path: string;
  readonly kube: KubeAccess;
  readonly signal: AbortSignal;
}

function get({ host, port, servername, path, kube, signal }: Get): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const { ca, certificate: cert, privateKey: key } = kube;
  const headers = { accept: 'application/json', 'user-agent': 'holdfast' };
  // Without a name of its own an address is looked for among the addresses of the certificate.
  const name = servername === '' ? {} : { servername };
  const call = request({ host, port, path, ca, cert, key, headers, signal, agent: false, ...name });
  call.once('response', resolve);
  call.on('error', reject);
  call.end();
  return promise;
}

async function read(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw unreadable(`the API server answers with more than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw unreadable(`${path}: ${errnoOf(error)}`, error);
  }
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw unreadable(`${path}: ${errnoOf(error)}`, error);
  }
}

function unreadable(problem: string, cause?: unknown): AgentError {
  return new AgentError('link.roles_unreadable', { problem }, { cause });
}

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { JoinSecrets } from '../../ports/kubernetes/join-secrets.js';
import { ensureFolder, replaceFile, writeSynced } from '../files/durable-file.js';
import { errnoOf } from '../files/errno.js';
import { readTextFile } from '../files/text-file.js';

/** kubeadm's own upload lives for two hours. */
const KEY_LIFE_MS = 60 * 60_000;
const MAX_BYTES = 1024 * 1024;
const PRIVATE = 0o600;

export interface FileJoinSecretsOptions {
  /** `/etc/kubernetes/enc/cert-upload-key.txt` */
  readonly certificateKeyFile: string;
  /** `/etc/kubernetes/enc/key.txt` */
  readonly encryptionKeyFile: string;
  /** `/etc/kubernetes/kubeadm-config.yaml` */
  readonly kubeadmConfig: string;
  readonly clock: Clock;
}

export class FileJoinSecrets implements JoinSecrets {
  readonly #options: FileJoinSecretsOptions;

  constructor(options: FileJoinSecretsOptions) {
    this.#options = options;
  }

  async certificateKey(options: CallOptions): Promise<string> {
    const { certificateKeyFile: path, clock } = this.#options;
    const kept = await this.#read(path, options);
    if (kept !== undefined && /^[0-9a-f]{64}$/.test(kept) && (await isYoung(path, clock.now()))) return kept;
    const key = randomBytes(32).toString('hex');
    try {
      await ensureFolder(dirname(path));
      await replaceFile(path, `${key}\n`, { ...options, mode: PRIVATE });
    } catch (cause) {
      throw notWritten(path, cause, options);
    }
    return key;
  }

  async withUploadConfig<T>(key: string, use: (path: string) => Promise<T>, options: CallOptions): Promise<T> {
    const { kubeadmConfig } = this.#options;
    const text = await this.#read(kubeadmConfig, options);
    if (text === undefined) throw unreadable(kubeadmConfig, 'is not there');
    const copy = withCertificateKey(text, key, kubeadmConfig);
    // A folder of mode 0700 with a name that nobody knows before.
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-kubeadm-'));
    try {
      const path = join(folder, 'kubeadm-config.yaml');
      await writeSynced(path, copy, PRIVATE).catch((cause: unknown) => {
        throw notWritten(path, cause, options);
      });
      return await use(path);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async encryptionKey(options: CallOptions): Promise<string | undefined> {
    const key = await this.#read(this.#options.encryptionKeyFile, options);
    return key === undefined || key === '' ? undefined : key;
  }

  async #read(path: string, options: CallOptions): Promise<string | undefined> {
    const file = await readTextFile(path, MAX_BYTES, options);
    switch (file.found) {
      case 'nothing':
        return undefined;
      case 'unusable':
        throw unreadable(path, file.problem, file.cause);
      case 'text':
        return file.text.trim();
    }
  }
}

async function isYoung(path: string, now: number): Promise<boolean> {
  const age = now - (await stat(path)).mtimeMs;
  return age >= 0 && age < KEY_LIFE_MS;
}

/** kubeadm takes the key from its InitConfiguration, or by a flag that it refuses beside a configuration. */
function withCertificateKey(text: string, key: string, path: string): string {
  const documents = parseAllDocuments(text, { logLevel: 'silent' });
  if (!Array.isArray(documents) || documents.some(({ errors }) => errors.length > 0)) throw unreadable(path, 'is no YAML');
  const init = documents.find((document) => document.get('kind') === 'InitConfiguration');
  const apiVersion = documents.find((document) => document.get('kind') === 'ClusterConfiguration')?.get('apiVersion');
  if (init === undefined && typeof apiVersion !== 'string') throw unreadable(path, 'has no configuration of kubeadm');
  init?.set('certificateKey', key);
  const own = init === undefined ? [`apiVersion: ${apiVersion}\nkind: InitConfiguration\ncertificateKey: ${key}\n`] : [];
  return [...documents.map((document) => String(document).replace(/^---\n/, '')), ...own].join('---\n');
}

function unreadable(path: string, problem: string, cause?: unknown): AgentError {
  return new AgentError('kubernetes.unreadable', { problem: `${path} ${problem}` }, { cause });
}

function notWritten(path: string, cause: unknown, { signal }: CallOptions): AgentError {
  signal.throwIfAborted();
  return new AgentError(
    'kubernetes.not_written',
    { problem: `${path} cannot be written: ${errnoOf(cause) ?? String(cause)}` },
    { cause },
  );
}

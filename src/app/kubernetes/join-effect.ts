import type { Answer } from '../../domain/instruction/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { failureText } from '../../domain/kubernetes/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { JoinSecrets } from '../../ports/kubernetes/join-secrets.js';
import type { ClusterPrograms } from './cluster-programs.js';

const KUBEADM_MS = 40_000;

export interface JoinEffectParts {
  readonly programs: ClusterPrograms;
  readonly secrets: JoinSecrets;
}

/** How another machine joins the cluster of this one. */
export class JoinEffect {
  readonly #parts: JoinEffectParts;

  constructor(parts: JoinEffectParts) {
    this.#parts = parts;
  }

  /** Whole, or it throws: half an answer would make a machine that is half joined. @throws AgentError `command.*`, `kubernetes.*` */
  async run(asControlPlane: boolean, options: CallOptions): Promise<Answer> {
    const { secrets } = this.#parts;
    // What fails without leaving anything comes first.
    const encryptionKey = asControlPlane ? await secrets.encryptionKey(options) : undefined;
    const key = asControlPlane ? await this.#upload(options) : undefined;
    const printed = (await this.#kubeadm(['token', 'create', '--print-join-command'], options)).trim();
    if (!/^kubeadm join \S/.test(printed) || printed.includes('\n')) {
      throw new AgentError('kubernetes.failed', { problem: 'kubeadm token create printed no command that joins' });
    }
    const joinCmd = key === undefined ? printed : `${printed} --control-plane --certificate-key ${key}`;
    const value = { joinCmd, ...(encryptionKey === undefined ? {} : { encryptionKey }) };
    return { kind: 'json', type: 'CLUSTER_JOIN_CMD', value };
  }

  /** Each time: what was uploaded goes by itself after two hours. */
  async #upload(options: CallOptions): Promise<string> {
    const { secrets } = this.#parts;
    const key = await secrets.certificateKey(options);
    await secrets.withUploadConfig(
      key,
      (path) => this.#kubeadm(['init', 'phase', 'upload-certs', '--upload-certs', '--config', path], options),
      options,
    );
    return key;
  }

  async #kubeadm(args: readonly string[], options: CallOptions): Promise<string> {
    const { programs } = this.#parts;
    const argv = ['kubeadm', ...args] as const;
    // Not each of its subcommands looks at the environment.
    const end = await programs.run({ argv: [...argv, '--kubeconfig', programs.kubeconfig], timeoutMs: KUBEADM_MS }, options);
    if (end.exitCode === 0) return end.stdout;
    // Only what it complained about: its output may hold a token.
    throw new AgentError('kubernetes.failed', { problem: failureText(argv.slice(0, 3).join(' '), { ...end, stdout: '' }) });
  }
}

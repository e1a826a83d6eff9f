import type { CallOptions } from '../call-options.js';

/** What joining machines need that stands in files of this control plane's machine, and never in an argv or a log. */
export interface JoinSecrets {
  /**
   * The key that certificates of the control plane are uploaded with: 32 bytes in hex, the same to everybody for an hour, then a new one.
   * Durable, mode 0600, when it resolves.
   * @throws AgentError `kubernetes.unreadable`, `kubernetes.not_written`
   */
  certificateKey(options: CallOptions): Promise<string>;

  /**
   * Runs `use` with the path of a private copy of kubeadm's configuration that carries `key`; the copy is gone afterwards, also when
   * `use` fails.
   * @throws AgentError `kubernetes.unreadable`, `kubernetes.not_written`, and whatever `use` throws
   */
  withUploadConfig<T>(key: string, use: (path: string) => Promise<T>, options: CallOptions): Promise<T>;

  /** The key that secrets in etcd are encrypted with; undefined when this cluster has none. @throws AgentError `kubernetes.unreadable` */
  encryptionKey(options: CallOptions): Promise<string | undefined>;
}

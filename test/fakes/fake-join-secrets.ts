import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { JoinSecrets } from '../../src/ports/kubernetes/join-secrets.js';
import { FakeClock } from './fake-clock.js';

const KEY_LIFE_MS = 60 * 60_000;

/** Keys are numbers in hex, one an hour. */
export class FakeJoinSecrets implements JoinSecrets {
  /** Undefined: the cluster has none. */
  encryption: string | undefined;
  /** Files that cannot be read. */
  broken = false;
  /** Keys of the copies that are there now. */
  readonly copies: string[] = [];
  readonly #clock: FakeClock;
  #made = 0;
  #madeAt = Number.NEGATIVE_INFINITY;

  constructor(clock = new FakeClock()) {
    this.#clock = clock;
  }

  async certificateKey({ signal }: CallOptions): Promise<string> {
    signal.throwIfAborted();
    this.#check();
    if (this.#clock.now() - this.#madeAt >= KEY_LIFE_MS) {
      this.#made++;
      this.#madeAt = this.#clock.now();
    }
    return this.#made.toString(16).padStart(64, '0');
  }

  async withUploadConfig<T>(key: string, use: (path: string) => Promise<T>, { signal }: CallOptions): Promise<T> {
    signal.throwIfAborted();
    this.#check();
    this.copies.push(key);
    try {
      return await use('/private/kubeadm-config.yaml');
    } finally {
      this.copies.pop();
    }
  }

  async encryptionKey({ signal }: CallOptions): Promise<string | undefined> {
    signal.throwIfAborted();
    this.#check();
    return this.encryption;
  }

  #check(): void {
    if (this.broken) throw new AgentError('kubernetes.unreadable', { problem: 'told to fail' });
  }
}

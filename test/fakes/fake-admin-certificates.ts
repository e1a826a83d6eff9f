import { AgentError } from '../../src/domain/kernel/errors.js';
import { aid } from '../../src/domain/link/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type {
  AdminCertificateCall,
  AdminCertificateFacts,
  AdminCertificates,
} from '../../src/ports/driving/admin-certificates.js';

/** Certificates `c1`, `c2` … in memory, which certify nothing. */
export class FakeAdminCertificates implements AdminCertificates {
  readonly #facts: AdminCertificateFacts[] = [];
  readonly #now: () => number;
  #failure: Error | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The next call rejects with `error` and changes nothing. */
  failNext(error: Error = new AgentError('store.unavailable', { problem: 'told to fail' })): void {
    this.#failure = error;
  }

  async create({ name, grade, ttlMs, by }: AdminCertificateCall, { signal }: CallOptions) {
    this.#enter(signal);
    const issuedAt = this.#now();
    const serial = `c${this.#facts.length + 1}`;
    const facts = {
      ...{ serial, aid: aid('acme'), name, grade, by },
      ...{ issuedAt, expiresAt: issuedAt + ttlMs, revoked: undefined },
    };
    this.#facts.push(facts);
    return { certificate: `certificate ${serial}`, ca: 'root', facts };
  }

  async list({ signal }: CallOptions): Promise<readonly AdminCertificateFacts[]> {
    this.#enter(signal);
    return [...this.#facts];
  }

  #enter(signal: AbortSignal): void {
    signal.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }
}

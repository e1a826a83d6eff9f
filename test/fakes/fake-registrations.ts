import { AgentError } from '../../src/domain/kernel/errors.js';
import { aid, type Nid, registrationId } from '../../src/domain/link/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { RegisteredNode, Registrations } from '../../src/ports/driving/registrations.js';

/** The nodes that a test has registered. */
export class FakeRegistrations implements Registrations {
  readonly revoked = new Set<string>();
  /** Serials of those who operate the control plane. */
  readonly admins = new Set<string>();
  readonly #nodes = new Map<Nid, RegisteredNode>();
  #unavailable = false;

  /** Also another registration of a node that is there. */
  register(nid: Nid, registration = 'r1'): RegisteredNode {
    const facts = { aid: aid('acme'), os: 'debian-12', registeredAt: Date.UTC(2026, 0, 1), serial: `5e${this.#nodes.size}` };
    const node = { nid, registration: registrationId(registration), ...facts };
    this.#nodes.set(nid, node);
    return node;
  }

  setUnavailable(unavailable: boolean): void {
    this.#unavailable = unavailable;
  }

  async get(nid: Nid, { signal }: CallOptions): Promise<RegisteredNode | undefined> {
    this.#enter(signal);
    return this.#nodes.get(nid);
  }

  async list({ signal }: CallOptions): Promise<readonly RegisteredNode[]> {
    this.#enter(signal);
    return [...this.#nodes.values()].sort((a, b) => (a.nid < b.nid ? -1 : 1));
  }

  async remove(nid: Nid, { signal }: CallOptions): Promise<boolean> {
    this.#enter(signal);
    return this.#nodes.delete(nid);
  }

  async revokeCertificate(serial: string, _reason: string, { signal }: CallOptions): Promise<boolean> {
    this.#enter(signal);
    const known = this.admins.has(serial) || [...this.#nodes.values()].some((node) => node.serial === serial);
    if (known) this.revoked.add(serial);
    return known;
  }

  #enter(signal: AbortSignal): void {
    signal.throwIfAborted();
    if (this.#unavailable) throw new AgentError('store.unavailable', { problem: 'told to be unavailable' });
  }
}

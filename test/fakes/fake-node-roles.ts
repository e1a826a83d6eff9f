import { AgentError } from '../../src/domain/kernel/errors.js';
import type { Roles } from '../../src/domain/link/roles.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { NodeRoles } from '../../src/ports/link/node-roles.js';

/** A node whose roles a test sets; it may fail, or never answer. */
export class FakeNodeRoles implements NodeRoles {
  #roles: Roles = { isCp: false, isWorker: false, status: 'not_installed' };
  #problem: string | undefined;
  #silent = false;
  /** Reads under way, and how many there were. */
  underWay = 0;
  reads = 0;

  become(roles: Roles): void {
    this.#roles = roles;
    this.#problem = undefined;
    this.#silent = false;
  }

  fail(problem: string): void {
    this.#problem = problem;
  }

  fallSilent(): void {
    this.#silent = true;
  }

  async read({ signal }: CallOptions): Promise<Roles> {
    signal.throwIfAborted();
    this.reads++;
    if (this.#silent) await this.#never(signal);
    if (this.#problem !== undefined) throw new AgentError('link.roles_unreadable', { problem: this.#problem });
    return this.#roles;
  }

  #never(signal: AbortSignal): Promise<never> {
    this.underWay++;
    return new Promise((_, reject) =>
      signal.addEventListener('abort', () => {
        this.underWay--;
        reject(signal.reason);
      }),
    );
  }
}

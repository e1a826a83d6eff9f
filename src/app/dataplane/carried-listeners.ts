import type { ListenerId } from '../../domain/dataplane/model.js';
import type { Revision } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ListenerState, ListenerStatus } from '../../ports/dataplane/listener-status.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import type { KernelPathSubsystem } from './kernel-path-subsystem.js';
import type { L4Subsystem } from './l4-subsystem.js';

/** The service ports of this node, whoever carries them. */
export class CarriedListeners implements ListenerStatus, ProblemSource {
  readonly #proxy: L4Subsystem;
  readonly #kernel: KernelPathSubsystem | undefined;

  constructor(proxy: L4Subsystem, kernel: KernelPathSubsystem | undefined) {
    this.#proxy = proxy;
    this.#kernel = kernel;
  }

  stateOf(id: ListenerId): ListenerState {
    const carried = this.#kernel?.carries(id);
    if (carried !== undefined) return { state: 'listening', port: carried.port };
    return this.#kernel?.isFor(id) === true ? { state: 'pending' } : this.#proxy.stateOf(id);
  }

  failed() {
    return this.#proxy.failed();
  }

  async settled(revision: Revision, options: CallOptions): Promise<void> {
    await Promise.all([this.#proxy.settled(revision, options), this.#kernel?.settled(revision, options)]);
  }

  problems(): readonly StatusProblem[] {
    return [...this.#proxy.problems(), ...(this.#kernel?.problems() ?? [])];
  }
}

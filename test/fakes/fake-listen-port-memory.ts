import type { ListenerId } from '../../src/domain/dataplane/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { ListenPortMemory } from '../../src/ports/dataplane/listen-port-memory.js';

/** A disk with room for one map. */
export class FakeListenPortMemory implements ListenPortMemory {
  #ports: ReadonlyMap<ListenerId, number>;
  #failure: unknown;

  constructor(ports: Readonly<Record<string, number>> = {}) {
    this.#ports = new Map(Object.entries(ports).map(([id, port]) => [id as ListenerId, port]));
  }

  /** The next save rejects with `error` and changes nothing. */
  failNext(error: unknown): void {
    this.#failure = error;
  }

  async load({ signal }: CallOptions): Promise<ReadonlyMap<ListenerId, number>> {
    signal.throwIfAborted();
    return new Map(this.#ports);
  }

  async save(ports: ReadonlyMap<ListenerId, number>, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    this.#ports = new Map(ports);
  }

  /** `default/hello/http 8080`, one a line, by id. */
  dump(): string {
    return [...this.#ports]
      .map(([id, port]) => `${id} ${port}`)
      .sort()
      .join('\n');
  }
}

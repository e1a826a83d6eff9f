import type { CallOptions } from '../../src/ports/call-options.js';
import type { ListenerTraffic, NodeEvent, NodeStatus, Operations } from '../../src/ports/driving/operations.js';

/** A node that is well, unless a test says otherwise. */
export class FakeOperations implements Operations {
  current: NodeStatus = {
    version: '1.2.3',
    mode: 'dev',
    nodeId: 'n1',
    hostname: 'host',
    dataDir: '/data',
    startedAt: Date.UTC(2026, 0, 31, 12),
    ready: true,
    subsystems: [{ name: 'dataplane', state: 'ready', since: Date.UTC(2026, 0, 31, 12), reason: undefined }],
    log: { revision: 7n, logId: 'log-1', objects: 3, ageMs: 1_000 },
    dataPlane: {
      threads: 2,
      listeners: 3,
      listenerBudget: 100,
      failedListeners: 0,
      activeConnections: 5,
      connectionLimit: 4_096,
    },
    metricsListen: '127.0.0.1:9193',
    problems: [],
  };
  listeners: readonly ListenerTraffic[] = [];
  monotonicMs = 0;
  readonly #events: NodeEvent[] = [];
  #wake: () => void = () => {};

  tell(event: Omit<NodeEvent, 'sequence' | 'time' | 'severity'>): void {
    const sequence = BigInt(this.#events.length + 1);
    this.#events.push({ sequence, time: Date.UTC(2026, 0, 31, 12), severity: 'info', ...event });
    this.#wake();
  }

  status(): NodeStatus {
    return this.current;
  }

  async *events(follow: boolean, { signal }: CallOptions): AsyncIterable<NodeEvent> {
    const onAbort = () => this.#wake();
    signal.addEventListener('abort', onAbort);
    for (let next = 0; !signal.aborted; ) {
      const event = this.#events[next];
      if (event !== undefined) {
        next++;
        yield event;
      } else if (follow) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      } else return;
    }
  }

  /** A second later at each call. */
  traffic() {
    this.monotonicMs += 1_000;
    return { monotonicMs: this.monotonicMs, listeners: this.listeners };
  }
}

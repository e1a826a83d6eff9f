import { Counter, Gauge, type Registry } from 'prom-client';
import type { BalancerStatus } from '../../ports/driving/api-balancer.js';

const STATES = ['up', 'down', 'draining', 'unknown'] as const;

/** The balancer of the cluster's API, as it was seen last; nothing on a machine without HAProxy. */
export class BalancerMetrics {
  readonly #status: () => BalancerStatus;
  readonly #servers: Gauge<'state'>;
  readonly #serving: Gauge;
  readonly #applied: Counter<'how'>;

  constructor(status: () => BalancerStatus, registry: Registry) {
    const named = (name: string, help: string) => ({ name: `holdfast_api_balancer_${name}`, help, registers: [registry] });
    this.#status = status;
    this.#servers = new Gauge({ ...named('servers', 'API servers by state'), labelNames: ['state'] });
    this.#serving = new Gauge({ ...named('serving', '1 when it has a list, and serves it'), labelNames: [] });
    this.#applied = new Counter({ ...named('changes_total', 'Changes of HAProxy by how they were made'), labelNames: ['how'] });
  }

  /** The figures as they are now. */
  collect(): void {
    for (const metric of [this.#servers, this.#serving, this.#applied]) metric.reset();
    const { state, servers, reloads, changes } = this.#status();
    if (state === 'absent') return;
    this.#serving.set(state === 'serving' ? 1 : 0);
    for (const one of STATES) this.#servers.set({ state: one }, servers.filter((server) => server.state === one).length);
    this.#applied.inc({ how: 'reload' }, reloads);
    this.#applied.inc({ how: 'runtime' }, changes);
  }
}

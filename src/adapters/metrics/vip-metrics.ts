import { Counter, Gauge, type Registry } from 'prom-client';
import type { VipStatus } from '../../ports/driving/operations.js';

/** The virtual IP of the control plane, on a node that may have it. */
export class VipMetrics {
  readonly #status: () => VipStatus;
  readonly #held: Gauge;
  readonly #alone: Gauge;
  readonly #taken: Counter;
  readonly #removed: Counter;
  readonly #dropped: Counter<'reason'>;

  constructor(status: () => VipStatus, registry: Registry) {
    const named = (name: string, help: string) => ({ name: `holdfast_vip_${name}`, help, registers: [registry] });
    this.#status = status;
    this.#held = new Gauge(named('held', '1 when this node has the virtual IP'));
    this.#alone = new Gauge(named('alone', '1 when it has it without its control plane'));
    this.#taken = new Counter(named('taken_total', 'Times that this node got it'));
    this.#removed = new Counter(named('removed_by_others_total', 'Times that a third hand had removed or changed it'));
    this.#dropped = new Counter({
      ...named('dropped_total', 'Times that this node gave it up by itself, by why'),
      labelNames: ['reason'],
    });
  }

  /** The figures as they are now. */
  collect(): void {
    const { held, alone, counts } = this.#status();
    this.#held.set(held ? 1 : 0);
    this.#alone.set(alone ? 1 : 0);
    for (const counter of [this.#taken, this.#removed, this.#dropped]) counter.reset();
    this.#taken.inc(counts.taken);
    this.#removed.inc(counts.removedByOthers);
    for (const [reason, times] of Object.entries(counts.dropped)) this.#dropped.inc({ reason }, times);
  }
}

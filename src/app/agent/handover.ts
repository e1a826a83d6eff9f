import type { Inheritance, Successor } from '../../ports/agent/successor.js';
import type { Clock } from '../../ports/clock.js';
import type { DataPlane } from '../../ports/dataplane/data-plane.js';
import type { Logger } from '../../ports/logger.js';
import { withinBudget } from './budget.js';

/** Until its configuration is read, and until all of it serves; it waits for itself for 30 s (`readyTimeout`). */
const ASK_BUDGET_MS = 30_000;
const SERVE_BUDGET_MS = 90_000;

export interface HandoverParts {
  /** Starts it. */
  readonly launch: () => Promise<Successor>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How a daemon gives its place to another process, so that no listener is closed meanwhile. */
export class Handover {
  readonly #parts: HandoverParts;
  #running = false;

  constructor(parts: HandoverParts) {
    this.#parts = parts;
  }

  /** One that waits for the inheritance; undefined when there is none: what was is as it was. One at a time. */
  async begin(): Promise<Successor | undefined> {
    const { clock, launch, logger } = this.#parts;
    if (this.#running) return undefined;
    this.#running = true;
    let successor: Successor | undefined;
    try {
      const launched = await launch();
      successor = launched;
      logger.info('the next process of this agent starts', { pid: launched.pid });
      await withinBudget(clock, ASK_BUDGET_MS, 'the start of the next process', (signal) => launched.asks({ signal }));
      return launched;
    } catch (error) {
      await successor?.kill();
      logger.error('the next process of this agent did not come up: this one goes on', { error });
      return undefined;
    } finally {
      this.#running = false;
    }
  }

  /** Whether it has come up: if not, it has ended, and everything is still here. */
  async complete(successor: Successor, inheritance: Inheritance): Promise<boolean> {
    const { clock, logger } = this.#parts;
    try {
      successor.give(inheritance);
      await withinBudget(clock, SERVE_BUDGET_MS, 'the readiness of the next process', (signal) => successor.serves({ signal }));
      logger.info('the next process of this agent has taken over', { pid: successor.pid });
      return true;
    } catch (error) {
      await successor.kill();
      logger.error('the next process of this agent has not taken over: this one takes everything up again', { error });
      return false;
    }
  }

  /** Carries what is left of the connections to their end, `graceMs` at most, and less when `stop` comes. */
  async carryOn(dataPlane: DataPlane, graceMs: number, stop: AbortSignal): Promise<void> {
    const { connections } = dataPlane.info();
    this.#parts.logger.info('connections go on in the process before', { connections, graceMs });
    const end = () => void dataPlane.stop(0, { handedOver: true });
    if (stop.aborted) end();
    else stop.addEventListener('abort', end, { once: true });
    await dataPlane.stop(graceMs, { handedOver: true });
    stop.removeEventListener('abort', end);
  }
}

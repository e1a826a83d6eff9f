import { SERVER_SILENCE_MS } from '../../domain/link/presence.js';
import type { Clock } from '../../ports/clock.js';

/**
 * What the clocks of the other servers say, as each writes it every 5 s: what this server's clock is measured by (engine.md E19). A server
 * that was silent for 15 s counts no more, so that a dead one with a wrong clock stops nobody. What was written before this process started
 * counts as long as if it had been written just now: one with a wrong clock is not heard because it was started again.
 */
export class ServerClocks {
  readonly #clock: Clock;
  readonly #machine: string;
  readonly #heard = new Map<string, { readonly at: number; readonly since: number }>();

  /** `machine`: with what the ids of all servers begin that have run on this machine: they had this clock. */
  constructor(clock: Clock, machine: string) {
    this.#clock = clock;
    this.#machine = machine;
  }

  heard(server: string, at: number): void {
    if (!server.startsWith(this.#machine)) this.#heard.set(server, { at, since: this.#clock.monotonic() });
  }

  /** The newest of them, as it is now; undefined when no other server lives. */
  newest(): number | undefined {
    const now = this.#clock.monotonic();
    let newest: number | undefined;
    for (const [server, { at, since }] of this.#heard) {
      const elapsed = now - since;
      if (elapsed > SERVER_SILENCE_MS) this.#heard.delete(server);
      else if (newest === undefined || at + elapsed > newest) newest = at + elapsed;
    }
    return newest;
  }
}

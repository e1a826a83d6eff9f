import { formatIpv4Range, type Ipv4Range } from '../../src/domain/kernel/network.js';
import type { LocalRoutes } from '../../src/ports/dataplane/local-routes.js';

/** Routes in memory; they outlive whoever set them. */
export class FakeLocalRoutes implements LocalRoutes {
  calls = 0;
  #routes: readonly string[] = [];
  #failures: Error[] = [];

  set(ranges: readonly Ipv4Range[]): void {
    this.calls += 1;
    const failure = this.#failures.shift();
    if (failure !== undefined) throw failure;
    this.#routes = ranges.map(formatIpv4Range);
  }

  failNext(error: Error, times = 1): void {
    this.#failures = Array<Error>(times).fill(error);
  }

  /** As a third hand does. */
  takeAway(): void {
    this.#routes = [];
  }

  dump(): string {
    return this.#routes.join('\n');
  }
}

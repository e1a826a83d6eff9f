import { formatAddressPort } from '../../src/domain/kernel/network.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { HealthProber, ProbeResult, ProbeTarget } from '../../src/ports/dataplane/health-prober.js';

/** Endpoints of a world of its own, which are well until a test says otherwise. Everything answers at once. */
export class FakeHealthProber implements HealthProber {
  readonly #failing = new Map<string, string>();
  readonly #silent = new Set<string>();
  readonly #asked: string[] = [];
  #underWay = 0;
  #mostUnderWay = 0;

  /** `address:port` fails from now on. */
  fail(target: string, reason = 'connection refused'): void {
    this.#silent.delete(target);
    this.#failing.set(target, reason);
  }

  /** Never answers. */
  silence(target: string): void {
    this.#silent.add(target);
  }

  heal(target: string): void {
    this.#failing.delete(target);
    this.#silent.delete(target);
  }

  /** Who was asked since the last call of this, in order. */
  taken(): readonly string[] {
    return this.#asked.splice(0);
  }

  get underWay(): number {
    return this.#underWay;
  }

  get mostUnderWay(): number {
    return this.#mostUnderWay;
  }

  async probe({ address, port }: ProbeTarget, { signal }: CallOptions): Promise<ProbeResult> {
    signal.throwIfAborted();
    const target = formatAddressPort(address, port);
    this.#asked.push(target);
    this.#underWay++;
    this.#mostUnderWay = Math.max(this.#mostUnderWay, this.#underWay);
    try {
      if (this.#silent.has(target)) await untilAborted(signal);
      else await Promise.resolve();
      const reason = this.#failing.get(target) ?? '';
      return { ok: reason === '', reason, latencyMs: 0 };
    } finally {
      this.#underWay--;
    }
  }
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

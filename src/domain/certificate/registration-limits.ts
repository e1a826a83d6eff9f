import { ipAddress, ipv6Groups } from '../kernel/network.js';

const FAILURES_PER_MINUTE = 10;
const WINDOW_MS = 60_000;
const TRIES_PER_SECOND = 50;

/**
 * Holds back who guesses tokens: ten failed tries a minute from an address, 50 tries a second in all. Registration is open to anyone,
 * and each try costs a look into the store. Of one replica; it remembers 3,000 addresses at most, as many as can fail in a minute.
 */
export class RegistrationLimits {
  /** Times of the failures of an address, oldest first; the address that failed last is the last of the map. */
  readonly #failures = new Map<string, readonly number[]>();
  #tries = TRIES_PER_SECOND;
  #refilledAt: number | undefined;

  /** Counts a try. `address`: that one has failed too often; `all`: everybody together is too much. @param now monotonic, milliseconds */
  admit(address: string, now: number): 'ok' | 'address' | 'all' {
    if (this.#recent(networkOf(address), now).length >= FAILURES_PER_MINUTE) return 'address';
    const passed = now - (this.#refilledAt ?? now);
    this.#refilledAt = now;
    this.#tries = Math.min(TRIES_PER_SECOND, this.#tries + (passed * TRIES_PER_SECOND) / 1_000);
    if (this.#tries < 1) return 'all';
    this.#tries -= 1;
    return 'ok';
  }

  /** The try that was admitted has failed by the caller's fault. */
  failed(address: string, now: number): void {
    const network = networkOf(address);
    const failures = [...this.#recent(network, now), now];
    this.#failures.delete(network);
    this.#failures.set(network, failures);
    for (const [oldest, times] of this.#failures) {
      if ((times.at(-1) ?? 0) > now - WINDOW_MS) break;
      this.#failures.delete(oldest);
    }
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#failures.size;
  }

  #recent(network: string, now: number): readonly number[] {
    return (this.#failures.get(network) ?? []).filter((time) => time > now - WINDOW_MS);
  }
}

/** Who has one IPv6 address has the 2^64 of its network; an IPv4 one mapped into IPv6 is itself. */
function networkOf(text: string): string {
  const address = ipAddress(text) ?? text;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  return address.includes(':') ? (ipv6Groups(address)?.slice(0, 4).join(':') ?? address) : address;
}

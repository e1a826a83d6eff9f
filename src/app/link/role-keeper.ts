import type { Roles } from '../../domain/link/roles.js';
import type { Clock } from '../../ports/clock.js';
import type { NodeRoles } from '../../ports/link/node-roles.js';

/** Less than the 5 s between two beats. */
const READ_MS = 4_000;
const NOTHING_KNOWN: Roles = { isCp: false, isWorker: false, status: 'unknown' };

/** Knows the roles that were last read. A read that fails takes none away: they are carried over, and not `known`. */
export class RoleKeeper {
  readonly #roles: NodeRoles;
  readonly #clock: Clock;
  #latest: { readonly roles: Roles; readonly known: boolean } = { roles: NOTHING_KNOWN, known: false };
  #failure: { readonly error: unknown; readonly since: number } | undefined;
  #reading: AbortController | undefined;

  constructor(roles: NodeRoles, clock: Clock) {
    this.#roles = roles;
    this.#clock = clock;
  }

  latest() {
    return this.#latest;
  }

  /** Why reads fail, and since when, wall clock; undefined while they do not. */
  failure() {
    return this.#failure;
  }

  /** Begins a read, unless one is under way: one a beat at most. */
  refresh(): void {
    if (this.#reading !== undefined) return;
    const reading = new AbortController();
    this.#reading = reading;
    void this.#read(reading.signal).finally(() => {
      this.#reading = undefined;
      reading.abort();
    });
  }

  /** A read under way is given up. */
  stop(): void {
    this.#reading?.abort();
  }

  async #read(over: AbortSignal): Promise<void> {
    const deadline = new AbortController();
    over.addEventListener('abort', () => deadline.abort(over.reason), { once: true });
    this.#clock.sleep(READ_MS, { signal: over }).then(
      () => deadline.abort(new Error(`no answer within ${READ_MS} ms`)),
      () => {},
    );
    try {
      this.#latest = { roles: await this.#roles.read({ signal: deadline.signal }), known: true };
      this.#failure = undefined;
    } catch (error) {
      if (over.aborted) return;
      this.#latest = { roles: this.#latest.roles, known: false };
      this.#failure = { error, since: this.#failure?.since ?? this.#clock.now() };
    }
  }
}

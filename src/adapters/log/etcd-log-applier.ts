import { AgentError } from '../../domain/kernel/errors.js';
import { revision } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { EtcdLogFollower } from './etcd-log-follower.js';
import type { AppliedPlace, EtcdLogStore } from './etcd-log-store.js';

/** How often is looked whether another replica has left values behind, and for stages that nobody needs. */
const LOOK_MS = 30_000;
/** A stage that no entry refers to for so long belongs to a proposal that failed (engine.md E4). */
const STAGE_MS = 10 * 60_000;

interface ApplierParts {
  readonly follower: EtcdLogFollower;
  readonly store: EtcdLogStore;
  readonly clock: Clock;
}

/** Brings into the values what was committed by reference. Any replica does it; each step compares and moves one pointer. */
export class EtcdLogApplier {
  readonly #parts: ApplierParts;
  readonly #seen = new Map<string, number>();
  #wake: () => void = () => {};
  #isAsked = false;

  constructor(parts: ApplierParts) {
    this.#parts = parts;
  }

  /** There is something to do. */
  ask(): void {
    this.#isAsked = true;
    this.#wake();
  }

  /** Until `signal` is aborted. Never throws: what fails is tried again. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.bringUp({ signal });
        await this.dropStages({ signal });
      } catch {
        // The follower reports that etcd is away; what is left behind is read from the entries.
      }
      await this.#wait(signal);
    }
  }

  /** Until the values hold every entry of the view. */
  async bringUp(options: CallOptions): Promise<void> {
    const { follower, store } = this.#parts;
    if (follower.applied.revision >= follower.state.revision) return;
    let place: AppliedPlace | undefined = await store.applied(options);
    while (place !== undefined && place.applied.revision < follower.state.revision) {
      options.signal.throwIfAborted();
      const wanted = revision(place.applied.revision + 1n);
      const entry = follower.state.recent(wanted) ?? (await store.read(wanted, options))[0];
      if (entry?.revision !== wanted) throw new AgentError('log.corrupt', { problem: `entry ${wanted} is missing` });
      place = await store.apply(entry, place, options);
      if (place !== undefined) follower.applyMoved(place.applied);
    }
  }

  /** Those that no retained entry needs, once they have been seen for 10 min. */
  async dropStages(options: CallOptions): Promise<void> {
    const { follower, store, clock } = this.#parts;
    const present = await store.stages(options);
    await follower.catchUp(options);
    const now = clock.monotonic();
    for (const id of this.#seen.keys()) if (!present.has(id) || follower.stages.has(id)) this.#seen.delete(id);
    for (const id of present) {
      if (follower.stages.has(id)) continue;
      const since = this.#seen.get(id) ?? now;
      this.#seen.set(id, since);
      if (now - since >= STAGE_MS) await store.dropStage(id, follower.version, options);
    }
  }

  async #wait(signal: AbortSignal): Promise<void> {
    if (this.#isAsked || signal.aborted) {
      this.#isAsked = false;
      return;
    }
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await this.#parts.clock.sleep(LOOK_MS, { signal: AbortSignal.any([signal, woken.signal]) }).catch(() => {});
    this.#isAsked = false;
  }
}

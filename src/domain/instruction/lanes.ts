import type { SlotClass } from './model.js';

/** At the same time (engine.md D2). */
export const SLOTS: Readonly<Record<SlotClass, number>> = { urgent: 2, read: 4, work: 8, script: 5 };

/** Waiting ones (engine.md D3). */
export const MOST_IN_LANE = 64;
export const MOST_WAITING = 256;
export const MOST_WAITING_BYTES = 32 * 1024 * 1024;

/** An instruction as the queue sees it. */
export interface Queued {
  readonly id: string;
  readonly lanes: readonly string[];
  readonly slot: SlotClass;
  /** Of its payload. */
  readonly bytes: number;
}

/** A family of one that everything but reads belongs to. */
const BARRIER = '*';

/**
 * Waiting and running instructions in the order of their arrival. One starts when it is first in every lane of its set and its class
 * has a slot (engine.md D1): none holds a part of its lanes, so there is no deadlock, and a wide one is not starved by narrow ones.
 */
export class Lanes {
  /** Both, in order of arrival. */
  readonly #items = new Map<string, Queued>();
  readonly #running = new Set<string>();
  #waitingBytes = 0;

  get waiting(): number {
    return this.#items.size - this.#running.size;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Why there is no room for it, undefined when it waits now. */
  add(item: Queued): string | undefined {
    const refusal = this.#refusal(item);
    if (refusal !== undefined) return refusal;
    this.#items.set(item.id, item);
    this.#waitingBytes += item.bytes;
    return undefined;
  }

  /** One that runs already, whatever the limits say. */
  addRunning(item: Queued): void {
    this.#items.set(item.id, { ...item, bytes: 0 });
    this.#running.add(item.id);
  }

  /** Those that may start now, oldest first; they run from here on. */
  start(): readonly string[] {
    const free = this.#freeSlots();
    const earlier = new Earlier();
    const started: string[] = [];
    for (const [id, item] of this.#items) {
      if (!this.#running.has(id) && free[item.slot] > 0 && !earlier.blocks(item)) {
        free[item.slot] -= 1;
        this.#running.add(id);
        this.#waitingBytes -= item.bytes;
        started.push(id);
      }
      earlier.add(item);
    }
    return started;
  }

  /** Whether it waits; false also for one that is not here. */
  isWaiting(id: string): boolean {
    return this.#items.has(id) && !this.#running.has(id);
  }

  /** Those that wait in one of its lanes. */
  waitingBeside({ id, lanes }: Queued): readonly string[] {
    const waiting = [...this.#items.values()].filter((other) => other.id !== id && !this.#running.has(other.id));
    return waiting.filter((other) => other.lanes.some((lane) => lanes.includes(lane))).map((other) => other.id);
  }

  /** It has ended, or will not start. */
  remove(id: string): void {
    const item = this.#items.get(id);
    if (item === undefined) return;
    if (!this.#running.delete(id)) this.#waitingBytes -= item.bytes;
    this.#items.delete(id);
  }

  /** What one that waits is waiting for, for people. */
  waitsFor(id: string): string {
    const item = this.#items.get(id);
    if (item === undefined) return 'nothing';
    const earlier = [...this.#items.values()];
    const ahead = earlier.slice(0, earlier.indexOf(item)).find((other) => conflict(item, other));
    const lane = item.lanes[0];
    return ahead !== undefined && lane !== undefined ? `lane ${lane}` : `a free ${item.slot} slot`;
  }

  #refusal(item: Queued): string | undefined {
    const waiting = [...this.#items.values()].filter(({ id }) => !this.#running.has(id));
    if (waiting.some(isBarrier) && item.slot !== 'read') return full(BARRIER, waiting.length);
    for (const lane of item.lanes) {
      const inLane = waiting.filter(({ lanes }) => lanes.includes(lane)).length;
      if (inLane >= MOST_IN_LANE) return full(lane, inLane);
    }
    if (waiting.length >= MOST_WAITING) return full('all lanes', waiting.length);
    if (this.#waitingBytes + item.bytes > MOST_WAITING_BYTES) return full('32 MiB of payloads', waiting.length);
    return undefined;
  }

  #freeSlots(): Record<SlotClass, number> {
    const free = { ...SLOTS };
    for (const id of this.#running) {
      const item = this.#items.get(id);
      if (item !== undefined) free[item.slot] -= 1;
    }
    return free;
  }
}

function full(lane: string, waiting: number): string {
  return `QUEUE_FULL: ${lane}, ${waiting} waiting`;
}

/** The lanes of all that arrived before; a walk through the queue asks it once an item. */
class Earlier {
  readonly #lanes = new Set<string>();
  readonly #families: string[] = [];
  #barrier = false;
  #anyWork = false;

  add(item: Queued): void {
    if (item.slot !== 'read') this.#anyWork = true;
    if (isBarrier(item)) this.#barrier = true;
    for (const lane of item.lanes) {
      this.#lanes.add(lane);
      if (isFamily(lane)) this.#families.push(lane);
    }
  }

  blocks(item: Queued): boolean {
    if (item.slot !== 'read' && (this.#barrier || (isBarrier(item) && this.#anyWork))) return true;
    return item.lanes.some(
      (lane) =>
        this.#lanes.has(lane) ||
        this.#families.some((family) => lanesConflict(lane, family)) ||
        (isFamily(lane) && [...this.#lanes].some((other) => lanesConflict(lane, other))),
    );
  }
}

/** Whether the two may not run side by side. */
export function conflict(a: Queued, b: Queued): boolean {
  if ((isBarrier(a) && b.slot !== 'read') || (isBarrier(b) && a.slot !== 'read')) return true;
  return a.lanes.some((lane) => b.lanes.some((other) => lanesConflict(lane, other)));
}

function lanesConflict(a: string, b: string): boolean {
  if (isFamily(a) && b.startsWith(a.slice(0, -1))) return true;
  if (isFamily(b) && a.startsWith(b.slice(0, -1))) return true;
  return a === b;
}

function isFamily(lane: string): boolean {
  return lane.endsWith('*');
}

function isBarrier({ lanes }: Queued): boolean {
  return lanes.includes(BARRIER);
}

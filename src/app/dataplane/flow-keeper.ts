import type { Flow, FlowSelector, Flows } from '../../domain/dataplane/flows.js';
import {
  drainKey,
  type FlowTarget,
  goesTo,
  isMisplaced,
  type KernelDrain,
  protocolNumbers,
  selectorOf,
  TCP_CLOSED,
  targetKey,
  targetOf,
  withdrawn,
} from '../../domain/dataplane/kernel-flows.js';
import type { L4Listener, ListenerId } from '../../domain/dataplane/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Conntrack } from '../../ports/dataplane/conntrack.js';
import type { Logger } from '../../ports/logger.js';
import { ReconcileLoop, type ReconcileStatus } from '../agent/reconcile-loop.js';

/** A packet that was judged before a commit may make its entry after the first look. */
const SECOND_LOOK_MS = 1_000;
/** A socket answers one challenge in 500 ms (net.ipv4.tcp_invalid_ratelimit). */
const CHALLENGE_AGAIN_MS = 600;
/** Above it all flows of the protocol are listed: the kernel's dump is as long, and the comparison is a look into a map. */
const MOST_SELECTORS = 256;

export interface FlowKeeperParts {
  readonly conntrack: Conntrack;
  /** The rules' listener at a target, as the kernel has it. */
  readonly carried: (target: string) => L4Listener | undefined;
  /** Bits of a connection's mark. */
  readonly carriedMark: number;
  readonly cutMark: number;
  /** Of packets that rules leave untracked. */
  readonly untrackedMark: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  /** A drain is over; `cut` connections were running. */
  readonly drained: (id: ListenerId, endpoint: string, cut: number) => void;
}

/**
 * Takes what the kernel tracks along with changes of the rules, which are asked for new flows only: UDP flows are judged anew at once,
 * connections to what is no endpoint any more have the drain's time and are cut then.
 */
export class FlowKeeper {
  readonly #parts: FlowKeeperParts;
  readonly #loop: ReconcileLoop;
  /** Targets of UDP, and when they are to be looked at. */
  readonly #looks = new Map<string, { readonly selector: FlowSelector; readonly times: readonly number[] }>();
  readonly #drains = new Map<string, KernelDrain>();
  #timer = new AbortController();
  /** Nothing is known of flows from before this process. */
  #allDue = true;

  constructor(parts: FlowKeeperParts) {
    const { clock, random, logger } = parts;
    this.#parts = parts;
    const run = (signal: AbortSignal) => this.#run({ signal });
    this.#loop = new ReconcileLoop({
      ...{ name: 'flows', run, clock, random, logger },
      ...{ leastGapMs: 0, greatestGapMs: 2 ** 30 },
    });
  }

  /** Once the rules stand for the first time. */
  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#timer.abort();
    await this.#loop.stop();
  }

  status(): ReconcileStatus {
    return this.#loop.status();
  }

  draining(): readonly KernelDrain[] {
    return [...this.#drains.values()];
  }

  /** The kernel has acknowledged it. `moved`: the proxy has taken the port over, and connections go on. */
  changed(before: L4Listener | undefined, after: L4Listener | undefined, moved = false): void {
    const now = this.#parts.clock.monotonic();
    for (const listener of [before, after]) if (listener !== undefined) this.#note(listener, now);
    if (before?.protocol === 'tcp' && !moved) this.#drain(before, after, now);
    if (after !== undefined) for (const endpoint of after.endpoints) this.#drains.delete(drainKey(after, endpoint));
    this.#loop.markDirty();
  }

  #note(listener: L4Listener, now: number): void {
    if (listener.protocol !== 'udp') return;
    this.#looks.set(targetKey(listener), { selector: selectorOf(listener), times: [now, now + SECOND_LOOK_MS] });
  }

  #drain(before: L4Listener, after: L4Listener | undefined, now: number): void {
    for (const endpoint of withdrawn(before, after)) {
      const dueAt = now + (after?.drainMs ?? before.drainMs);
      this.#drains.set(drainKey(before, endpoint), { listener: before, endpoint, dueAt });
    }
  }

  async #run(options: CallOptions): Promise<void> {
    if (this.#allDue) await this.#lookAtAll(options);
    this.#allDue = false;
    await this.#lookAtUdp(options);
    await this.#cutDue(options);
    this.#wakeNext();
  }

  /** What was changed while nobody looked. */
  async #lookAtAll(options: CallOptions): Promise<void> {
    const { carried, carriedMark, conntrack, clock } = this.#parts;
    const mark = { value: carriedMark, mask: carriedMark };
    const now = clock.monotonic();
    for (const flow of await conntrack.list({ protocol: protocolNumbers.tcp, mark }, options)) {
      const listener = carried(targetOf(flow));
      if (listener === undefined || listener.endpoints.some((endpoint) => goesTo(flow, endpoint))) continue;
      const key = drainOf(flow);
      if (!this.#drains.has(key)) this.#drains.set(key, { listener, endpoint: flow.backend, dueAt: now + listener.drainMs });
    }
    await this.#forget(await conntrack.list({ protocol: protocolNumbers.udp, mark }, options), () => true, options);
  }

  async #lookAtUdp(options: CallOptions): Promise<void> {
    const { clock, conntrack } = this.#parts;
    const now = clock.monotonic();
    const due = [...this.#looks].filter(([, { times }]) => times.some((time) => time <= now));
    if (due.length === 0) return;
    const targets = new Set(due.map(([target]) => target));
    const anyOf = due.length > MOST_SELECTORS ? {} : { anyOf: due.map(([, { selector }]) => selector) };
    const flows = await conntrack.list({ protocol: protocolNumbers.udp, ...anyOf }, options);
    await this.#forget(flows, (flow) => targets.has(targetOf(flow)), options);
    for (const [target, look] of due) {
      const times = look.times.filter((time) => time > now);
      // A change that came meanwhile has begun anew.
      if (this.#looks.get(target) !== look) continue;
      if (times.length === 0) this.#looks.delete(target);
      else this.#looks.set(target, { ...look, times });
    }
  }

  async #forget(flows: Flows, concerns: (flow: Flow) => boolean, options: CallOptions): Promise<void> {
    const { carried, carriedMark, conntrack } = this.#parts;
    const misplaced = flows.where((flow) => concerns(flow) && isMisplaced(flow, carried(targetOf(flow)), carriedMark));
    if (misplaced.size > 0) await conntrack.remove(misplaced, options);
  }

  /**
   * Marks the flows, so that rules reset whatever comes of them; makes both ends say something; forgets the flows. Whoever has not answered by
   * then is asked once more.
   */
  async #cutDue(options: CallOptions): Promise<void> {
    const { clock, conntrack, cutMark, untrackedMark } = this.#parts;
    const now = clock.monotonic();
    const due = new Map([...this.#drains].filter(([, { dueAt }]) => dueAt <= now));
    if (due.size === 0) return;
    const flows = await this.#flowsOf(due, options);
    if (flows.size > 0) {
      await conntrack.mark(flows, cutMark, cutMark, options);
      await conntrack.challenge(flows, untrackedMark, options);
      await clock.sleep(CHALLENGE_AGAIN_MS, options);
      const left = await this.#flowsOf(due, options);
      await conntrack.challenge(
        left.where(({ tcpState }) => tcpState !== TCP_CLOSED),
        untrackedMark,
        options,
      );
      await conntrack.remove(left, options);
    }
    this.#tellDrained(due, flows);
  }

  async #flowsOf(drains: ReadonlyMap<string, KernelDrain>, options: CallOptions): Promise<Flows> {
    const { carriedMark, conntrack } = this.#parts;
    const targets = new Map<string, FlowTarget>([...drains.values()].map(({ listener }) => [targetKey(listener), listener]));
    const anyOf = targets.size > MOST_SELECTORS ? {} : { anyOf: [...targets.values()].map(selectorOf) };
    const mark = { value: carriedMark, mask: carriedMark };
    const flows = await conntrack.list({ protocol: protocolNumbers.tcp, mark, ...anyOf }, options);
    return flows.where((flow) => drains.has(drainOf(flow)));
  }

  #tellDrained(due: ReadonlyMap<string, KernelDrain>, flows: Flows): void {
    const cut = new Map<string, number>();
    for (const flow of flows) cut.set(drainOf(flow), (cut.get(drainOf(flow)) ?? 0) + 1);
    for (const [key, drain] of due) {
      // It may have been given back, and withdrawn once more, meanwhile.
      if (this.#drains.get(key) === drain) this.#drains.delete(key);
      const { listener, endpoint } = drain;
      this.#parts.drained(listener.id, `${endpoint.address}:${endpoint.port}`, cut.get(key) ?? 0);
    }
  }

  #wakeNext(): void {
    this.#timer.abort();
    this.#timer = new AbortController();
    let next = Number.POSITIVE_INFINITY;
    for (const { times } of this.#looks.values()) for (const time of times) next = Math.min(next, time);
    for (const { dueAt } of this.#drains.values()) next = Math.min(next, dueAt);
    if (next === Number.POSITIVE_INFINITY) return;
    const { clock } = this.#parts;
    clock.sleep(Math.max(0, next - clock.monotonic()), { signal: this.#timer.signal }).then(
      () => this.#loop.markDirty(),
      () => {},
    );
  }
}

function drainOf(flow: Flow): string {
  return `${targetOf(flow)} ${flow.backend.address} ${flow.backend.port}`;
}

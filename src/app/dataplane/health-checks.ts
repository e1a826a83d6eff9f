import { type HealthState, observe, resumed, UNKNOWN, type Verdict } from '../../domain/dataplane/health.js';
import type { HealthTarget, Wanted } from '../../domain/dataplane/health-targets.js';
import { canonicalJson } from '../../domain/kernel/canonical-json.js';
import { DueQueue } from '../../domain/kernel/due-queue.js';
import { formatDuration } from '../../domain/kernel/duration.js';
import type { LogKey } from '../../domain/log/model.js';
import type { QualifiedName } from '../../domain/resource/model.js';
import type { Clock } from '../../ports/clock.js';
import type { HealthProber, ProbeResult } from '../../ports/dataplane/health-prober.js';
import { messageOf } from '../agent/managed-subsystem.js';

/**
 * Checks under way at once, each with a descriptor and up to a few ms of work: 10,000 endpoints every 10 s are 1,000 checks a second, of
 * which 256 at once leave 256 ms to each. When more than that hang, all checks come later, and none is left out.
 */
export const MOST_AT_ONCE = 256;
/** First checks are this far apart, so that a fleet that appears at once is not asked at once. */
const FIRST_GAP_MS = 1;
/** Checks that are due within this begin together: one timer for all of them. */
const GRAIN_MS = 50;
/** A tenth of the interval either way: checks that fell together drift apart. */
const JITTER = 0.1;
/** A deadline that is told so much later was not missed by the endpoint: this process did not run. */
const ASLEEP_MS = 1_000;

/** One endpoint. Replaced whole when what is to be checked changes. */
interface Check {
  readonly target: HealthTarget;
  state: HealthState;
}

export interface HealthChecksParts {
  readonly prober: HealthProber;
  readonly clock: Clock;
  /** From 0 up to, not with, 1. */
  readonly random: () => number;
  /** The verdict of an endpoint changed; `before` is undefined when it is the first. */
  readonly onVerdict: (target: HealthTarget, verdict: Verdict, before: Verdict | undefined) => void;
}

/** Asks every target at its interval, spread and a bounded number at once, and keeps what that says. */
export class HealthChecks {
  readonly #parts: HealthChecksParts;
  readonly #checks = new Map<LogKey, Check>();
  readonly #byService = new Map<QualifiedName, readonly LogKey[]>();
  readonly #due = new DueQueue<LogKey>();
  #lastFirst = Number.NEGATIVE_INFINITY;
  #underWay = 0;
  #stopper: AbortController | undefined;
  #ended: Promise<void> = Promise.resolve();
  #sleepsUntil = Number.NEGATIVE_INFINITY;
  #wake: () => void = () => {};
  #counts = { succeeded: 0, failed: 0 };

  constructor(parts: HealthChecksParts) {
    this.#parts = parts;
  }

  start(): void {
    if (this.#stopper !== undefined) return;
    const stopper = new AbortController();
    this.#stopper = stopper;
    // What was under way at a stop has no time of its own.
    for (const { target } of this.#checks.values()) this.#scheduleFirst(target);
    this.#ended = this.#loop(stopper.signal);
  }

  /** Checks under way are given up. */
  async stop(): Promise<void> {
    this.#stopper?.abort();
    this.#stopper = undefined;
    await this.#ended;
  }

  /** Replaces what is checked of a service; what stays goes on with what is known of it. `known` is what the log says of a new one. */
  set(service: QualifiedName, targets: readonly HealthTarget[], known: (target: HealthTarget) => Verdict | undefined): void {
    const keys = targets.map(({ key }) => key);
    const wanted = new Set(keys);
    for (const key of this.#byService.get(service) ?? []) {
      if (wanted.has(key)) continue;
      this.#checks.delete(key);
      this.#due.delete(key);
    }
    if (keys.length === 0) this.#byService.delete(service);
    else this.#byService.set(service, keys);
    for (const target of targets) this.#set(target, known);
  }

  wanted(key: LogKey): Wanted {
    const check = this.#checks.get(key);
    return check === undefined ? 'gone' : check.state.verdict;
  }

  keysOf(service: QualifiedName): readonly LogKey[] {
    return this.#byService.get(service) ?? [];
  }

  /** How many are checked, and how checks ended so far. */
  counts() {
    return { targets: this.#checks.size, ...this.#counts };
  }

  #set(target: HealthTarget, known: (target: HealthTarget) => Verdict | undefined): void {
    const former = this.#checks.get(target.key);
    if (former !== undefined && canonicalJson(former.target) === canonicalJson(target)) return;
    const verdict = known(target);
    const state = former?.state ?? (verdict === undefined ? UNKNOWN : resumed(verdict));
    this.#checks.set(target.key, { target, state });
    this.#scheduleFirst(target);
  }

  #scheduleFirst({ key, intervalMs }: HealthTarget): void {
    const now = this.#parts.clock.monotonic();
    this.#lastFirst = Math.max(now, this.#lastFirst + FIRST_GAP_MS);
    this.#schedule(key, Math.min(this.#lastFirst, now + intervalMs));
  }

  #schedule(key: LogKey, due: number): void {
    this.#due.set(key, due);
    if (due < this.#sleepsUntil) this.#wake();
  }

  async #loop(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#begin(signal);
      await this.#pause(signal);
    }
  }

  #begin(signal: AbortSignal): void {
    const now = this.#parts.clock.monotonic();
    while (this.#underWay < MOST_AT_ONCE) {
      const key = this.#due.take(now);
      const check = key === undefined ? undefined : this.#checks.get(key);
      if (check === undefined) return;
      this.#underWay++;
      void this.#check(check, now, signal);
    }
  }

  async #check(check: Check, startedAt: number, signal: AbortSignal): Promise<void> {
    const { target } = check;
    const result = await this.#ask(target, startedAt, signal).catch(() => undefined);
    this.#underWay--;
    if (signal.aborted) return;
    // What has changed meanwhile is due by itself.
    if (this.#checks.get(target.key) === check) {
      if (result !== undefined) this.#observe(check, result);
      const jitter = 1 + JITTER * (2 * this.#parts.random() - 1);
      this.#schedule(target.key, startedAt + target.intervalMs * jitter);
    }
    if (this.#underWay < MOST_AT_ONCE - 1) return;
    // There was no room, so that the loop does not wait for what is due next.
    this.#begin(signal);
    this.#wake();
  }

  #observe(check: Check, result: ProbeResult): void {
    const { clock, onVerdict } = this.#parts;
    this.#counts[result.ok ? 'succeeded' : 'failed']++;
    const before = check.state.verdict;
    const at = { monotonic: clock.monotonic(), wall: clock.now() };
    check.state = observe(check.state, result, check.target, at);
    const { verdict } = check.state;
    if (verdict !== undefined && verdict !== before) onVerdict(check.target, verdict, before);
  }

  /** Undefined when it says nothing of the endpoint. Rejects when all checks are given up. */
  async #ask(target: HealthTarget, startedAt: number, stop: AbortSignal): Promise<ProbeResult | undefined> {
    const { prober, clock } = this.#parts;
    const deadline = new AbortController();
    const timer = new AbortController();
    const onStop = () => deadline.abort(stop.reason);
    stop.addEventListener('abort', onStop, { once: true });
    clock.sleep(target.timeoutMs, { signal: timer.signal }).then(
      () => deadline.abort(),
      () => {},
    );
    try {
      return await prober.probe(target, { signal: deadline.signal });
    } catch (error) {
      stop.throwIfAborted();
      const latencyMs = clock.monotonic() - startedAt;
      if (latencyMs > target.timeoutMs + ASLEEP_MS) return undefined;
      const late = deadline.signal.aborted;
      const reason = late ? `no answer within ${formatDuration(target.timeoutMs)}` : `not checked: ${messageOf(error)}`;
      return { ok: false, reason, latencyMs };
    } finally {
      stop.removeEventListener('abort', onStop);
      timer.abort();
    }
  }

  /** Until the next check is due. When as many as may be are under way, the end of one of them begins the next. */
  async #pause(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    const now = clock.monotonic();
    const full = this.#underWay >= MOST_AT_ONCE;
    const next = full ? undefined : this.#due.next();
    const ms = next === undefined ? IDLE_MS : Math.max(GRAIN_MS, next - now);
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    // Never before a grain is over, or a change of many services would make a turn of the loop each.
    this.#sleepsUntil = ms > GRAIN_MS ? now + ms : Number.NEGATIVE_INFINITY;
    signal.addEventListener('abort', this.#wake, { once: true });
    await clock.sleep(ms, { signal: woken.signal }).catch(() => {});
    signal.removeEventListener('abort', this.#wake);
    this.#sleepsUntil = Number.NEGATIVE_INFINITY;
    if (woken.signal.aborted && !signal.aborted) await clock.sleep(GRAIN_MS, { signal }).catch(() => {});
  }
}

/** Nothing to do: what comes wakes the loop. */
const IDLE_MS = 60_000;

import type { NodeName } from '../identity/model.js';
import { canonicalJson } from '../kernel/canonical-json.js';
import type { PortNumber } from '../kernel/network.js';
import { type LogKey, logKey, type Revision } from '../log/model.js';
import type { QualifiedName } from '../resource/model.js';

/** What is asked of an endpoint; exactly one of the three. Without `port` it is asked on the one that it serves the first TCP port on. */
export interface HealthCheck {
  /** A connection is made. */
  readonly tcp?: { readonly port?: PortNumber | undefined } | undefined;
  /** GET is answered with `status`, or with 200 to 399. */
  readonly http?:
    | {
        readonly path: string;
        readonly port?: PortNumber | undefined;
        readonly host?: string | undefined;
        readonly status?: number | undefined;
      }
    | undefined;
  /** grpc.health.v1 says SERVING of `service`, which is the whole server when it is empty. */
  readonly grpc?: { readonly service: string; readonly port?: PortNumber | undefined } | undefined;
}

/** Active checks as the manifest has them; durations as written. */
export interface HealthSpec extends HealthCheck {
  readonly interval: string;
  readonly timeout: string;
  /** So many successes in a row make an unhealthy endpoint healthy, so many failures a healthy one unhealthy. */
  readonly rise: number;
  readonly fall: number;
}

/** What was found of an endpoint. */
export interface Verdict {
  readonly healthy: boolean;
  /** Empty when healthy. */
  readonly reason: string;
  /** When it became so, milliseconds since the Unix epoch. */
  readonly since: number;
}

/** A verdict as it stands in the log, with the node that found it. */
export interface HealthRecord extends Verdict {
  readonly node: NodeName;
}

export interface KnownHealth extends HealthRecord {
  readonly revision: Revision;
}

const PREFIX = 'health/';

/** `target` is the `address:port` that is checked: what has the same one is the same endpoint. */
export function healthKey(service: QualifiedName, target: string): LogKey {
  return logKey(`${PREFIX}${service}/${target}`);
}

export function healthOfKey(key: LogKey): { readonly service: QualifiedName; readonly target: string } | undefined {
  const slash = key.lastIndexOf('/');
  if (!key.startsWith(PREFIX) || slash <= PREFIX.length) return undefined;
  return { service: key.slice(PREFIX.length, slash) as QualifiedName, target: key.slice(slash + 1) };
}

export function formatHealthRecord({ healthy, reason, since, node }: HealthRecord): string {
  return canonicalJson({ healthy, node, reason, since });
}

/** Changes of one endpoint that the log takes in any minute (engine.md E11). */
export const MOST_CHANGES = 6;
export const WINDOW_MS = 60_000;
export const FLAPPING = 'flapping, not ready';

export interface Thresholds {
  readonly rise: number;
  readonly fall: number;
}

/** One check that is over. */
export interface Outcome {
  readonly ok: boolean;
  /** Why it failed. */
  readonly reason: string;
}

/** What is known of an endpoint by whoever checks it. */
export interface HealthState {
  /** What is published; none before the first. */
  readonly verdict: Verdict | undefined;
  /** What the checks say by rise and fall; the same as the verdict unless that is held. */
  readonly found: boolean | undefined;
  /** The newest outcomes in a row that contradict `found`. */
  readonly against: number;
  /** When `verdict` changed, within the last minute; times of a clock that never goes back. */
  readonly changes: readonly number[];
  /** While held: when `found` changed last. */
  readonly unrestAt: number | undefined;
}

export const UNKNOWN: HealthState = { verdict: undefined, found: undefined, against: 0, changes: [], unrestAt: undefined };

/** Goes on with a verdict of before a restart. One that was held is taken up as unhealthy: it rises like any other. */
export function resumed({ healthy, reason, since }: Verdict): HealthState {
  return { ...UNKNOWN, verdict: { healthy, reason, since }, found: healthy };
}

/**
 * The state after one more check. `rise` and `fall` decide; the first success is a verdict at once, as an endpoint without one is used
 * anyway. A verdict changes at most six times in any minute: instead of going on it is held unhealthy, until the checks say the same
 * for a minute. `monotonic` and `wall` are milliseconds.
 */
export function observe(
  state: HealthState,
  { ok, reason }: Outcome,
  { rise, fall }: Thresholds,
  { monotonic, wall }: { readonly monotonic: number; readonly wall: number },
): HealthState {
  const agrees = ok === state.found;
  const against = agrees ? 0 : state.against + 1;
  const needed = state.found === undefined && ok ? 1 : ok ? rise : fall;
  const turned = !agrees && against >= needed;
  const found = turned ? ok : state.found;
  const changes = state.changes.filter((at) => monotonic - at < WINDOW_MS);
  const next = { ...state, found, against: turned ? 0 : against, changes };
  if (state.unrestAt !== undefined) return held(next, { turned, ok, reason, monotonic, wall });
  if (!turned) return next;
  const toHold = changes.length >= MOST_CHANGES - 1;
  const verdict = toHold ? { healthy: false, reason: FLAPPING, since: wall } : verdictOf(ok, reason, wall);
  return { ...next, verdict, changes: [...changes, monotonic], unrestAt: toHold ? monotonic : undefined };
}

interface Turn extends Outcome {
  readonly turned: boolean;
  readonly monotonic: number;
  readonly wall: number;
}

/** Released when nothing turned for a minute, by an outcome that agrees with what was found. */
function held(state: HealthState, { turned, ok, reason, monotonic, wall }: Turn): HealthState {
  if (turned) return { ...state, unrestAt: monotonic };
  const calm = state.unrestAt !== undefined && monotonic - state.unrestAt >= WINDOW_MS;
  if (!calm || ok !== state.found) return state;
  return { ...state, verdict: verdictOf(ok, reason, wall), changes: [...state.changes, monotonic], unrestAt: undefined };
}

function verdictOf(healthy: boolean, reason: string, since: number): Verdict {
  return { healthy, reason: healthy ? '' : reason, since };
}

/** The verdicts of a log, by service and target. */
export class HealthIndex {
  readonly #records = new Map<QualifiedName, Map<string, KnownHealth>>();

  get(service: QualifiedName, target: string): KnownHealth | undefined {
    return this.#records.get(service)?.get(target);
  }

  of(service: QualifiedName): ReadonlyMap<string, KnownHealth> {
    return this.#records.get(service) ?? NONE;
  }

  services(): Iterable<QualifiedName> {
    return this.#records.keys();
  }

  set(service: QualifiedName, target: string, record: KnownHealth | undefined): void {
    const records = this.#records.get(service) ?? new Map<string, KnownHealth>();
    if (record === undefined) records.delete(target);
    else records.set(target, record);
    if (records.size === 0) this.#records.delete(service);
    else this.#records.set(service, records);
  }

  clear(): void {
    this.#records.clear();
  }
}

const NONE: ReadonlyMap<string, KnownHealth> = new Map();

import { formatHealthRecord, healthOfKey } from '../dataplane/health.js';
import { healthTargets } from '../dataplane/health-targets.js';
import type { NodeName } from '../identity/model.js';
import { canonicalJson } from '../kernel/canonical-json.js';
import { nodeOfInfoKey } from '../node/model.js';
import { refuseNodeInfo } from '../node/schema.js';
import { API_VERSION, keyText, type QualifiedName, refOf, type Source, source } from '../resource/model.js';
import { decodeResource } from '../resource/schema.js';
import type { ClusterState, Held } from '../resource/state.js';
import { utf8Length } from './judge.js';
import { type Change, type LogKey, type Revision, ZERO_REVISION } from './model.js';

/** What one node may have in the log, and how large each of it may be (engine.md E17). */
export const MOST_OBJECTS = 1_000;
export const MOST_OBJECT_BYTES = 256 * 1024;

const ENDPOINTS = 'endpoints/';

/** Who applied what a node publishes itself. */
export function nodeSource(node: NodeName): Source {
  return source(`node:${node}`);
}

/** What a node may write, judged on the state of the log: its own record, Endpoints that it publishes, and the health of endpoints that it hosts. */
export class NodeWrites {
  readonly #state: ClusterState;
  readonly #node: NodeName;
  readonly #hosted = new Map<QualifiedName, ReadonlySet<LogKey>>();

  constructor(state: ClusterState, node: NodeName) {
    this.#state = state;
    this.#node = node;
  }

  /** Why the node may not make this change; undefined if it may. */
  refuse({ key, value }: Change): string | undefined {
    const checked = healthOfKey(key);
    if (checked !== undefined) return this.#refuseHealth(key, value, checked);
    if (nodeOfInfoKey(key) === this.#node) return refuseInfo(key, value);
    if (key.startsWith(ENDPOINTS)) return this.#refuseEndpoints(key, value);
    return `nodes do not write ${key}`;
  }

  /** Where the judgement of a change rests on what stands at its key: it holds only as long as that stands. */
  judgedAt(key: LogKey): Revision {
    const checked = healthOfKey(key);
    const node = nodeOfInfoKey(key);
    if (node !== undefined) return this.#state.nodes.get(node)?.revision ?? ZERO_REVISION;
    const held = checked === undefined ? this.#endpoints(key) : this.#state.health.get(checked.service, checked.target);
    return held?.revision ?? ZERO_REVISION;
  }

  #refuseHealth(
    key: LogKey,
    value: string | null,
    { service, target }: { readonly service: QualifiedName; readonly target: string },
  ): string | undefined {
    const held = this.#state.health.get(service, target);
    if (value === null) {
      return held === undefined || held.node === this.#node ? undefined : `${key} was written by the node ${held.node}`;
    }
    if (!isHealthRecord(value, this.#node)) return `${key} holds no verdict of the node ${this.#node}`;
    return this.#hostedOf(service).has(key) ? undefined : `${target} of ${service} is not an endpoint that ${this.#node} checks`;
  }

  #hostedOf(service: QualifiedName): ReadonlySet<LogKey> {
    const known = this.#hosted.get(service);
    if (known !== undefined) return known;
    const keys = new Set(healthTargets(this.#state, service, { nodeId: this.#node, alone: false }).map(({ key }) => key));
    this.#hosted.set(service, keys);
    return keys;
  }

  #refuseEndpoints(key: LogKey, value: string | null): string | undefined {
    const node = this.#node;
    const name = key.slice(key.lastIndexOf('/') + 1);
    if (name !== node && !name.startsWith(`${node}-`)) return `the name of ${key} does not begin with ${node}`;
    const held = this.#endpoints(key);
    if (held !== undefined && held.resource.source !== nodeSource(node)) return `${key} belongs to ${held.resource.source}`;
    return value === null ? undefined : refuseEndpointsValue(key, value, node);
  }

  #endpoints(key: LogKey): Held | undefined {
    const [kind, namespace, name, more] = key.split('/');
    if (kind !== 'endpoints' || namespace === undefined || name === undefined || more !== undefined) return undefined;
    return this.#state.get({ kind: 'Endpoints', namespace, name });
  }
}

function refuseInfo(key: LogKey, value: string | null): string | undefined {
  const problem = value === null ? undefined : refuseNodeInfo(value);
  return problem === undefined ? undefined : `${key}: ${problem}`;
}

/** An object that is larger than a node may write, in words. */
export function tooLarge({ key, value }: Change): string | undefined {
  const bytes = value === null ? 0 : utf8Length(value);
  return bytes > MOST_OBJECT_BYTES ? `${key} has ${bytes} bytes, at most ${MOST_OBJECT_BYTES} are taken` : undefined;
}

/** Exactly what a fold of every other node will read without a fault: the text that our own planner would have written. */
function refuseEndpointsValue(key: LogKey, value: string, node: NodeName): string | undefined {
  const parsed = parse(value);
  if (parsed === undefined) return `${key} holds no object`;
  const { source: _, ...document } = parsed;
  const decoded = decodeResource({ apiVersion: API_VERSION, ...document });
  if ('problems' in decoded) {
    const [first] = decoded.problems;
    return `${key} is invalid: ${first?.path ?? ''}: ${first?.message ?? ''}`;
  }
  const { resource } = decoded;
  if (keyText(refOf(resource)) !== key) return `${key} holds another object`;
  if (canonicalJson({ ...resource, source: nodeSource(node) }) !== value)
    return `${key} is not in canonical form, of source ${nodeSource(node)}`;
  if (resource.kind !== 'Endpoints') return `${key} holds another kind`;
  const foreign = resource.spec.endpoints.find((endpoint) => endpoint.node !== node);
  return foreign === undefined ? undefined : `${key}: the endpoint ${foreign.name} is not one of the node ${node}`;
}

function isHealthRecord(value: string, node: NodeName): boolean {
  const record = parse(value);
  if (record === undefined) return false;
  const { healthy, reason, since } = record;
  if (typeof healthy !== 'boolean' || typeof reason !== 'string' || typeof since !== 'number') return false;
  return formatHealthRecord({ healthy, reason, since, node }) === value;
}

function parse(value: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const parsed: unknown = JSON.parse(value);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : undefined;
  } catch {
    return undefined;
  }
}

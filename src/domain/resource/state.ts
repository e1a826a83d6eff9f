import { HealthIndex, healthKey, healthOfKey, type KnownHealth } from '../dataplane/health.js';
import { type KnownVip, VIP_RANGE_KEY, VipIndex, vipOfKey } from '../dataplane/vip.js';
import type { NodeName } from '../identity/model.js';
import type { IpAddress } from '../kernel/network.js';
import {
  type Cursor,
  type Digest,
  ENTRY_VERSION,
  type Entry,
  type LogId,
  type LogKey,
  type Revision,
  type Snapshot,
  ZERO_DIGEST,
  ZERO_REVISION,
} from '../log/model.js';
import { type KnownNode, nodeOfInfoKey } from '../node/model.js';
import {
  type EndpointsResource,
  keyText,
  nameOf,
  type QualifiedName,
  qualifiedName,
  type Resource,
  type ResourceRef,
  type ServiceResource,
  type Stored,
} from './model.js';

export interface Held<R extends Resource = Resource> {
  readonly resource: Stored<R>;
  /** Where it was last changed. */
  readonly revision: Revision;
}

export interface ResourceChange {
  readonly ref: ResourceRef;
  readonly before: Held | undefined;
  readonly after: Held | undefined;
}

/** What a fold touched: the services whose compiled form may differ, and the resources that changed. */
export interface Touched {
  readonly services: ReadonlySet<QualifiedName>;
  readonly changes: readonly ResourceChange[];
  /** Verdicts that were written or taken back. */
  readonly health: ReadonlySet<LogKey>;
}

/**
 * The state that a log holds, as a fold of its entries: the same entries give the same state, wherever it began (an empty log or a
 * snapshot). Each entry costs its own size, not the state's.
 */
export class ClusterState {
  readonly #resources = new Map<string, Held>();
  /** Keys of the Endpoints objects of a service, by the service's name. */
  readonly #endpointsOf = new Map<QualifiedName, Set<string>>();
  readonly vips = new VipIndex();
  /** What was found of endpoints that are checked. */
  readonly health = new HealthIndex();
  readonly #nodes = new Map<NodeName, KnownNode>();
  #vipRange: string | undefined;
  #logId: LogId | undefined;
  #revision: Revision = ZERO_REVISION;
  #digest: Digest = ZERO_DIGEST;
  #time = 0;

  get revision(): Revision {
    return this.#revision;
  }

  /** Log time of the last entry, milliseconds; 0 before the first. */
  get time(): number {
    return this.#time;
  }

  /** What each node has said of itself, where this state has it. */
  get nodes(): ReadonlyMap<NodeName, KnownNode> {
    return this.#nodes;
  }

  /** The range that the log was begun with. */
  get vipRange(): string | undefined {
    return this.#vipRange;
  }

  /** Where to go on; `undefined` before the first snapshot. */
  get cursor(): Cursor | undefined {
    return this.#logId === undefined ? undefined : { logId: this.#logId, revision: this.#revision, digest: this.#digest };
  }

  /** Becomes exactly the snapshot: what it lacks is removed. Stays as it was when a value of the snapshot cannot be read. */
  replace(snapshot: Snapshot): Touched {
    const sameLog = this.#logId === snapshot.cursor.logId;
    const items = snapshot.items.map(({ key, value, revision }) => factOf(key, value, revision));
    const present = new Set<string>(snapshot.items.map(({ key }) => key));
    const touched = new TouchedBuilder();
    this.vips.clear();
    for (const service of this.health.services()) touched.addHealth(service, this.health.of(service).keys());
    this.health.clear();
    this.#nodes.clear();
    this.#vipRange = undefined;
    for (const key of [...this.#resources.keys()]) if (!present.has(key)) this.#setResource(key, undefined, touched);
    for (const fact of items) {
      const same = sameLog && fact?.is === 'resource' && this.#resources.get(fact.key)?.revision === fact.held?.revision;
      if (!same) this.#set(fact, touched);
    }
    this.#logId = snapshot.cursor.logId;
    this.#moveTo(snapshot.cursor.revision, snapshot.cursor.digest, snapshot.time);
    return touched;
  }

  /**
   * Takes the entry whole, or throws and stays as it was. `previous` is the revision that it follows on, where a part of the log is
   * followed: what lies between had nothing of that part.
   * @throws RangeError when the entry does not follow on (the caller missed something and takes a snapshot), or is of a newer version.
   */
  fold(entry: Entry, previous: bigint = entry.revision - 1n): Touched {
    if (entry.version > ENTRY_VERSION) throw new RangeError(`entry ${entry.revision} is of version ${entry.version}`);
    if (previous !== this.#revision || entry.previousDigest !== this.#digest) {
      throw new RangeError(`entry ${entry.revision} does not follow ${this.#revision}`);
    }
    const facts = entry.changes.map(({ key, value }) => factOf(key, value, entry.revision));
    const touched = new TouchedBuilder();
    for (const fact of facts) this.#set(fact, touched);
    this.#moveTo(entry.revision, entry.digest, entry.time);
    return touched;
  }

  /** Goes on to a place up to which nothing concerned this state. @throws RangeError when it does not follow on */
  pass(previous: Revision, revision: Revision, digest: Digest): void {
    if (previous !== this.#revision) throw new RangeError(`${revision} does not follow ${this.#revision}`);
    this.#moveTo(revision, digest, this.#time);
  }

  get(ref: ResourceRef): Held | undefined {
    return this.#resources.get(keyText(ref));
  }

  service(name: QualifiedName): Held<ServiceResource> | undefined {
    return asService(this.#resources.get(`service/${name}`));
  }

  /** The Endpoints objects that name the service, in the order of their names. */
  endpointsOf(service: QualifiedName): readonly Stored<EndpointsResource>[] {
    return [...(this.#endpointsOf.get(service) ?? [])].sort().flatMap((key) => {
      const held = this.#resources.get(key);
      return held?.resource.kind === 'Endpoints' ? [held.resource] : [];
    });
  }

  all(): Iterable<Held> {
    return this.#resources.values();
  }

  get size(): number {
    return this.#resources.size;
  }

  #moveTo(revision: Revision, digest: Digest, time: number): void {
    this.#revision = revision;
    this.#digest = digest;
    this.#time = time;
  }

  #set(fact: Fact | undefined, touched: TouchedBuilder): void {
    switch (fact?.is) {
      case 'resource':
        this.#setResource(fact.key, fact.held, touched);
        break;
      case 'vip': {
        const former = this.vips.get(fact.address);
        if (former !== undefined) touched.services.add(former.service);
        this.vips.set(fact.address, fact.vip);
        touched.services.add(fact.vip.service);
        break;
      }
      case 'node':
        if (fact.known === undefined) this.#nodes.delete(fact.name);
        else this.#nodes.set(fact.name, fact.known);
        break;
      case 'vip-range':
        this.#vipRange = fact.cidr;
        break;
      case 'health':
        this.health.set(fact.service, fact.target, fact.record);
        touched.addHealth(fact.service, [fact.target]);
        break;
    }
  }

  #setResource(key: string, after: Held | undefined, touched: TouchedBuilder): void {
    const before = this.#resources.get(key);
    if (before !== undefined) this.#unlink(key, before.resource, touched);
    if (after === undefined) this.#resources.delete(key);
    else {
      this.#resources.set(key, after);
      this.#link(key, after.resource, touched);
    }
    touched.add(before, after);
  }

  #link(key: string, resource: Stored, touched: TouchedBuilder): void {
    const service = serviceOf(resource);
    touched.services.add(service);
    if (resource.kind !== 'Endpoints') return;
    const keys = this.#endpointsOf.get(service) ?? new Set<string>();
    this.#endpointsOf.set(service, keys.add(key));
  }

  #unlink(key: string, resource: Stored, touched: TouchedBuilder): void {
    const service = serviceOf(resource);
    touched.services.add(service);
    const keys = this.#endpointsOf.get(service);
    keys?.delete(key);
    if (keys?.size === 0) this.#endpointsOf.delete(service);
  }
}

class TouchedBuilder implements Touched {
  readonly services = new Set<QualifiedName>();
  readonly changes: ResourceChange[] = [];
  readonly health = new Set<LogKey>();

  addHealth(service: QualifiedName, targets: Iterable<string>): void {
    this.services.add(service);
    for (const target of targets) this.health.add(healthKey(service, target));
  }

  add(before: Held | undefined, after: Held | undefined): void {
    const resource = (after ?? before)?.resource;
    if (resource === undefined) return;
    const { kind, metadata } = resource;
    this.changes.push({ ref: { kind, namespace: metadata.namespace, name: metadata.name }, before, after });
  }
}

/** What a key's value says to this state; keys of other capabilities say nothing. */
type Fact =
  | { readonly is: 'resource'; readonly key: LogKey; readonly held: Held | undefined }
  | { readonly is: 'vip'; readonly address: IpAddress; readonly vip: KnownVip }
  | { readonly is: 'node'; readonly name: NodeName; readonly known: KnownNode | undefined }
  | { readonly is: 'vip-range'; readonly cidr: string | undefined }
  | {
      readonly is: 'health';
      readonly service: QualifiedName;
      readonly target: string;
      readonly record: KnownHealth | undefined;
    };

function factOf(key: LogKey, value: string | null, revision: Revision): Fact | undefined {
  const address = vipOfKey(key);
  // A record of an address is replaced, never removed.
  if (address !== undefined) return value === null ? undefined : { is: 'vip', address, vip: { ...JSON.parse(value), revision } };
  if (key === VIP_RANGE_KEY) return { is: 'vip-range', cidr: value === null ? undefined : JSON.parse(value) };
  const checked = healthOfKey(key);
  if (checked !== undefined) {
    return { is: 'health', ...checked, record: value === null ? undefined : { ...JSON.parse(value), revision } };
  }
  const node = nodeOfInfoKey(key);
  if (node !== undefined)
    return { is: 'node', name: node, known: value === null ? undefined : { info: JSON.parse(value), revision } };
  if (!key.startsWith('service/') && !key.startsWith('endpoints/')) return undefined;
  return { is: 'resource', key, held: value === null ? undefined : { resource: JSON.parse(value), revision } };
}

/** The service that a resource is part of. */
export function serviceOf(resource: Resource): QualifiedName {
  return resource.kind === 'Service' ? nameOf(resource) : qualifiedName(resource.metadata.namespace, resource.spec.service);
}

function asService(held: Held | undefined): Held<ServiceResource> | undefined {
  return held?.resource.kind === 'Service' ? { resource: held.resource, revision: held.revision } : undefined;
}

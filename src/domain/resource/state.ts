import { type KnownVip, VIP_RANGE_KEY, VipIndex, vipOfKey } from '../dataplane/vip.js';
import {
  type Cursor,
  type Digest,
  type Entry,
  type LogId,
  type LogKey,
  type Revision,
  type Snapshot,
  ZERO_DIGEST,
  ZERO_REVISION,
} from '../log/model.js';
import {
  type EndpointsResource,
  nameOf,
  type QualifiedName,
  qualifiedName,
  type Resource,
  type ResourceRef,
  resourceKey,
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
}

/**
 * The state that a log holds, as a fold of its entries: the same entries give the same state, wherever it began (an empty log or a
 * snapshot). Each entry costs its own size, not the state's.
 */
export class ClusterState {
  readonly #resources = new Map<LogKey, Held>();
  /** Names of the Endpoints objects of a service, by the service's name. */
  readonly #endpointsOf = new Map<QualifiedName, Set<LogKey>>();
  readonly vips = new VipIndex();
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

  /** The range that the log was begun with. */
  get vipRange(): string | undefined {
    return this.#vipRange;
  }

  /** Where to go on; `undefined` before the first snapshot. */
  get cursor(): Cursor | undefined {
    return this.#logId === undefined ? undefined : { logId: this.#logId, revision: this.#revision, digest: this.#digest };
  }

  /** Becomes exactly the snapshot: what it lacks is removed. */
  replace(snapshot: Snapshot): Touched {
    const sameLog = this.#logId === snapshot.cursor.logId;
    const present = new Set(snapshot.items.map(({ key }) => key));
    const gone = [...this.#resources.keys()].filter((key) => !present.has(key));
    this.vips.clear();
    this.#vipRange = undefined;
    const touched = new TouchedBuilder();
    for (const key of gone) this.#set(key, null, snapshot.cursor.revision, touched);
    for (const { key, value, revision } of snapshot.items) {
      if (!sameLog || this.#resources.get(key)?.revision !== revision) this.#set(key, value, revision, touched);
    }
    this.#logId = snapshot.cursor.logId;
    this.#moveTo(snapshot.cursor.revision, snapshot.cursor.digest, snapshot.time);
    return touched;
  }

  /** @throws RangeError when the entry does not follow on: the caller missed something and takes a snapshot. */
  fold(entry: Entry): Touched {
    if (entry.revision !== this.#revision + 1n || entry.previousDigest !== this.#digest) {
      throw new RangeError(`entry ${entry.revision} does not follow ${this.#revision}`);
    }
    const touched = new TouchedBuilder();
    for (const { key, value } of entry.changes) this.#set(key, value, entry.revision, touched);
    this.#moveTo(entry.revision, entry.digest, entry.time);
    return touched;
  }

  get(ref: ResourceRef): Held | undefined {
    return this.#resources.get(resourceKey(ref));
  }

  service(name: QualifiedName): Held<ServiceResource> | undefined {
    return asService(this.#resources.get(`service/${name}` as LogKey));
  }

  /** The Endpoints objects that name the service, by name. */
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

  #set(key: LogKey, value: string | null, revision: Revision, touched: TouchedBuilder): void {
    const address = vipOfKey(key);
    if (address !== undefined) {
      if (value === null) return;
      const vip: KnownVip = { ...JSON.parse(value), revision };
      this.vips.set(address, vip);
      touched.services.add(vip.service);
      return;
    }
    if (key === VIP_RANGE_KEY) {
      this.#vipRange = value === null ? undefined : JSON.parse(value);
      return;
    }
    if (key.startsWith('service/') || key.startsWith('endpoints/')) this.#setResource(key, value, revision, touched);
  }

  #setResource(key: LogKey, value: string | null, revision: Revision, touched: TouchedBuilder): void {
    const before = this.#resources.get(key);
    const after = value === null ? undefined : { resource: JSON.parse(value) as Stored, revision };
    if (before !== undefined) this.#unlink(key, before.resource, touched);
    if (after === undefined) this.#resources.delete(key);
    else {
      this.#resources.set(key, after);
      this.#link(key, after.resource, touched);
    }
    touched.add(before, after);
  }

  #link(key: LogKey, resource: Stored, touched: TouchedBuilder): void {
    const service = serviceOf(resource);
    touched.services.add(service);
    if (resource.kind !== 'Endpoints') return;
    const keys = this.#endpointsOf.get(service) ?? new Set<LogKey>();
    this.#endpointsOf.set(service, keys.add(key));
  }

  #unlink(key: LogKey, resource: Stored, touched: TouchedBuilder): void {
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

  add(before: Held | undefined, after: Held | undefined): void {
    const resource = (after ?? before)?.resource;
    if (resource === undefined) return;
    const { kind, metadata } = resource;
    this.changes.push({ ref: { kind, namespace: metadata.namespace, name: metadata.name }, before, after });
  }
}

/** The service that a resource is part of. */
export function serviceOf(resource: Resource): QualifiedName {
  return resource.kind === 'Service' ? nameOf(resource) : qualifiedName(resource.metadata.namespace, resource.spec.service);
}

function asService(held: Held | undefined): Held<ServiceResource> | undefined {
  return held?.resource.kind === 'Service' ? { resource: held.resource, revision: held.revision } : undefined;
}

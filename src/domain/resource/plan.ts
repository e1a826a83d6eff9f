import { VIP_RANGE_KEY, VipAllocator, type VipRange } from '../dataplane/vip.js';
import { canonicalJson } from '../kernel/canonical-json.js';
import { AgentError } from '../kernel/errors.js';
import { MAX_PROBLEMS } from '../kernel/limits.js';
import type { IpAddress } from '../kernel/network.js';
import { type Change, type Precondition, ZERO_REVISION } from '../log/model.js';
import {
  type EndpointsResource,
  formatRef,
  keyText,
  nameOf,
  type QualifiedName,
  type Resource,
  type ResourceRef,
  refOf,
  resourceKey,
  type ServiceResource,
  type Source,
  type Stored,
} from './model.js';
import { formatPath, type Problem } from './problem.js';
import { endpointPortProblems } from './schema.js';
import { type ClusterState, type Held, serviceOf } from './state.js';

export type Action = 'created' | 'updated' | 'unchanged' | 'deleted';

export interface PlannedResource {
  readonly ref: ResourceRef;
  readonly action: Action;
  readonly before: Stored | undefined;
  readonly after: Stored | undefined;
  /** A service's address after the change. */
  readonly vip: IpAddress | undefined;
}

/** One proposal, and what it does in the words of its resources. */
export interface ResourcePlan {
  readonly changes: readonly Change[];
  readonly preconditions: readonly Precondition[];
  readonly resources: readonly PlannedResource[];
}

/** Wrong only beside the others, or beside what is there; `document` is the index in the request. */
export interface DocumentProblem extends Problem {
  readonly document: number;
  /** Another document of the request, with which it collides. */
  readonly earlier?: number;
}

export interface ApplyRequest {
  readonly resources: readonly Resource[];
  readonly source: Source;
  /** Removes what the same source applied before and does not apply now. */
  readonly prune: boolean;
}

interface Context {
  readonly state: ClusterState;
  readonly range: VipRange;
  /** Log time for releases and cool-downs, milliseconds. */
  readonly now: number;
}

/** All documents of a request as one proposal on the given state, or everything that forbids it. */
export function planApply(
  { resources, source, prune }: ApplyRequest,
  context: Context,
): ResourcePlan | { readonly problems: readonly DocumentProblem[] } {
  const wanted = new Set(resources.map((resource) => keyText(refOf(resource))));
  const removed = prune ? orphans(context.state, source, wanted) : [];
  const problems = [...duplicates(resources), ...portContradictions(resources, removed, context.state)];
  if (problems.length > 0) return { problems: firstOf(problems) };

  const draft = new Draft(context);
  const planned = removed.map((held) => draft.remove(held));
  const put = new Map<Resource, PlannedResource>();
  for (const [document, resource] of askingFirst(resources)) {
    try {
      put.set(resource, draft.put(resource, source, prune));
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      problems.push({ document, path: 'spec.vip', message: String(error.facts.problem) });
    }
  }
  if (problems.length > 0) return { problems: firstOf(problems) };
  return draft.finish([...planned, ...resources.flatMap((resource) => put.get(resource) ?? [])]);
}

/** The removal of resources as one proposal; a resource that is named twice is removed once. @throws AgentError `resource.not_found` */
export function planDelete(refs: readonly ResourceRef[], context: Context): ResourcePlan {
  const draft = new Draft(context);
  const removed = new Map<Held, PlannedResource>();
  for (const ref of refs) {
    const held = context.state.get(ref);
    if (held === undefined) throw new AgentError('resource.not_found', { problem: formatRef(ref) });
    if (!removed.has(held)) removed.set(held, draft.remove(held));
  }
  return draft.finish([...removed.values()]);
}

/** What the first start of a log writes: the range, set once. @throws AgentError `vip.range_changed` */
export function planVipRange(state: ClusterState, range: VipRange): readonly Change[] {
  if (state.vipRange === range.cidr) return [];
  if (state.vipRange === undefined) return [{ key: VIP_RANGE_KEY, value: JSON.stringify(range.cidr) }];
  throw new AgentError('vip.range_changed', {
    problem: `the log was begun with ${state.vipRange}, the configuration says ${range.cidr}`,
  });
}

class Draft {
  readonly #state: ClusterState;
  readonly #vips: VipAllocator;
  readonly #changes: Change[] = [];
  readonly #preconditions: Precondition[] = [];
  /** What an atomic apply found to be so already has to be so still when the rest of it is done. */
  readonly #unchanged: Precondition[] = [];

  constructor({ state, range, now }: Context) {
    this.#state = state;
    this.#vips = new VipAllocator(state.vips, range, now);
  }

  /** @throws AgentError `vip.exhausted`, `vip.unavailable` */
  put(resource: Resource, source: Source, claim: boolean): PlannedResource {
    const ref = refOf(resource);
    const held = this.#state.get(ref);
    const vip = resource.kind === 'Service' ? this.#vips.assign(nameOf(resource), resource.spec.vip) : undefined;
    const same = held !== undefined && contentOf(held.resource) === contentOf(resource);
    // Only a source that prunes has to know what is its own; others leave an unchanged resource to its former one.
    if (same && !(claim && held.resource.source !== source)) {
      this.#unchanged.push({ key: resourceKey(ref), revision: held.revision });
      return { ref, action: 'unchanged', before: held.resource, after: held.resource, vip };
    }
    const after: Stored = { ...resource, source };
    const action = same ? 'unchanged' : held === undefined ? 'created' : 'updated';
    this.#write(ref, held, canonicalJson(after));
    return { ref, action, before: held?.resource, after, vip };
  }

  remove(held: Held): PlannedResource {
    const ref = refOf(held.resource);
    if (held.resource.kind === 'Service') this.#vips.release(nameOf(held.resource));
    this.#write(ref, held, null);
    return { ref, action: 'deleted', before: held.resource, after: undefined, vip: undefined };
  }

  finish(resources: readonly PlannedResource[]): ResourcePlan {
    const changes = [...this.#changes, ...this.#vips.changes];
    if (changes.length === 0) return { changes: [], preconditions: [], resources };
    return { changes, preconditions: [...this.#preconditions, ...this.#vips.preconditions, ...this.#unchanged], resources };
  }

  #write(ref: ResourceRef, held: Held | undefined, value: string | null): void {
    const key = resourceKey(ref);
    this.#changes.push({ key, value });
    this.#preconditions.push({ key, revision: held?.revision ?? ZERO_REVISION });
  }
}

function firstOf(problems: readonly DocumentProblem[]): readonly DocumentProblem[] {
  return problems.toSorted((a, b) => a.document - b.document).slice(0, MAX_PROBLEMS);
}

/** Services that ask for an address before those that take any, so that no request takes away what it asks for itself. */
function askingFirst(resources: readonly Resource[]): readonly (readonly [number, Resource])[] {
  const asks = (resource: Resource) => resource.kind === 'Service' && resource.spec.vip !== undefined;
  const documents = [...resources.entries()];
  return [...documents.filter(([, resource]) => asks(resource)), ...documents.filter(([, resource]) => !asks(resource))];
}

function contentOf({ kind, metadata, spec }: Resource): string {
  return canonicalJson({ kind, metadata, spec });
}

/** What the source applied before and does not want now, in the order of its keys. */
function orphans(state: ClusterState, source: Source, wanted: ReadonlySet<string>): readonly Held[] {
  return [...state.all()]
    .filter(({ resource }) => resource.source === source && !wanted.has(keyText(refOf(resource))))
    .sort((a, b) => (keyText(refOf(a.resource)) < keyText(refOf(b.resource)) ? -1 : 1));
}

function duplicates(resources: readonly Resource[]): DocumentProblem[] {
  const first = new Map<string, number>();
  return resources.flatMap((resource, document) => {
    const key = resourceKey(refOf(resource));
    const earlier = first.get(key);
    if (earlier === undefined) {
      first.set(key, document);
      return [];
    }
    const message = `${formatRef(refOf(resource))} is in the request already`;
    return [{ document, path: 'metadata.name', message, earlier }];
  });
}

/** Endpoints objects whose ports their service does not have, whichever of the two is in the request. */
function portContradictions(resources: readonly Resource[], removed: readonly Held[], state: ClusterState): DocumentProblem[] {
  const services = new Map<QualifiedName, readonly [ServiceResource, number]>();
  const endpoints = new Map<string, readonly [EndpointsResource, number]>();
  for (const [document, resource] of resources.entries()) {
    if (resource.kind === 'Service') services.set(nameOf(resource), [resource, document]);
    else endpoints.set(resourceKey(refOf(resource)), [resource, document]);
  }
  const gone = new Set(removed.map(({ resource }) => resource));
  const problems: DocumentProblem[] = [];
  for (const [object, document] of endpoints.values()) {
    const service = services.get(serviceOf(object))?.[0] ?? heldService(state, serviceOf(object), gone);
    for (const { path, message } of service === undefined ? [] : contradictions(object, service))
      problems.push({ document, path, message });
  }
  for (const [name, [service, document]] of services) {
    for (const object of state.endpointsOf(name)) {
      if (endpoints.has(resourceKey(refOf(object))) || gone.has(object)) continue;
      for (const { path, message } of contradictions(object, service)) {
        problems.push({ document, path: 'spec.ports', message: `${formatRef(refOf(object))} has ${path}: ${message}` });
      }
    }
  }
  return problems;
}

function heldService(state: ClusterState, name: QualifiedName, gone: ReadonlySet<Resource>): ServiceResource | undefined {
  const service = state.service(name)?.resource;
  return service === undefined || gone.has(service) ? undefined : service;
}

/** By the paths of the Endpoints object. */
function contradictions(object: EndpointsResource, service: ServiceResource): readonly Problem[] {
  return object.spec.endpoints.flatMap((endpoint, index) =>
    endpointPortProblems(endpoint, service.spec.ports).map(({ path, message }) => ({
      path: formatPath(['spec', 'endpoints', index, ...path]),
      message,
    })),
  );
}

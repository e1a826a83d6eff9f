import type { VipRange } from '../../domain/dataplane/vip.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { formatAddressPort, type IpAddress } from '../../domain/kernel/network.js';
import type { Revision } from '../../domain/log/model.js';
import { type QualifiedName, qualifiedName, type Resource, type ResourceRef, source } from '../../domain/resource/model.js';
import {
  type DocumentProblem,
  type PlannedResource,
  planApply,
  planDelete,
  type ResourcePlan,
} from '../../domain/resource/plan.js';
import { compareRefs, type ResourceObject, renderManifest } from '../../domain/resource/render.js';
import { decodeResource } from '../../domain/resource/schema.js';
import { labelSelector } from '../../domain/resource/selector.js';
import { type Held, serviceOf, type Touched } from '../../domain/resource/state.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { ListenerStatus } from '../../ports/dataplane/listener-status.js';
import type {
  AppliedResource,
  ApplyCall,
  ApplyOutcome,
  DeleteCall,
  ManifestDocument,
  ManifestProblem,
  ObjectChange,
  ResourceSelector,
  Resources,
} from '../../ports/driving/resources.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { StateView } from '../../ports/log/state-view.js';
import { objectOf, portStatus } from './object-status.js';

/** A file of ten thousand services is 20,000 documents with their Endpoints. */
const MAX_DOCUMENTS = 20_000;
/** Others may write between our look and our proposal; more than this is a fight that the caller should see. */
const MAX_ATTEMPTS = 10;
/** An apply that is durable is not held back by a node that is slow to follow. */
const SETTLE_MS = 5_000;
/** A watcher that lets more than this wait is ended, so that it cannot hold the daemon's memory. */
const MAX_WAITING_CHANGES = 50_000;

export interface ResourceServiceParts {
  readonly log: OrderedLog;
  readonly view: StateView;
  readonly listeners: ListenerStatus;
  readonly clock: Clock;
  readonly vipRange: VipRange;
}

/** Applies, deletes and shows resources: the control plane's use cases on the ordered log. */
export class ResourceService implements Resources {
  readonly #log: OrderedLog;
  readonly #view: StateView;
  readonly #listeners: ListenerStatus;
  readonly #clock: Clock;
  readonly #vipRange: VipRange;
  /** One proposal of ours at a time is planned: the next sees what it did. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor({ log, view, listeners, clock, vipRange }: ResourceServiceParts) {
    this.#log = log;
    this.#view = view;
    this.#listeners = listeners;
    this.#clock = clock;
    this.#vipRange = vipRange;
  }

  async apply(call: ApplyCall, options: CallOptions): Promise<ApplyOutcome> {
    const decoded = decode(call.documents);
    if ('problems' in decoded) return { outcome: 'invalid', problems: decoded.problems };
    const request = { resources: decoded.resources, source: source(call.source), prune: call.prune };
    const plan = (now: number) => planApply(request, { ...this.#context(), now });
    const { planned, revision } = await this.#propose(call, plan, options);
    if ('problems' in planned) {
      return { outcome: 'invalid', problems: planned.problems.map((problem) => locate(problem, call.documents)) };
    }
    return { outcome: 'applied', revision, resources: planned.resources.map((resource) => this.#applied(resource, call.dryRun)) };
  }

  async delete(call: DeleteCall, options: CallOptions) {
    const plan = (now: number) => {
      const refs = call.ignoreNotFound ? call.refs.filter((ref) => this.#view.state.get(ref) !== undefined) : call.refs;
      return planDelete(refs, { ...this.#context(), now });
    };
    const { planned, revision } = await this.#propose(call, plan, options);
    return { revision, deleted: planned.resources.map(({ ref }) => ref) };
  }

  async get(selector: ResourceSelector, options: CallOptions) {
    const { revision } = await this.#log.head(options);
    await this.#view.reached(revision, options);
    const matches = matcher(selector);
    return {
      revision: this.#view.state.revision,
      objects: [...this.#candidates(selector)]
        .filter((held) => matches(held))
        .map((held) => this.#object(held))
        .sort((a, b) => compareRefs(refOfObject(a), refOfObject(b))),
    };
  }

  async *watch(selector: ResourceSelector, options: CallOptions): AsyncIterable<ObjectChange> {
    const matches = matcher(selector);
    const waiting: ObjectChange[] = [];
    let wake: () => void = () => {};
    const stop = this.#view.onChange((touched) => {
      if (waiting.length <= MAX_WAITING_CHANGES) waiting.push(...this.#changes(touched, matches));
      wake();
    });
    const onAbort = () => wake();
    options.signal.addEventListener('abort', onAbort);
    try {
      const { revision, objects } = await this.get(selector, options);
      // Changes up to the snapshot's revision are in the snapshot.
      for (const object of objects) yield { revision, type: 'added', object };
      while (!options.signal.aborted) {
        if (waiting.length > MAX_WAITING_CHANGES) throw new AgentError('log.slow', { problem: 'the watcher does not read' });
        for (const change of waiting.splice(0)) if (change.revision > revision) yield change;
        if (waiting.length === 0 && !options.signal.aborted) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      stop();
      options.signal.removeEventListener('abort', onAbort);
    }
  }

  /** Plans on the newest state and proposes, again when somebody else was quicker. */
  async #propose<Planned extends ResourcePlan | { readonly problems: readonly DocumentProblem[] }>(
    { dryRun, requestId }: { readonly dryRun: boolean; readonly requestId?: string | undefined },
    plan: (now: number) => Planned,
    options: CallOptions,
  ): Promise<{ readonly planned: Planned; readonly revision: Revision }> {
    return this.#inTurn(async () => {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const head = await this.#log.head(options);
        await this.#view.reached(head.revision, options);
        const planned = plan(Math.max(this.#clock.now(), this.#view.state.time));
        if ('problems' in planned || dryRun || planned.changes.length === 0) return { planned, revision: head.revision };
        const { changes, preconditions } = planned;
        const proposal = { changes, preconditions, ...(requestId === undefined ? {} : { requestId }) };
        const result = await this.#log.propose(proposal, options);
        if (result.outcome === 'conflict') continue;
        await this.#settled(result.revision, options);
        return { planned, revision: result.revision };
      }
      throw new AgentError('resource.conflict', { problem: `others changed the same resources ${MAX_ATTEMPTS} times meanwhile` });
    }, options);
  }

  async #settled(revision: Revision, { signal }: CallOptions): Promise<void> {
    await this.#view.reached(revision, { signal });
    const enough = new AbortController();
    const bounded = { signal: AbortSignal.any([signal, enough.signal]) };
    const timer = this.#clock.sleep(SETTLE_MS, bounded).then(() => enough.abort());
    timer.catch(() => {});
    await this.#listeners.settled(revision, bounded).catch(() => {});
    enough.abort();
  }

  async #inTurn<T>(work: () => Promise<T>, { signal }: CallOptions): Promise<T> {
    const before = this.#turn;
    const mine = before.then(() => {
      signal.throwIfAborted();
      return work();
    });
    this.#turn = mine.catch(() => {});
    return mine;
  }

  #context() {
    return { state: this.#view.state, range: this.#vipRange };
  }

  #candidates({ kind, namespace, name }: ResourceSelector): Iterable<Held> {
    if (kind === undefined || namespace === undefined || name === undefined) return this.#view.state.all();
    const held = this.#view.state.get({ kind, namespace, name });
    return held === undefined ? [] : [held];
  }

  #object(held: Held): ResourceObject {
    return objectOf(held, this.#view.state, this.#listeners);
  }

  #changes({ changes }: Touched, matches: (held: Held) => boolean): readonly ObjectChange[] {
    const { revision } = this.#view.state;
    return changes.flatMap(({ before, after }): ObjectChange[] => {
      const was = before !== undefined && matches(before);
      if (after !== undefined && matches(after)) {
        return [{ revision, type: was ? 'modified' : 'added', object: this.#object(after) }];
      }
      return was ? [{ revision, type: 'deleted', object: this.#object(before) }] : [];
    });
  }

  #applied({ ref, action, before, after, vip }: PlannedResource, dryRun: boolean): AppliedResource {
    const service = after?.kind === 'Service' ? after : undefined;
    const name = qualifiedName(ref.namespace, ref.name);
    return {
      ref,
      action,
      addresses: service === undefined || vip === undefined || dryRun ? [] : this.#addresses(name, service.spec.ports, vip),
      before: dryRun && before !== undefined ? renderManifest(before) : undefined,
      after: dryRun && after !== undefined ? renderManifest(after) : undefined,
      warnings: after === undefined ? [] : this.#warnings(after),
    };
  }

  #addresses(service: QualifiedName, ports: readonly { readonly name: string; readonly port: number }[], vip: IpAddress) {
    return ports.map((port) => portStatus(service, port, vip, this.#listeners).listen ?? formatAddressPort(vip, port.port));
  }

  #warnings(resource: Resource): readonly string[] {
    if (resource.kind !== 'Endpoints' || this.#view.state.service(serviceOf(resource)) !== undefined) return [];
    return [`there is no service ${resource.spec.service} yet in namespace ${resource.metadata.namespace}`];
  }
}

function decode(documents: readonly ManifestDocument[]) {
  if (documents.length > MAX_DOCUMENTS) {
    const message = `expected at most ${MAX_DOCUMENTS} documents, found ${documents.length}`;
    return { problems: [{ file: documents[0]?.file ?? '', document: 0, path: '', message }] };
  }
  const resources: Resource[] = [];
  const problems: ManifestProblem[] = [];
  for (const { file, number, value } of documents) {
    const decoded = decodeResource(value);
    if ('resource' in decoded) resources.push(decoded.resource);
    else problems.push(...decoded.problems.map((problem) => ({ file, document: number, ...problem })));
  }
  return problems.length > 0 ? { problems } : { resources };
}

function locate(
  { document, path, message }: { readonly document: number; readonly path: string; readonly message: string },
  documents: readonly ManifestDocument[],
): ManifestProblem {
  const at = documents[document];
  return { file: at?.file ?? '', document: at?.number ?? 0, path, message };
}

function matcher({ kind, namespace, name, labels }: ResourceSelector): (held: Held) => boolean {
  const labelled = labels === undefined || labels === '' ? () => true : labelSelector(labels);
  return ({ resource: { kind: its, metadata } }) =>
    (kind === undefined || kind === its) &&
    (namespace === undefined || namespace === metadata.namespace) &&
    (name === undefined || name === metadata.name) &&
    labelled(metadata.labels);
}

function refOfObject({ kind, metadata: { namespace, name } }: ResourceObject): ResourceRef {
  return { kind, namespace, name };
}

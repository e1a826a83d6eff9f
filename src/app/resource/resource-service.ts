import { healthOfKey } from '../../domain/dataplane/health.js';
import type { VipRange } from '../../domain/dataplane/vip.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { MAX_DOCUMENTS, MAX_PROBLEMS } from '../../domain/kernel/limits.js';
import { formatAddressPort, type IpAddress } from '../../domain/kernel/network.js';
import type { LogKey, Revision } from '../../domain/log/model.js';
import { pathInDocument } from '../../domain/resource/manifest.js';
import {
  keyText,
  nameOf,
  type QualifiedName,
  qualifiedName,
  type Resource,
  type ResourceRef,
  refOf,
  source,
} from '../../domain/resource/model.js';
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
  Found,
  ManifestDocument,
  ManifestProblem,
  ObjectChange,
  ReadOptions,
  ResourceSelector,
  Resources,
} from '../../ports/driving/resources.js';
import type { OrderedLog, OwnedLog } from '../../ports/log/ordered-log.js';
import type { StateView } from '../../ports/log/state-view.js';
import { withinBudget } from '../agent/budget.js';
import { ChangeQueue } from './change-queue.js';
import { objectOf, portStatus } from './object-status.js';
import { type Answer, RecentAnswers } from './recent-answers.js';

/** Others may write between our look and our proposal; more than this is a fight that the caller should see. */
const MAX_ATTEMPTS = 10;
/** A view that is further behind does not become current by waiting: the caller is told instead (engine.md E10). */
const CURRENT_MS = 5_000;
/** An apply that is durable is not held back by a node that is slow to follow. */
const SETTLE_MS = 5_000;
/** A new service is shown with the port that it got, if the data plane takes no longer than this. */
const WATCH_SETTLE_MS = 1_000;
/** A watcher that lets more than this wait is ended, so that it cannot hold the daemon's memory. */
const MAX_WAITING_CHANGES = 50_000;

export interface ResourceServiceParts {
  readonly log: OrderedLog;
  /** Of a log whose `head` may be old. */
  readonly newest?: OwnedLog['newest'];
  readonly view: StateView;
  readonly listeners: ListenerStatus;
  readonly clock: Clock;
  readonly vipRange: VipRange;
}

/** Applies, deletes and shows resources: the control plane's use cases on the ordered log. */
export class ResourceService implements Resources {
  readonly #log: OrderedLog;
  readonly #newest: OwnedLog['newest'];
  readonly #view: StateView;
  readonly #listeners: ListenerStatus;
  readonly #clock: Clock;
  readonly #vipRange: VipRange;
  /** One proposal of ours at a time is planned: the next sees what it did. */
  #turn: Promise<unknown> = Promise.resolve();
  readonly #answers = new RecentAnswers();

  constructor({ log, newest, view, listeners, clock, vipRange }: ResourceServiceParts) {
    this.#log = log;
    this.#newest = newest ?? ((options) => log.head(options));
    this.#view = view;
    this.#listeners = listeners;
    this.#clock = clock;
    this.#vipRange = vipRange;
  }

  async apply(call: ApplyCall, options: CallOptions): Promise<ApplyOutcome> {
    if (call.prune && call.source === '') throw new AgentError('resource.invalid', { problem: 'prune needs a source' });
    const decoded = decode(call.documents);
    if ('problems' in decoded) return { outcome: 'invalid', problems: decoded.problems };
    const { resources } = decoded;
    const request = { resources, source: source(call.source), prune: call.prune };
    const answer = await this.#propose(
      call,
      {
        plan: (now) => planApply(request, { ...this.#context(), now }),
        repeated: () => resources.map((resource) => this.#present(resource)),
      },
      options,
    );
    if ('problems' in answer) {
      return { outcome: 'invalid', problems: answer.problems.map((problem) => locate(problem, call.documents)) };
    }
    const { revision, resources: planned } = answer;
    const exists = this.#servicesAfter(planned);
    return { outcome: 'applied', revision, resources: planned.map((resource) => this.#applied(resource, call.dryRun, exists)) };
  }

  async delete(call: DeleteCall, options: CallOptions) {
    const plan = (now: number) => {
      const refs = call.ignoreNotFound ? call.refs.filter((ref) => this.#view.state.get(ref) !== undefined) : call.refs;
      return planDelete(refs, { ...this.#context(), now });
    };
    const { revision, resources } = await this.#propose<never>(call, { plan, repeated: () => call.refs.map(deleted) }, options);
    return { revision, deleted: resources.map(({ ref }) => ref) };
  }

  async get(selector: ResourceSelector, options: ReadOptions): Promise<Found> {
    const matches = matcher(selector);
    await this.#reach(options);
    return { ...this.#select(selector, matches), ageMs: this.#view.ageMs() ?? 0 };
  }

  async *watch(selector: ResourceSelector, options: ReadOptions): AsyncIterable<ObjectChange> {
    const matches = matcher(selector);
    const queue = new ChangeQueue<HeldChange>(MAX_WAITING_CHANGES);
    let unsubscribe = () => {};
    try {
      await this.#reach(options);
      // In the same turn: what is not in the snapshot is in the queue, and nothing is in both.
      const { revision, objects } = this.#select(selector, matches);
      unsubscribe = this.#view.onChange((touched) => queue.push(this.#changes(touched, matches)));
      for (const object of objects) yield { revision, type: 'added', object };
      while (!options.signal.aborted) {
        const changes = await queue.take(options);
        await this.#settled(changes.at(-1)?.revision ?? revision, WATCH_SETTLE_MS, options);
        for (const { held, ...change } of changes) yield { ...change, object: this.#object(held) };
      }
    } catch (error) {
      if (!options.signal.aborted) throw error;
    } finally {
      unsubscribe();
    }
  }

  async #propose<Problems extends { readonly problems: readonly DocumentProblem[] }>(
    call: ProposeCall,
    steps: ProposeSteps<Problems>,
    options: CallOptions,
  ): Promise<Answer | Problems> {
    const answer = await this.#inTurn(() => this.#proposeInTurn(call, steps, options), options);
    // Out of turn: who proposes next does not wait for the data plane.
    if (!('problems' in answer) && !call.dryRun) await this.#settled(answer.revision, SETTLE_MS, options);
    return answer;
  }

  /** Plans on the newest state and proposes, again when somebody else was quicker. */
  async #proposeInTurn<Problems extends { readonly problems: readonly DocumentProblem[] }>(
    { dryRun, requestId }: ProposeCall,
    { plan, repeated }: ProposeSteps<Problems>,
    options: CallOptions,
  ): Promise<Answer | Problems> {
    const first = requestId === undefined || dryRun ? undefined : await this.#answered(requestId, repeated, options);
    if (first !== undefined) return first;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const revision = await this.#current(options).catch(notWritten);
      const planned = plan(Math.max(this.#clock.now(), this.#view.state.time));
      if ('problems' in planned) return planned;
      const { changes, preconditions, resources } = planned;
      if (dryRun || changes.length === 0) return { revision, resources };
      const proposal = { changes, preconditions, ...(requestId === undefined ? {} : { requestId }) };
      const result = await this.#log.propose(proposal, options);
      if (result.outcome === 'conflict') continue;
      const answer = { revision: result.revision, resources };
      if (requestId !== undefined) this.#answers.remember(requestId, answer);
      return answer;
    }
    throw new AgentError('resource.conflict', { problem: `others changed the same resources ${MAX_ATTEMPTS} times meanwhile` });
  }

  /** The log knows every retained request; what it came to in words is remembered for the newest ones only. */
  async #answered(requestId: string, repeated: ProposeSteps<never>['repeated'], options: CallOptions) {
    const result = await this.#log.propose({ changes: [], preconditions: [], requestId }, options);
    if (result.outcome !== 'committed') return undefined;
    const answer = this.#answers.get(requestId);
    if (answer !== undefined) return answer;
    await this.#current(options);
    return { revision: result.revision, resources: repeated() };
  }

  /** Resolves when the view holds every proposal that had resolved when this was called. */
  async #current({ signal }: CallOptions): Promise<Revision> {
    let revision: Revision | undefined;
    const follow = async (within: AbortSignal) => {
      revision = (await this.#newest({ signal: within })).revision;
      await this.#view.reached(revision, { signal: within });
    };
    await this.#inTime(follow, 'what the newest revision is', signal);
    return revision ?? this.#view.state.revision;
  }

  /** As new as whoever reads wants it. @throws AgentError `log.not_current` */
  async #reach({ signal, stale = false, atLeast }: ReadOptions): Promise<void> {
    if (!stale) await this.#current({ signal });
    if (atLeast === undefined || this.#view.state.revision >= atLeast) return;
    await this.#inTime((within) => this.#view.reached(atLeast, { signal: within }), `revision ${atLeast}`, signal);
  }

  async #inTime(follow: (signal: AbortSignal) => Promise<void>, what: string, signal: AbortSignal): Promise<void> {
    try {
      await withinBudget(this.#clock, CURRENT_MS, `learning ${what}`, follow, signal);
    } catch (error) {
      const isLate = error instanceof AgentError && (error.code === 'agent.timed_out' || error.code === 'store.unavailable');
      if (!isLate || signal.aborted) throw error;
      throw new AgentError('log.not_current', { problem: error.message }, { cause: error });
    }
  }

  /** Waits for the view and the data plane, at most `ms`; rejects on abort only. */
  async #settled(revision: Revision, ms: number, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    // By hand: a watcher's signal lives for weeks, and AbortSignal.any would leave something on it each time.
    const enough = new AbortController();
    const stop = () => enough.abort();
    signal.addEventListener('abort', stop, { once: true });
    this.#clock.sleep(ms, { signal: enough.signal }).then(stop, () => {});
    try {
      await this.#view.reached(revision, { signal: enough.signal });
      await this.#listeners.settled(revision, { signal: enough.signal });
    } catch (error) {
      if (!enough.signal.aborted) throw error;
    } finally {
      stop();
      signal.removeEventListener('abort', stop);
    }
    signal.throwIfAborted();
  }

  /** On abort it rejects at once; who stands behind it still waits for those before it. */
  async #inTurn<T>(work: () => Promise<T>, { signal }: CallOptions): Promise<T> {
    const before = this.#turn;
    const { promise: done, resolve: finish } = Promise.withResolvers<void>();
    this.#turn = before.then(() => done);
    try {
      await orAbort(before, signal);
      return await work();
    } finally {
      finish();
    }
  }

  #context() {
    return { state: this.#view.state, range: this.#vipRange };
  }

  #candidates({ kind, namespace, name }: ResourceSelector): Iterable<Held> {
    if (kind === undefined || namespace === undefined || name === undefined) return this.#view.state.all();
    const held = this.#view.state.get({ kind, namespace, name });
    return held === undefined ? [] : [held];
  }

  #select(selector: ResourceSelector, matches: (held: Held) => boolean) {
    const objects = [...this.#candidates(selector)]
      .filter((held) => matches(held))
      .map((held) => this.#object(held))
      .sort((a, b) => compareRefs(refOfObject(a), refOfObject(b)));
    return { revision: this.#view.state.revision, objects };
  }

  #object(held: Held): ResourceObject {
    return objectOf(held, this.#view.state, this.#listeners);
  }

  #changes({ changes, health }: Touched, matches: (held: Held) => boolean): readonly HeldChange[] {
    const { revision } = this.#view.state;
    const applied = changes.flatMap(({ before, after }): HeldChange[] => {
      const was = before !== undefined && matches(before);
      if (after !== undefined && matches(after)) return [{ revision, type: was ? 'modified' : 'added', held: after }];
      return was ? [{ revision, type: 'deleted', held: before }] : [];
    });
    const seen = new Set(applied.map(({ held }) => keyText(refOf(held.resource))));
    const checked = this.#services(health).filter((held) => matches(held) && !seen.has(keyText(refOf(held.resource))));
    return [...applied, ...checked.map((held): HeldChange => ({ revision, type: 'modified', held }))];
  }

  /** Whose endpoints were found to be otherwise: their status differs, though nobody applied anything. */
  #services(health: ReadonlySet<LogKey>): readonly Held[] {
    const names = new Set([...health].flatMap((key) => healthOfKey(key)?.service ?? []));
    return [...names].flatMap((name) => this.#view.state.service(name) ?? []);
  }

  /** A resource of a request that was carried out before, as it is now. */
  #present(resource: Resource): PlannedResource {
    const ref = refOf(resource);
    const held = this.#view.state.get(ref)?.resource;
    const vip = held?.kind === 'Service' ? this.#view.state.vips.ofService(nameOf(held)) : undefined;
    return { ref, action: 'unchanged', before: held, after: held, vip };
  }

  #applied({ ref, action, before, after, vip }: PlannedResource, dryRun: boolean, exists: Exists): AppliedResource {
    const service = after?.kind === 'Service' ? after : undefined;
    const name = qualifiedName(ref.namespace, ref.name);
    return {
      ref,
      action,
      addresses: service === undefined || vip === undefined || dryRun ? [] : this.#addresses(name, service.spec.ports, vip),
      before: dryRun && before !== undefined ? renderManifest(before) : undefined,
      after: dryRun && after !== undefined ? renderManifest(after) : undefined,
      warnings: after === undefined ? [] : warnings(after, exists),
    };
  }

  #addresses(service: QualifiedName, ports: readonly { readonly name: string; readonly port: number }[], vip: IpAddress) {
    return ports.map((port) => portStatus(service, port, vip, this.#listeners).listen ?? formatAddressPort(vip, port.port));
  }

  /** Whether a service exists when the plan is carried out, which a dry run never is and the view may not have seen yet. */
  #servicesAfter(planned: readonly PlannedResource[]): Exists {
    const services = planned.filter(({ ref }) => ref.kind === 'Service');
    const after = new Map(services.map(({ ref, action }) => [qualifiedName(ref.namespace, ref.name), action !== 'deleted']));
    return (service) => after.get(service) ?? this.#view.state.service(service) !== undefined;
  }
}

/** Nothing was proposed. */
function notWritten(error: unknown): never {
  if (!(error instanceof AgentError) || error.code !== 'log.not_current') throw error;
  const remedy = 'try again when the store answers: nothing was changed';
  throw new AgentError(
    'log.not_written',
    { problem: `not written: ${error.facts.problem ?? error.message}`, remedy },
    { cause: error },
  );
}

type Exists = (service: QualifiedName) => boolean;

function warnings(resource: Resource, exists: Exists): readonly string[] {
  if (resource.kind !== 'Endpoints' || exists(serviceOf(resource))) return [];
  return [`there is no service ${resource.spec.service} yet in namespace ${resource.metadata.namespace}`];
}

interface ProposeCall {
  readonly dryRun: boolean;
  readonly requestId?: string | undefined;
}

interface ProposeSteps<Problems> {
  /** On the view as it is; `now` is log time. */
  readonly plan: (now: number) => ResourcePlan | Problems;
  /** What to say of a request that was carried out before. */
  readonly repeated: () => readonly PlannedResource[];
}

/** A change that waits for its reader; it is rendered when it is read. */
interface HeldChange extends Omit<ObjectChange, 'object'> {
  readonly held: Held;
}

function decode(documents: readonly ManifestDocument[]) {
  if (documents.length > MAX_DOCUMENTS) {
    const message = `expected at most ${MAX_DOCUMENTS} documents, found ${documents.length}`;
    return { problems: [{ file: documents[0]?.file ?? '', document: 0, path: '', message }] };
  }
  const resources: Resource[] = [];
  const problems: ManifestProblem[] = [];
  for (const document of documents) {
    const decoded = decodeResource(document.value);
    if ('resource' in decoded) resources.push(decoded.resource);
    else problems.push(...decoded.problems.map(({ path, message }) => problemAt(document, path, message)));
    if (problems.length >= MAX_PROBLEMS) break;
  }
  return problems.length > 0 ? { problems: problems.slice(0, MAX_PROBLEMS) } : { resources };
}

function locate({ document, path, message, earlier }: DocumentProblem, documents: readonly ManifestDocument[]): ManifestProblem {
  const at = documents[document];
  if (at === undefined) return { file: '', document: 0, path, message };
  const other = earlier === undefined ? undefined : documents[earlier];
  return problemAt(at, path, other === undefined ? message : `${message}, in ${placeOf(other, at.file)}`);
}

function problemAt({ file, number, path: object }: ManifestDocument, path: string, message: string): ManifestProblem {
  return { file, document: number, path: pathInDocument(object, path), message };
}

/** As seen from `file`: `document 1, items[0]`. */
function placeOf({ file, number, path }: ManifestDocument, from: string): string {
  return `${file === from ? '' : `${file}: `}document ${number}${path === '' ? '' : `, ${path}`}`;
}

function matcher({ kind, namespace, name, labels }: ResourceSelector): (held: Held) => boolean {
  const labelled = labels === undefined || labels === '' ? () => true : labelSelector(labels);
  return ({ resource: { kind: its, metadata } }) =>
    (kind === undefined || kind === its) &&
    (namespace === undefined || namespace === metadata.namespace) &&
    (name === undefined || name === metadata.name) &&
    labelled(metadata.labels);
}

function deleted(ref: ResourceRef): PlannedResource {
  return { ref, action: 'deleted', before: undefined, after: undefined, vip: undefined };
}

function orAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

function refOfObject({ kind, metadata: { namespace, name } }: ResourceObject): ResourceRef {
  return { kind, namespace, name };
}

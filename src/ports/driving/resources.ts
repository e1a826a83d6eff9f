import type { Revision } from '../../domain/log/model.js';
import type { Kind, ResourceRef } from '../../domain/resource/model.js';
import type { Action } from '../../domain/resource/plan.js';
import type { ResourceObject } from '../../domain/resource/render.js';
import type { CallOptions } from '../call-options.js';

/** An object of a manifest, parsed but not yet judged: a document, or an element of one that is a list. */
export interface ManifestDocument {
  /** For messages only. */
  readonly file: string;
  /** Counted from 1 in its file. */
  readonly number: number;
  /** Where the object stands in its document, `items[3]`; empty for the document itself. */
  readonly path: string;
  readonly value: unknown;
}

export interface ApplyCall {
  readonly documents: readonly ManifestDocument[];
  readonly source: string;
  readonly prune: boolean;
  readonly dryRun: boolean;
  readonly requestId?: string | undefined;
}

export interface ManifestProblem {
  readonly file: string;
  readonly document: number;
  /** From the root of the document: `items[3].spec.ports`. */
  readonly path: string;
  readonly message: string;
}

export interface AppliedResource {
  readonly ref: ResourceRef;
  readonly action: Action;
  /** Where a service can be reached on this node, `address:port`. */
  readonly addresses: readonly string[];
  readonly before: object | undefined;
  readonly after: object | undefined;
  readonly warnings: readonly string[];
}

export type ApplyOutcome =
  | { readonly outcome: 'applied'; readonly revision: Revision; readonly resources: readonly AppliedResource[] }
  | { readonly outcome: 'invalid'; readonly problems: readonly ManifestProblem[] };

export interface DeleteCall {
  readonly refs: readonly ResourceRef[];
  readonly dryRun: boolean;
  readonly ignoreNotFound: boolean;
  readonly requestId?: string | undefined;
}

/** Absent members select everything. */
export interface ResourceSelector {
  readonly kind?: Kind | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  /** `a=b,c!=d,e,!f` */
  readonly labels?: string | undefined;
}

/** How new an answer has to be; unless anything is said, as new as there is. */
export interface ReadOptions extends CallOptions {
  /** As of what this process last knew, without asking the store. */
  readonly stale?: boolean;
  /** Not before this revision is here. */
  readonly atLeast?: Revision;
}

export interface ObjectChange {
  readonly revision: Revision;
  readonly type: 'added' | 'modified' | 'deleted';
  readonly object: ResourceObject;
}

export interface Found {
  readonly revision: Revision;
  readonly objects: readonly ResourceObject[];
  /** How long ago this was known to be current, milliseconds. */
  readonly ageMs: number;
}

/** The resources of the control plane, for those who operate it. */
export interface Resources {
  /**
   * All documents as one proposal, or nothing. When it resolves, the view holds it and, where this process carries traffic,
   * new connections follow it (waited for 5 s at most).
   * @throws AgentError `resource.conflict`, `log.not_written`
   */
  apply(call: ApplyCall, options: CallOptions): Promise<ApplyOutcome>;

  /** @throws AgentError `resource.not_found`, unless `ignoreNotFound`; `resource.conflict`, `log.not_written` */
  delete(
    call: DeleteCall,
    options: CallOptions,
  ): Promise<{ readonly revision: Revision; readonly deleted: readonly ResourceRef[] }>;

  /**
   * As of the newest revision when the call was made, sorted by kind, namespace and name.
   * @throws AgentError `resource.invalid` when the label selector is malformed; `log.not_current` when it is not told within 5 s what
   *   the newest revision is, or the view does not hold it
   */
  get(selector: ResourceSelector, options: ReadOptions): Promise<Found>;

  /** What there is, as `added`, then every change once and in order, until abort. @throws as `get` */
  watch(selector: ResourceSelector, options: ReadOptions): AsyncIterable<ObjectChange>;
}

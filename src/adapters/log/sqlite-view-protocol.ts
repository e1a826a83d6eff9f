import type { ErrorCode, ErrorFacts } from '../../domain/kernel/errors.js';
import type { StoredView, ViewBatch, ViewBinding } from '../../ports/log/view-store.js';

export type ViewCall =
  | { readonly call: 'open'; readonly binding: ViewBinding }
  | { readonly call: 'replace'; readonly view: StoredView }
  | { readonly call: 'append'; readonly batch: ViewBatch }
  | { readonly call: 'close' };

export type ViewRequest = ViewCall & { readonly id: number };

/** What each call is answered with: `ViewStore` says. */
export type ViewReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: { readonly code: ErrorCode; readonly facts: ErrorFacts } };

import type { StoredView, ViewBatch, ViewBinding } from '../../ports/log/view-store.js';

/** What each call is answered with: `ViewStore` says. */
export type ViewCall =
  | { readonly call: 'open'; readonly binding: ViewBinding }
  | { readonly call: 'replace'; readonly view: StoredView }
  | { readonly call: 'append'; readonly batch: ViewBatch }
  | { readonly call: 'close' };

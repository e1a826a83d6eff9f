import type { Revision } from '../../domain/log/model.js';
import type { StoredBatch } from './log-store.js';

/** What each call is answered with: `LogStore` says. */
export type LogCall =
  | { readonly call: 'open' }
  | { readonly call: 'commit'; readonly batch: StoredBatch }
  | { readonly call: 'resolve'; readonly batch: StoredBatch; readonly problem: string }
  | { readonly call: 'read'; readonly first: Revision }
  | { readonly call: 'copy'; readonly now: number }
  | { readonly call: 'copyTo'; readonly file: string }
  | { readonly call: 'close' };

import type { ErrorCode, ErrorFacts } from '../../domain/kernel/errors.js';
import type { Revision } from '../../domain/log/model.js';
import type { StoredBatch } from './log-store.js';

export type LogCall =
  | { readonly call: 'open' }
  | { readonly call: 'commit'; readonly batch: StoredBatch }
  | { readonly call: 'resolve'; readonly batch: StoredBatch; readonly problem: string }
  | { readonly call: 'read'; readonly first: Revision }
  | { readonly call: 'copy'; readonly now: number }
  | { readonly call: 'close' };

export type LogRequest = LogCall & { readonly id: number };

/** What each call is answered with: `LogStore` says. */
export type LogReply =
  | { readonly id: number; readonly value: unknown }
  | {
      readonly id: number;
      readonly failure: { readonly code: ErrorCode; readonly facts: ErrorFacts; readonly cause: string };
    };

import type { ClientDuplexStream, Metadata } from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import { type WatchClient, WatchRequest, type WatchResponse } from '../generated/etcd/etcdserverpb/rpc.js';
import type { Event } from '../generated/etcd/mvccpb/kv.js';
import { endOf } from './etcd-messages.js';

export interface WatchFrom {
  readonly prefix: string;
  /** etcd's revision of the first change that is wanted. One in the future is waited for in silence (engine.md E3). */
  readonly revision: bigint;
}

export type WatchAnswer =
  /** It has begun. */
  | { readonly kind: 'created' }
  /** Whole revisions, in order. */
  | { readonly kind: 'events'; readonly events: readonly Event[] }
  /** The changes from there on are no longer kept. */
  | { readonly kind: 'compacted' };

/** @throws AgentError `store.unavailable` */
export async function* watchOn(
  client: WatchClient,
  metadata: Metadata,
  { prefix, revision }: WatchFrom,
  { signal }: CallOptions,
): AsyncGenerator<WatchAnswer, void, undefined> {
  if (signal.aborted) return;
  const call: ClientDuplexStream<WatchRequest, WatchResponse> = client.watch(metadata);
  const onAbort = () => call.cancel();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const value = { key: Buffer.from(prefix), rangeEnd: endOf(prefix), startRevision: revision, fragment: true };
    call.write(WatchRequest.fromPartial({ requestUnion: { $case: 'createRequest', value } }));
    yield* joined(call);
  } catch (error) {
    if (!signal.aborted) throw failure(error);
  } finally {
    signal.removeEventListener('abort', onAbort);
    // Ends as an error of the stream that nobody reads any more.
    call.on('error', () => {});
    call.cancel();
  }
}

/** Pieces of one answer are joined, or half a transaction would be taken for a whole one (engine.md E6). */
async function* joined(responses: AsyncIterable<WatchResponse>): AsyncGenerator<WatchAnswer, void, undefined> {
  let pieces: Event[] = [];
  for await (const response of responses) {
    if (response.compactRevision > 0n) {
      yield { kind: 'compacted' };
      return;
    }
    if (response.canceled) throw unavailable(response.cancelReason);
    if (response.created) yield { kind: 'created' };
    for (const event of response.events) pieces.push(event);
    if (response.fragment || pieces.length === 0) continue;
    yield { kind: 'events', events: pieces };
    pieces = [];
  }
  throw unavailable('the member has ended it');
}

function unavailable(reason: string): AgentError {
  return new AgentError('store.unavailable', { problem: `etcd: the watch has ended: ${reason}` });
}

function failure(error: unknown): AgentError {
  if (error instanceof AgentError) return error;
  const problem = `etcd: the watch has ended: ${error instanceof Error ? error.message : String(error)}`;
  return new AgentError('store.unavailable', { problem }, { cause: error });
}

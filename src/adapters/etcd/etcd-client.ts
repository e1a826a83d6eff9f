import { setTimeout as pause } from 'node:timers/promises';
import { Metadata } from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { RangeRequest, RangeResponse, TxnRequest, TxnResponse } from '../generated/etcd/etcdserverpb/rpc.js';
import type { KeyValue } from '../generated/etcd/mvccpb/kv.js';
import { etcdCall, type Send } from './etcd-call.js';
import { EtcdEndpoint, type EtcdTls } from './etcd-endpoint.js';
import { etcdError, failureOf } from './etcd-errors.js';
import { endOf, range } from './etcd-messages.js';
import { type WatchAnswer, type WatchFrom, watchOn } from './etcd-watch.js';

/** A call gives up after this: with what follows, a write fails within 5 s of the loss of the quorum (engine.md E10). */
const CALL_MS = 4_000;
/** One member; a frozen one leaves time for another. */
const ATTEMPT_MS = 2_000;
const RETRY_MS = 100;

/** Keys of one page at first; halved while a page is larger than what is received. */
const PAGE_KEYS = 1_000;

/** Without it a member that has lost its leader answers reads late and watches never (engine.md E6). */
function hasLeader(): Metadata {
  const metadata = new Metadata();
  metadata.set('hasleader', 'true');
  return metadata;
}

/** What a page set found, as of one of etcd's revisions. */
export interface Listed {
  readonly revision: bigint;
  readonly kvs: readonly KeyValue[];
}

export interface EtcdClientOptions {
  /** `http://host:port` or `https://host:port` of members of one cluster; at least one. */
  readonly endpoints: readonly string[];
  readonly tls?: EtcdTls;
}

/**
 * Members of one etcd cluster. A member that is out of reach or has no leader is left for the next one, for 4 s in all; all reads are
 * linearisable. Nothing is connected before the first call.
 */
export class EtcdClient {
  readonly #endpoints: readonly EtcdEndpoint[];
  #index = 0;
  #closed = false;

  constructor({ endpoints, tls = {} }: EtcdClientOptions) {
    this.#endpoints = endpoints.map((url) => new EtcdEndpoint(url, tls));
  }

  /** @throws AgentError `store.unavailable`; `store.too_large` when less has to be asked for; undefined: its revision is compacted */
  range(request: RangeRequest, options: CallOptions): Promise<RangeResponse | undefined> {
    const send: Send<RangeResponse> = ({ kv }, metadata, deadline, callback) =>
      kv.range(request, metadata, { deadline }, callback);
    return this.#call(send, false, options);
  }

  /** All keys that begin with `prefix`, as of one revision (0: now), in order. Undefined: it was compacted meanwhile. */
  async list(
    prefix: string,
    { revision = 0n, keysOnly = false, signal }: CallOptions & { readonly revision?: bigint; readonly keysOnly?: boolean },
  ): Promise<Listed | undefined> {
    const end = endOf(prefix);
    const kvs: KeyValue[] = [];
    let [key, limit, at] = [Buffer.from(prefix), PAGE_KEYS, revision];
    for (;;) {
      const page = await this.#page(range(key, { end, limit, revision: at, keysOnly }), { signal });
      if (page === undefined) return undefined;
      if (page === 'too_large') limit = Math.ceil(limit / 2);
      else {
        for (const kv of page.kvs) kvs.push(kv);
        at = at === 0n ? (page.header?.revision ?? 0n) : at;
        const last = page.kvs.at(-1);
        if (!page.more || last === undefined) return { revision: at, kvs };
        key = Buffer.concat([last.key, Buffer.of(0)]);
      }
    }
  }

  /**
   * Never sent twice where the first may have been carried out.
   * @throws AgentError `store.unavailable` (certainly not done), `store.outcome_unknown`, `store.too_large`
   */
  txn(request: TxnRequest, options: CallOptions & { readonly withinMs?: number }): Promise<TxnResponse> {
    return this.#txn(request, true, options);
  }

  /** One that has only ranges. @throws AgentError `store.unavailable`, `store.too_large` */
  read(request: TxnRequest, options: CallOptions): Promise<TxnResponse> {
    return this.#txn(request, false, options);
  }

  /**
   * Changes of the keys, those of one revision together. Ends after `compacted` and on abort.
   * @throws AgentError `store.unavailable`: to be asked again from where it was; the next member is asked then
   */
  async *watch(from: WatchFrom, { signal }: CallOptions): AsyncGenerator<WatchAnswer, void, undefined> {
    const endpoint = this.#current;
    try {
      yield* watchOn(endpoint.watch, hasLeader(), from, { signal });
    } catch (error) {
      this.#leave(endpoint);
      throw error;
    }
  }

  /** Revisions before `revision` are given up, also of keys of others. For tests and for an etcd that nobody compacts. */
  async compact(revision: bigint, options: CallOptions): Promise<void> {
    const request = { revision, physical: true };
    await this.#call<unknown>(
      ({ kv }, metadata, deadline, done) => kv.compact(request, metadata, { deadline }, done),
      false,
      options,
    );
  }

  /** Calls in progress fail. Safe twice. */
  close(): void {
    this.#closed = true;
    for (const endpoint of this.#endpoints) endpoint.close();
  }

  async #txn(request: TxnRequest, writes: boolean, options: CallOptions & { readonly withinMs?: number }): Promise<TxnResponse> {
    const send: Send<TxnResponse> = ({ kv }, metadata, deadline, callback) => kv.txn(request, metadata, { deadline }, callback);
    const response = await this.#call(send, writes, options);
    if (response === undefined) throw new AgentError('store.unavailable', { problem: 'etcd: the revision has been compacted' });
    return response;
  }

  async #page(request: RangeRequest, options: CallOptions): Promise<RangeResponse | 'too_large' | undefined> {
    try {
      return await this.range(request, options);
    } catch (error) {
      const canShrink = error instanceof AgentError && error.code === 'store.too_large' && request.limit > 1n;
      if (canShrink) return 'too_large';
      throw error;
    }
  }

  get #current(): EtcdEndpoint {
    const endpoint = this.#endpoints[this.#index % this.#endpoints.length];
    if (endpoint === undefined) throw new AgentError('store.unavailable', { problem: 'no etcd is named' });
    return endpoint;
  }

  /** Unless another call has left it already. */
  #leave(endpoint: EtcdEndpoint): void {
    if (this.#current === endpoint) this.#index += 1;
  }

  async #call<Response>(
    send: Send<Response>,
    writes: boolean,
    { signal, withinMs = CALL_MS }: CallOptions & { readonly withinMs?: number },
  ): Promise<Response | undefined> {
    const end = performance.now() + withinMs;
    for (let attempt = 1; ; attempt += 1) {
      if (this.#closed) throw new AgentError('store.unavailable', { problem: 'the connection to etcd is closed' });
      const endpoint = this.#current;
      const left = Math.min(ATTEMPT_MS, end - performance.now());
      const answer = await etcdCall(send, { endpoint, metadata: hasLeader(), ms: left }, signal);
      if ('response' in answer) return answer.response;
      const failure = failureOf(answer.error);
      if (failure === 'compacted') return undefined;
      if (failure === 'refused' || failure === 'too_large') throw etcdError(answer.error, writes);
      this.#leave(endpoint);
      const mayRepeat = failure === 'not_done' || !writes;
      if (!mayRepeat || performance.now() + RETRY_MS >= end) throw etcdError(answer.error, writes);
      // At once to the next member; only who has asked all of them waits.
      if (attempt % this.#endpoints.length === 0)
        await pause(RETRY_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }
}

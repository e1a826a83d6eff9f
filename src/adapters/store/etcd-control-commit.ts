import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Condition, Write } from '../../ports/store/control-store.js';
import type { EtcdClient } from '../etcd/etcd-client.js';
import { deleteOp, putOp, range, rangeOp, rangesOf, writtenAt } from '../etcd/etcd-messages.js';
import type { RangeResponse, TxnRequest, TxnResponse } from '../generated/etcd/etcdserverpb/rpc.js';

/** A write fails within 5 s of the loss of the quorum (engine.md E10). */
const WRITE_MS = 4_500;
const RETRY_MS = 100;

export interface CommitParts {
  readonly client: Pick<EtcdClient, 'txn'>;
  readonly clock: Clock;
  /** Under which etcd knows a key. */
  readonly name: (key: string) => string;
}

/**
 * One transaction; undefined when a condition did not hold. One whose outcome is unknown is repeated with the same comparison until etcd
 * tells, for 4.5 s: a member forwards proposals to its leader without a promise, and one that was lost would be waited for in vain
 * (engine.md E7). Only where a key that is compared is also put: then it cannot be carried out twice.
 * @throws AgentError `store.unavailable` (certainly not written), `store.outcome_unknown`, `store.too_large`
 */
export async function commitOn(
  parts: CommitParts,
  conditions: readonly Condition[],
  writes: readonly Write[],
  options: CallOptions,
): Promise<bigint | undefined> {
  const { client, clock } = parts;
  const request = requestOf(parts, conditions, writes);
  const isOnce = conditions.some(({ key }) => writes.some((write) => write.key === key && write.value !== null));
  const begun = clock.monotonic();
  const leftMs = () => WRITE_MS - (clock.monotonic() - begun);
  let doubt: AgentError | undefined;
  for (;;) {
    const answer = await attempt(client, request, { ...options, withinMs: Math.max(RETRY_MS, leftMs()) });
    if (!(answer instanceof AgentError)) {
      if (answer.succeeded) return answer.header?.revision;
      if (doubt === undefined) return undefined;
      const ours = revisionOf(writes, rangesOf(answer));
      // Somebody has written there since: whether before or after this commit, nothing tells.
      if (ours === undefined) throw doubt;
      return ours;
    }
    if (answer.code === 'store.outcome_unknown') doubt ??= answer;
    if (doubt === undefined) throw answer;
    if (!isOnce || leftMs() <= 0) throw doubt;
    await clock.sleep(RETRY_MS, options);
  }
}

/** What failed is an answer, too; but for an abort, and what no repetition could mend. */
async function attempt(
  client: Pick<EtcdClient, 'txn'>,
  request: TxnRequest,
  options: CallOptions & { readonly withinMs: number },
): Promise<TxnResponse | AgentError> {
  try {
    return await client.txn(request, options);
  } catch (error) {
    if (error instanceof AgentError && error.kind === 'unavailable') return error;
    throw error;
  }
}

function requestOf({ name }: CommitParts, conditions: readonly Condition[], writes: readonly Write[]): TxnRequest {
  return {
    compare: conditions.map(({ key, version }) => writtenAt(name(key), version)),
    success: writes.map(({ key, value }) => (value === null ? deleteOp(name(key)) : putOp(name(key), value))),
    failure: writes.map(({ key }) => rangeOp(range(name(key)))),
  };
}

/** Of the commit that has left everything as these writes would: what tells two writers apart stands in the values. */
function revisionOf(writes: readonly Write[], found: readonly RangeResponse[]): bigint | undefined {
  const revisions = new Set<bigint>();
  for (const [index, { value }] of writes.entries()) {
    const [kv] = found[index]?.kvs ?? [];
    if (kv?.value.toString() !== (value ?? undefined)) return undefined;
    if (kv !== undefined) revisions.add(kv.modRevision);
  }
  const [revision, ...others] = revisions;
  return others.length === 0 ? revision : undefined;
}

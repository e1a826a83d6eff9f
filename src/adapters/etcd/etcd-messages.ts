import {
  type Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
  type RangeRequest,
  type RangeResponse,
  type RequestOp,
  type TxnResponse,
} from '../generated/etcd/etcdserverpb/rpc.js';

const EMPTY = Buffer.alloc(0);

/** The first key that does not begin with `prefix`, whose last byte must not be 0xff: ours are ASCII. */
export function endOf(prefix: string): Buffer {
  const end = Buffer.from(prefix);
  const last = end.length - 1;
  end.writeUInt8(end.readUInt8(last) + 1, last);
  return end;
}

interface RangeLimits {
  readonly end?: Buffer;
  readonly limit?: number;
  readonly revision?: bigint;
  readonly keysOnly?: boolean;
}

/** Of `key` alone without an end. */
export function range(key: string | Buffer, { end, limit = 0, revision = 0n, keysOnly = false }: RangeLimits = {}): RangeRequest {
  return { key: Buffer.from(key), rangeEnd: end ?? EMPTY, limit: BigInt(limit), revision, keysOnly };
}

export function rangeOp(request: RangeRequest): RequestOp {
  return { request: { $case: 'requestRange', value: request } };
}

export function putOp(key: string, value: string | Buffer): RequestOp {
  return { request: { $case: 'requestPut', value: { key: Buffer.from(key), value: Buffer.from(value) } } };
}

export function deleteOp(key: string, end?: Buffer): RequestOp {
  return { request: { $case: 'requestDeleteRange', value: { key: Buffer.from(key), rangeEnd: end ?? EMPTY } } };
}

/** Holds when the key was last written at etcd's revision `modRevision`; 0: it is absent. */
export function writtenAt(key: string, modRevision: bigint): Compare {
  return compare(key, Compare_CompareResult.EQUAL, modRevision);
}

export function exists(key: string): Compare {
  return compare(key, Compare_CompareResult.GREATER, 0n);
}

function compare(key: string, result: Compare_CompareResult, modRevision: bigint): Compare {
  const targetUnion = { $case: 'modRevision', value: modRevision } as const;
  return { result, target: Compare_CompareTarget.MOD, key: Buffer.from(key), targetUnion, rangeEnd: EMPTY };
}

/** What the ranges of a transaction found, in their order. */
export function rangesOf({ responses }: TxnResponse): readonly RangeResponse[] {
  return responses.flatMap(({ response }) => (response?.$case === 'responseRange' ? [response.value] : []));
}

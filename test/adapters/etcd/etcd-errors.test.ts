import { status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { type Failure, failureOf } from '../../../src/adapters/etcd/etcd-errors.js';

test.each<{ code: status; details: string; failure: Failure }>([
  { code: status.UNAVAILABLE, details: 'etcdserver: no leader', failure: 'not_done' },
  { code: status.RESOURCE_EXHAUSTED, details: 'etcdserver: too many requests', failure: 'not_done' },
  { code: status.RESOURCE_EXHAUSTED, details: 'etcdserver: mvcc: database space exceeded', failure: 'not_done' },
  { code: status.UNAVAILABLE, details: 'No connection established. Last error: ECONNREFUSED', failure: 'not_done' },
  { code: status.UNAVAILABLE, details: 'Name resolution failed for target dns:x', failure: 'not_done' },
  { code: status.DEADLINE_EXCEEDED, details: 'Deadline exceeded after 2.000s,Waiting for LB pick', failure: 'not_done' },
  { code: status.UNAVAILABLE, details: 'etcdserver: request timed out', failure: 'unknown' },
  { code: status.UNAVAILABLE, details: 'etcdserver: leader changed', failure: 'unknown' },
  { code: status.UNAVAILABLE, details: 'Connection dropped', failure: 'unknown' },
  {
    code: status.DEADLINE_EXCEEDED,
    details: 'Deadline exceeded after 2.000s,LB pick: 0.001s,remote_addr=127.0.0.1:1',
    failure: 'unknown',
  },
  { code: status.UNKNOWN, details: 'etcdserver: server stopped', failure: 'unknown' },
  { code: status.INVALID_ARGUMENT, details: 'etcdserver: too many operations in txn request', failure: 'refused' },
  { code: status.INVALID_ARGUMENT, details: 'etcdserver: request is too large', failure: 'too_large' },
  { code: status.RESOURCE_EXHAUSTED, details: 'Received message larger than max (1 vs. 0)', failure: 'too_large' },
  { code: status.OUT_OF_RANGE, details: 'etcdserver: mvcc: required revision has been compacted', failure: 'compacted' },
])('E7: $details is $failure', ({ code, details, failure }) => {
  expect(failureOf({ code, details })).toBe(failure);
});

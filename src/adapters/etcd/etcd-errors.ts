import { type ServiceError, status } from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';

/**
 * What became of a call that failed. `refused`: the request itself was wrong for etcd, and is so on every member. `not_done`: this member
 * has certainly not done it, another may. `unknown`: it was done or not.
 */
export type Failure = 'refused' | 'not_done' | 'unknown' | 'compacted' | 'too_large';

/** Answers that etcd gives before it proposes anything to its cluster. */
const NOT_PROPOSED = ['etcdserver: no leader', 'etcdserver: too many requests', 'etcdserver: mvcc: database space exceeded'];

/** Only what etcd or grpc-js says of itself is believed: everything else may have come after the request was carried out. */
export function failureOf({ code, details }: Pick<ServiceError, 'code' | 'details'>): Failure {
  if (code === status.OUT_OF_RANGE && details.includes('compacted')) return 'compacted';
  if (code === status.RESOURCE_EXHAUSTED && details.startsWith('Received message larger than')) return 'too_large';
  if (code === status.INVALID_ARGUMENT && details === 'etcdserver: request is too large') return 'too_large';
  if (NOT_PROPOSED.includes(details)) return 'not_done';
  // Of grpc-js, for a call that found no connection to be sent on.
  if (code === status.UNAVAILABLE && details.startsWith('No connection established')) return 'not_done';
  if (code === status.DEADLINE_EXCEEDED && details.endsWith('Waiting for LB pick')) return 'not_done';
  if (code === status.UNAVAILABLE && details.startsWith('Name resolution failed')) return 'not_done';
  const ofEtcd = details.startsWith('etcdserver: ');
  return ofEtcd && code !== status.UNAVAILABLE && code !== status.UNKNOWN ? 'refused' : 'unknown';
}

/** `wrote`: whether the call could change anything. */
export function etcdError(error: ServiceError, wrote: boolean): AgentError {
  const failure = failureOf(error);
  const problem = `etcd: ${error.details}`;
  const options = { cause: error };
  if (failure === 'too_large') return new AgentError('store.too_large', { problem }, options);
  if (failure === 'unknown' && wrote) return new AgentError('store.outcome_unknown', { problem }, options);
  return new AgentError('store.unavailable', { problem }, options);
}

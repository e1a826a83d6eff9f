import { type ClientUnaryCall, type Metadata, type ServiceError, status } from '@grpc/grpc-js';
import type { EtcdEndpoint } from './etcd-endpoint.js';

export type Send<Response> = (
  endpoint: EtcdEndpoint,
  metadata: Metadata,
  deadline: Date,
  callback: (error: ServiceError | null, response: Response) => void,
) => ClientUnaryCall;

export interface EtcdCall {
  readonly endpoint: EtcdEndpoint;
  readonly metadata: Metadata;
  /** After which it is given up. */
  readonly ms: number;
}

/** One attempt at one member. Rejects on abort only; an answer that came before the abort counts. */
export function etcdCall<Response>(
  send: Send<Response>,
  { endpoint, metadata, ms }: EtcdCall,
  signal: AbortSignal,
): Promise<{ readonly response: Response } | { readonly error: ServiceError }> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const call = send(endpoint, metadata, new Date(Date.now() + ms), (error, response) => {
      signal.removeEventListener('abort', onAbort);
      if (signal.aborted && error?.code === status.CANCELLED) reject(signal.reason);
      else resolve(error === null ? { response } : { error });
    });
    const onAbort = () => call.cancel();
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

import { type ClientUnaryCall, type CallOptions as GrpcCallOptions, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { clockProblem } from '../../domain/certificate/clock-skew.js';
import { type CallPurpose, callError, type FailedStatus } from '../../domain/certificate/registration.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Headers } from '../../domain/link/headers.js';
import { MAX_RECEIVED_BYTES } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import { findReach, type ReachTarget } from './reachability.js';

/** As `ServiceError`, which grpc-js throws and hands out. */
export type Send<Request, Response> = (
  request: Request,
  metadata: Metadata,
  options: Partial<GrpcCallOptions>,
  callback: (error: ServiceError | null, response: Response) => void,
) => ClientUnaryCall;

/** Of a client that makes a call or two and is closed: with a connection of its own, so that it is made with the certificate at hand. */
export const clientOptions = {
  'grpc.max_receive_message_length': MAX_RECEIVED_BYTES,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_http_proxy': 0,
  'grpc.enable_retries': 0,
};

/** Resolves with the answer, or with the error that the call ended with; rejects on abort with its reason. */
export function unary<Request, Response>(
  send: Send<Request, Response>,
  request: Request,
  timeoutMs: number,
  { signal, headers = {} }: CallOptions & { readonly headers?: Headers },
): Promise<{ readonly response: Response } | { readonly error: ServiceError }> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const call = send(request, metadataOf(headers), { deadline: Date.now() + timeoutMs }, (error, response) => {
      signal.removeEventListener('abort', onAbort);
      if (signal.aborted) reject(signal.reason);
      else resolve(error === null ? { response } : { error });
    });
    const onAbort = () => call.cancel();
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

function metadataOf(headers: Headers): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

/** What a failed call means; one that did not get through is followed up. @param now wall clock, milliseconds */
export async function explain(
  error: ServiceError,
  purpose: CallPurpose,
  target: ReachTarget,
  now: number,
  options: CallOptions,
): Promise<AgentError> {
  const failed = failedStatus(error.code);
  const wasReached = failed !== 'UNAVAILABLE' && failed !== 'DEADLINE_EXCEEDED';
  const finding = wasReached ? undefined : await findReach(target, options);
  const clock = clockProblem({ now, serverTime: dateOf(error.metadata), serverCertificate: finding?.serverCertificate });
  return callError({ status: failed, details: error.details, reach: finding?.reach, clock }, purpose, describe(target), error);
}

/** What a server has said, with this machine's clock where that is what is wrong. @param now wall clock, milliseconds */
export function clockAnswer(said: AgentError, { metadata }: ServiceError, now: number): AgentError {
  const clock = clockProblem({ now, serverTime: dateOf(metadata) });
  if (clock === undefined) return said;
  return new AgentError(said.code, { ...said.facts, problem: `${said.facts.problem ?? said.code}; ${clock}` }, { cause: said });
}

/** `host:port`, as grpc-js takes it as well. */
export function describe({ host, port }: Pick<ReachTarget, 'host' | 'port'>): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

export function failedStatus(code: status): FailedStatus {
  switch (code) {
    case status.UNAUTHENTICATED:
      return 'UNAUTHENTICATED';
    case status.PERMISSION_DENIED:
      return 'PERMISSION_DENIED';
    case status.NOT_FOUND:
      return 'NOT_FOUND';
    case status.INVALID_ARGUMENT:
      return 'INVALID_ARGUMENT';
    case status.UNAVAILABLE:
      return 'UNAVAILABLE';
    case status.DEADLINE_EXCEEDED:
      return 'DEADLINE_EXCEEDED';
    case status.RESOURCE_EXHAUSTED:
      return 'RESOURCE_EXHAUSTED';
    case status.UNIMPLEMENTED:
      return 'UNIMPLEMENTED';
    default:
      return 'OTHER';
  }
}

function dateOf(metadata: Metadata | undefined): number | undefined {
  const [text] = metadata?.get('date') ?? [];
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

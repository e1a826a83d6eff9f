import type { handleUnaryCall, Metadata, ServerUnaryCall } from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import { toStatus } from '../grpc/grpc-errors.js';

/** Ends when the caller has gone away. */
export function signalOf(call: {
  readonly cancelled: boolean;
  once(event: 'cancelled', listener: () => void): unknown;
}): AbortSignal {
  const controller = new AbortController();
  call.once('cancelled', () => controller.abort());
  if (call.cancelled) controller.abort();
  return controller.signal;
}

/** A call that answers once; what it throws becomes its status, and what nobody foresaw is told to `onFault`. */
export function unary<Request, Response>(
  onFault: (error: unknown) => void,
  handle: (call: ServerUnaryCall<Request, Response>, signal: AbortSignal) => Promise<Response>,
): handleUnaryCall<Request, Response> {
  return (call, callback) => {
    const signal = signalOf(call);
    handle(call, signal).then(
      (response) => callback(null, response),
      (error: unknown) => {
        if (!signal.aborted && !(error instanceof AgentError)) onFault(error);
        callback(toStatus(error));
      },
    );
  };
}

interface Refusing {
  emit(event: 'error', status: { readonly code: number; readonly details: string }): unknown;
}

/** A call that is always answered with this status; of every kind. */
export function refused(code: number, details: string) {
  return {
    unary: (
      _call: { readonly metadata: Metadata },
      callback: (error: { readonly code: number; readonly details: string }) => void,
    ) => callback({ code, details }),
    stream: (call: Refusing) => void call.emit('error', { code, details }),
  };
}

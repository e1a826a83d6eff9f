import type { handleServerStreamingCall, handleUnaryCall, Metadata, ServerUnaryCall, ServerWritableStream } from '@grpc/grpc-js';
import type { AdminCaller } from '../../domain/admin/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Logger } from '../../ports/logger.js';
import { toStatus } from '../grpc/grpc-errors.js';

/** A call of any kind, as far as it shows who makes it. */
export interface AdminCall {
  readonly metadata: Metadata;
  /** `address:port`, or whatever a connection without an address was given instead. */
  getPeer(): string;
}

/** Use cases as handlers of gRPC: each call has a signal of its own, and somebody who makes it. */
export class GrpcCalls {
  readonly #logger: Logger;
  readonly #callerOf: (call: AdminCall) => AdminCaller;

  constructor(logger: Logger, callerOf: (call: AdminCall) => AdminCaller) {
    this.#logger = logger;
    this.#callerOf = callerOf;
  }

  unary<Request, Response>(
    handle: (request: Request, signal: AbortSignal, caller: AdminCaller) => Promise<Response>,
  ): handleUnaryCall<Request, Response> {
    return (call, callback) => {
      const signal = signalOf(call);
      handle(call.request, signal, this.#callerOf(call)).then(
        (response) => callback(null, response),
        (error: unknown) => callback(this.#failed(error, signal)),
      );
    };
  }

  streaming<Request, Response>(
    handle: (request: Request, signal: AbortSignal, caller: AdminCaller) => AsyncIterable<Response>,
  ): handleServerStreamingCall<Request, Response> {
    return (call) => {
      const signal = signalOf(call);
      pump(call, handle(call.request, signal, this.#callerOf(call)), signal).then(
        () => call.end(),
        (error: unknown) => call.emit('error', this.#failed(error, signal)),
      );
    };
  }

  /** Whoever went away needs no answer, and is no failure. */
  #failed(error: unknown, { aborted }: AbortSignal) {
    if (!aborted && !(error instanceof AgentError)) this.#logger.error('an admin call failed', { error });
    return toStatus(error);
  }
}

/** Writes at the reader's pace: what a reader does not take is not produced. */
async function pump<Response>(
  call: ServerWritableStream<unknown, Response>,
  messages: AsyncIterable<Response>,
  signal: AbortSignal,
): Promise<void> {
  for await (const message of messages) {
    if (signal.aborted) return;
    if (!call.write(message)) await drained(call, signal);
  }
}

/** Or given up by its reader. */
async function drained(call: ServerWritableStream<unknown, unknown>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const go = () => resolve();
  call.once('drain', go);
  signal.addEventListener('abort', go, { once: true });
  await promise;
  call.off('drain', go);
  signal.removeEventListener('abort', go);
}

function signalOf(call: ServerUnaryCall<unknown, unknown> | ServerWritableStream<unknown, unknown>): AbortSignal {
  const controller = new AbortController();
  call.once('cancelled', () => controller.abort());
  if (call.cancelled) controller.abort();
  return controller.signal;
}

import type {
  handleBidiStreamingCall,
  handleServerStreamingCall,
  handleUnaryCall,
  Metadata,
  ServerWritableStream,
} from '@grpc/grpc-js';
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

/** Both sides of a call, as its handler has them. */
export interface Duplex<Request, Response> {
  /** In order, at the handler's pace. Ends when the caller has nothing more to say; leaving it ends nothing. */
  readonly requests: AsyncIterableIterator<Request>;
  /** Resolves when the caller may be given more, or has gone away. */
  write(response: Response): Promise<void>;
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

  /** The call ends when `handle` does. */
  duplex<Request, Response>(
    handle: (duplex: Duplex<Request, Response>, signal: AbortSignal, caller: AdminCaller) => Promise<void>,
  ): handleBidiStreamingCall<Request, Response> {
    return (call) => {
      const signal = signalOf(call);
      const write = async (response: Response) => {
        if (!signal.aborted && !call.write(response)) await drained(call, signal);
      };
      handle({ requests: requestsOf<Request>(call), write }, signal, this.#callerOf(call)).then(
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

/** Whoever stops reading a stream by itself destroys it, and its status is never sent. */
async function* requestsOf<Request>(call: AsyncIterable<Request>): AsyncGenerator<Request, void, undefined> {
  const iterator = call[Symbol.asyncIterator]();
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value;
}

interface Draining {
  once(event: 'drain', listener: () => void): unknown;
  off(event: 'drain', listener: () => void): unknown;
}

/** Or given up by its reader. */
async function drained(call: Draining, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const go = () => resolve();
  call.once('drain', go);
  signal.addEventListener('abort', go, { once: true });
  await promise;
  call.off('drain', go);
  signal.removeEventListener('abort', go);
}

function signalOf(call: { readonly cancelled: boolean; once(event: 'cancelled', listener: () => void): unknown }): AbortSignal {
  const controller = new AbortController();
  call.once('cancelled', () => controller.abort());
  if (call.cancelled) controller.abort();
  return controller.signal;
}

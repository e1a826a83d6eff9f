import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { CallOptions } from '../../ports/call-options.js';
import type { OpenSessionRequest, OpenSessionResponse } from '../generated/holdfast/admin/v1/fleet.js';
import { fromServiceError, isServiceError } from '../grpc/grpc-errors.js';

/** A session at a control plane, as its caller has it. */
export interface AdminSession {
  /** In order; ends without an error on abort. Failures are AgentErrors. */
  readonly responses: AsyncIterable<OpenSessionResponse>;
  /** In the order of the calls; resolves when there may be more. Nothing happens after the end. */
  send(request: OpenSessionRequest): Promise<void>;
  /** There is nothing more to say. */
  end(): void;
}

type Call = ClientDuplexStream<OpenSessionRequest, OpenSessionResponse>;

/** @param target for messages: where the daemon is */
export function adminSession(call: Call, target: string, { signal }: CallOptions): AdminSession {
  const onAbort = () => call.cancel();
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) call.cancel();
  // Whoever reads is told.
  call.on('error', () => {});
  let over = false;
  call.once('status', () => {
    over = true;
    signal.removeEventListener('abort', onAbort);
  });
  return {
    responses: responsesOf(call, target, signal),
    send: (request) => {
      if (over) return Promise.resolve();
      return new Promise((resolve) => call.write(request, () => resolve()));
    },
    end: () => {
      if (!over) call.end();
    },
  };
}

async function* responsesOf(call: Call, target: string, signal: AbortSignal): AsyncGenerator<OpenSessionResponse> {
  try {
    yield* call;
  } catch (error) {
    if (signal.aborted) return;
    throw isServiceError(error) ? fromServiceError(error, target) : error;
  }
}

import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { CallOptions } from '../../ports/call-options.js';
import type { OpenSessionRequest, OpenSessionResponse } from '../generated/holdfast/admin/v1/fleet.js';
import { isServiceError } from '../grpc/grpc-errors.js';
import type { AdminWay } from './admin-way.js';

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

export function adminSession(call: Call, way: Pick<AdminWay, 'failure'>, options: CallOptions): AdminSession {
  const { signal } = options;
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
    responses: responsesOf(call, way, options),
    send: (request) => {
      if (over) return Promise.resolve();
      return new Promise((resolve) => call.write(request, () => resolve()));
    },
    end: () => {
      if (!over) call.end();
    },
  };
}

async function* responsesOf(
  call: Call,
  way: Pick<AdminWay, 'failure'>,
  options: CallOptions,
): AsyncGenerator<OpenSessionResponse> {
  try {
    yield* call;
  } catch (error) {
    if (options.signal.aborted) return;
    throw isServiceError(error) ? await way.failure(error, options) : error;
  }
}

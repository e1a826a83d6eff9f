import {
  type ClientReadableStream,
  type ClientUnaryCall,
  credentials,
  type CallOptions as GrpcCallOptions,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import * as wire from '../generated/holdfast/admin/v1/admin.js';
import { fromServiceError, isServiceError } from './grpc-errors.js';
import { socketName } from './unix-socket.js';

/** Ten thousand objects with their status are about 15 MB. */
const MAX_RESPONSE_BYTES = 256 * 1024 * 1024;
/** The slowest call is the apply of a whole file; no answer after this is a daemon that hangs. */
const CALL_MS = 120_000;

type Send<Request, Response> = (
  request: Request,
  metadata: Metadata,
  options: Partial<GrpcCallOptions>,
  callback: (error: ServiceError | null, response: Response) => void,
) => ClientUnaryCall;

/** One daemon's admin API, as its callers use it. Every failure is an AgentError; on abort calls reject with the signal's reason. */
export class GrpcAdminClient {
  readonly #client: InstanceType<typeof wire.AdminServiceClient>;
  readonly #socket: string;
  readonly #release: () => void;

  /** @throws AgentError `admin.unreachable` when the socket's path is too long for the kernel and its folder is not there */
  constructor(socket: string) {
    const { name, release } = reachable(socket);
    this.#socket = socket;
    this.#release = release;
    this.#client = new wire.AdminServiceClient(`unix:${name}`, credentials.createInsecure(), {
      'grpc.max_receive_message_length': MAX_RESPONSE_BYTES,
      'grpc.default_authority': 'localhost',
      'grpc.enable_http_proxy': 0,
      'grpc.enable_retries': 0,
    });
  }

  apply(request: wire.ApplyRequest, options: CallOptions): Promise<wire.ApplyResponse> {
    return this.#unary(this.#client.apply.bind(this.#client), request, options);
  }

  delete(request: wire.DeleteRequest, options: CallOptions): Promise<wire.DeleteResponse> {
    return this.#unary(this.#client.delete.bind(this.#client), request, options);
  }

  get(request: wire.GetRequest, options: CallOptions): Promise<wire.GetResponse> {
    return this.#unary(this.#client.get.bind(this.#client), request, options);
  }

  status(options: CallOptions): Promise<wire.StatusResponse> {
    return this.#unary(this.#client.status.bind(this.#client), {}, options);
  }

  top(request: wire.TopRequest, options: CallOptions): Promise<wire.TopResponse> {
    return this.#unary(this.#client.top.bind(this.#client), request, options);
  }

  explain(request: wire.ExplainRequest, options: CallOptions): Promise<wire.ExplainResponse> {
    return this.#unary(this.#client.explain.bind(this.#client), request, options);
  }

  /** Ends without an error on abort. */
  watch(request: wire.WatchRequest, options: CallOptions): AsyncIterable<wire.WatchResponse> {
    return this.#stream(() => this.#client.watch(request), options);
  }

  /** Ends without an error on abort. */
  events(request: wire.EventsRequest, options: CallOptions): AsyncIterable<wire.EventsResponse> {
    return this.#stream(() => this.#client.events(request), options);
  }

  close(): void {
    this.#client.close();
    this.#release();
  }

  #unary<Request, Response>(send: Send<Request, Response>, request: Request, { signal }: CallOptions): Promise<Response> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const deadline = Date.now() + CALL_MS;
      const call = send(request, new Metadata(), { deadline }, (error, response) => {
        signal.removeEventListener('abort', onAbort);
        if (error === null) resolve(response);
        else reject(signal.aborted ? signal.reason : fromServiceError(error, this.#socket));
      });
      const onAbort = () => call.cancel();
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  async *#stream<Response>(open: () => ClientReadableStream<Response>, { signal }: CallOptions): AsyncIterable<Response> {
    if (signal.aborted) return;
    const call = open();
    const onAbort = () => call.cancel();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      yield* call;
    } catch (error) {
      if (signal.aborted) return;
      throw isServiceError(error) ? fromServiceError(error, this.#socket) : error;
    } finally {
      signal.removeEventListener('abort', onAbort);
      call.cancel();
    }
  }
}

function reachable(socket: string): ReturnType<typeof socketName> {
  try {
    return socketName(socket);
  } catch (error) {
    throw new AgentError('admin.unreachable', { problem: `no daemon answers at ${socket}` }, { cause: error });
  }
}

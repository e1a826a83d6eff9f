import { type CallOptions, type ClientReadableStream, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
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
  options: Partial<CallOptions>,
  callback: (error: ServiceError | null, response: Response) => void,
) => unknown;

/** One daemon's admin API, as its callers use it. Every failure is an AgentError. */
export class GrpcAdminClient {
  readonly #client: InstanceType<typeof wire.AdminServiceClient>;
  readonly #socket: string;
  readonly #release: () => void;

  /** @throws Error when the socket's folder is not there and its path is longer than the kernel takes */
  constructor(socket: string) {
    const { name, release } = socketName(socket);
    this.#socket = socket;
    this.#release = release;
    this.#client = new wire.AdminServiceClient(`unix:${name}`, credentials.createInsecure(), {
      'grpc.max_receive_message_length': MAX_RESPONSE_BYTES,
      'grpc.default_authority': 'localhost',
      'grpc.enable_http_proxy': 0,
      'grpc.enable_retries': 0,
    });
  }

  apply(request: wire.ApplyRequest): Promise<wire.ApplyResponse> {
    return this.#unary(this.#client.apply.bind(this.#client), request);
  }

  delete(request: wire.DeleteRequest): Promise<wire.DeleteResponse> {
    return this.#unary(this.#client.delete.bind(this.#client), request);
  }

  get(request: wire.GetRequest): Promise<wire.GetResponse> {
    return this.#unary(this.#client.get.bind(this.#client), request);
  }

  status(): Promise<wire.StatusResponse> {
    return this.#unary(this.#client.status.bind(this.#client), {});
  }

  top(request: wire.TopRequest): Promise<wire.TopResponse> {
    return this.#unary(this.#client.top.bind(this.#client), request);
  }

  explain(request: wire.ExplainRequest): Promise<wire.ExplainResponse> {
    return this.#unary(this.#client.explain.bind(this.#client), request);
  }

  /** Ends without an error on abort. */
  watch(request: wire.WatchRequest, signal: AbortSignal): AsyncIterable<wire.WatchResponse> {
    return this.#stream(this.#client.watch(request), signal);
  }

  /** Ends without an error on abort. */
  events(request: wire.EventsRequest, signal: AbortSignal): AsyncIterable<wire.EventsResponse> {
    return this.#stream(this.#client.events(request), signal);
  }

  close(): void {
    this.#client.close();
    this.#release();
  }

  #unary<Request, Response>(send: Send<Request, Response>, request: Request): Promise<Response> {
    return new Promise((resolve, reject) => {
      send(request, new Metadata(), { deadline: Date.now() + CALL_MS }, (error, response) => {
        if (error === null) resolve(response);
        else reject(fromServiceError(error, this.#socket));
      });
    });
  }

  async *#stream<Response>(call: ClientReadableStream<Response>, signal: AbortSignal): AsyncIterable<Response> {
    const onAbort = () => call.cancel();
    signal.addEventListener('abort', onAbort);
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

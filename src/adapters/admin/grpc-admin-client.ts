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
import * as fleetWire from '../generated/holdfast/admin/v1/fleet.js';
import * as nodeWire from '../generated/holdfast/admin/v1/node.js';
import { fromServiceError, isServiceError } from '../grpc/grpc-errors.js';
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

/** Unless it says how new the answer has to be, it is the newest. */
type Read<Request> = Omit<Request, keyof typeof newest> & Partial<typeof newest>;
const newest = { stale: false, atLeast: 0n };

/** One daemon's admin API, as its callers use it. Every failure is an AgentError; on abort calls reject with the signal's reason. */
export class GrpcAdminClient {
  readonly #client: InstanceType<typeof wire.AdminServiceClient>;
  readonly #fleet: InstanceType<typeof fleetWire.FleetServiceClient>;
  readonly #node: InstanceType<typeof nodeWire.NodeServiceClient>;
  readonly #socket: string;
  readonly #release: () => void;

  /** @throws AgentError `admin.unreachable` when the socket's path is too long for the kernel and its folder is not there */
  constructor(socket: string) {
    const { name, release } = reachable(socket);
    this.#socket = socket;
    this.#release = release;
    const channel = {
      'grpc.max_receive_message_length': MAX_RESPONSE_BYTES,
      'grpc.default_authority': 'localhost',
      'grpc.enable_http_proxy': 0,
      'grpc.enable_retries': 0,
    };
    // All use one connection: grpc-js shares it between channels of the same target and options.
    this.#client = new wire.AdminServiceClient(`unix:${name}`, credentials.createInsecure(), channel);
    this.#fleet = new fleetWire.FleetServiceClient(`unix:${name}`, credentials.createInsecure(), channel);
    this.#node = new nodeWire.NodeServiceClient(`unix:${name}`, credentials.createInsecure(), channel);
  }

  apply(request: wire.ApplyRequest, options: CallOptions): Promise<wire.ApplyResponse> {
    return this.#unary(this.#client.apply.bind(this.#client), request, options);
  }

  delete(request: wire.DeleteRequest, options: CallOptions): Promise<wire.DeleteResponse> {
    return this.#unary(this.#client.delete.bind(this.#client), request, options);
  }

  get(request: Read<wire.GetRequest>, options: CallOptions): Promise<wire.GetResponse> {
    return this.#unary(this.#client.get.bind(this.#client), { ...newest, ...request }, options);
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
  watch(request: Read<wire.WatchRequest>, options: CallOptions): AsyncIterable<wire.WatchResponse> {
    return this.#stream(() => this.#client.watch({ ...newest, ...request }), options);
  }

  /** Ends without an error on abort. */
  events(request: wire.EventsRequest, options: CallOptions): AsyncIterable<wire.EventsResponse> {
    return this.#stream(() => this.#client.events(request), options);
  }

  send(request: fleetWire.SendRequest, options: CallOptions): Promise<fleetWire.SendResponse> {
    return this.#unary(this.#fleet.send.bind(this.#fleet), request, options);
  }

  listInstructions(
    request: fleetWire.ListInstructionsRequest,
    options: CallOptions,
  ): Promise<fleetWire.ListInstructionsResponse> {
    return this.#unary(this.#fleet.listInstructions.bind(this.#fleet), request, options);
  }

  getInstruction(request: fleetWire.GetInstructionRequest, options: CallOptions): Promise<fleetWire.GetInstructionResponse> {
    return this.#unary(this.#fleet.getInstruction.bind(this.#fleet), request, options);
  }

  /** Ends without an error on abort. */
  watchInstructions(
    request: fleetWire.WatchInstructionsRequest,
    options: CallOptions,
  ): AsyncIterable<fleetWire.WatchInstructionsResponse> {
    return this.#stream(() => this.#fleet.watchInstructions(request), options);
  }

  cancelInstruction(
    request: fleetWire.CancelInstructionRequest,
    options: CallOptions,
  ): Promise<fleetWire.CancelInstructionResponse> {
    return this.#unary(this.#fleet.cancelInstruction.bind(this.#fleet), request, options);
  }

  listNodes(options: CallOptions): Promise<fleetWire.ListNodesResponse> {
    return this.#unary(this.#fleet.listNodes.bind(this.#fleet), {}, options);
  }

  cordonNode(request: fleetWire.CordonNodeRequest, options: CallOptions): Promise<fleetWire.CordonNodeResponse> {
    return this.#unary(this.#fleet.cordonNode.bind(this.#fleet), request, options);
  }

  removeNode(request: fleetWire.RemoveNodeRequest, options: CallOptions): Promise<fleetWire.RemoveNodeResponse> {
    return this.#unary(this.#fleet.removeNode.bind(this.#fleet), request, options);
  }

  revokeCertificate(
    request: fleetWire.RevokeCertificateRequest,
    options: CallOptions,
  ): Promise<fleetWire.RevokeCertificateResponse> {
    return this.#unary(this.#fleet.revokeCertificate.bind(this.#fleet), request, options);
  }

  /** In order; ends without an error on abort. */
  backup(request: fleetWire.BackupRequest, options: CallOptions): AsyncIterable<fleetWire.BackupResponse> {
    return this.#stream(() => this.#fleet.backup(request), options);
  }

  createToken(request: fleetWire.CreateTokenRequest, options: CallOptions): Promise<fleetWire.CreateTokenResponse> {
    return this.#unary(this.#fleet.createToken.bind(this.#fleet), request, options);
  }

  listTokens(options: CallOptions): Promise<fleetWire.ListTokensResponse> {
    return this.#unary(this.#fleet.listTokens.bind(this.#fleet), {}, options);
  }

  revokeToken(request: fleetWire.RevokeTokenRequest, options: CallOptions): Promise<fleetWire.RevokeTokenResponse> {
    return this.#unary(this.#fleet.revokeToken.bind(this.#fleet), request, options);
  }

  resync(request: nodeWire.ResyncRequest, options: CallOptions): Promise<nodeWire.ResyncResponse> {
    return this.#unary(this.#node.resync.bind(this.#node), request, options);
  }

  listJournal(options: CallOptions): Promise<nodeWire.ListJournalResponse> {
    return this.#unary(this.#node.listJournal.bind(this.#node), {}, options);
  }

  close(): void {
    this.#client.close();
    this.#fleet.close();
    this.#node.close();
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

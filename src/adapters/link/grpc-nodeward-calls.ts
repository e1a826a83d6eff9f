import { createHash } from 'node:crypto';
import { type ClientUnaryCall, type ClientWritableStream, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import type { InstallCommand } from '../../domain/install/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import {
  type ControlPlaneNode,
  type NodelogEntry,
  type OverlayPeer,
  type OverlaySet,
  severityNumber,
} from '../../domain/link/calls.js';
import { type LinkMessage, MAX_SENT_BYTES } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { IssuedPair } from '../../ports/driving/enrolment.js';
import type { LinkAddress } from '../../ports/link/control-link.js';
import type { NodewardCalls } from '../../ports/link/nodeward-calls.js';
import { ResultServiceService, type UploadRequest, type UploadResponse } from '../generated/holdfast/link/v1/link.js';
import { NodewardService } from '../generated/runos/nodeward/proto/l2sec/l2sec.js';
import type { LinkConnection } from './link-connection.js';
import type { LinkConnections } from './link-connections.js';
import { codeOf } from './link-status.js';
import { installCommand, overlayPeer } from './mapping.js';

const CALL_MS = 30_000;
/** 12 MiB over a slow line: 20 KiB/s. */
const UPLOAD_MS = 600_000;
const CHUNK_BYTES = 64 * 1024;
/** `[]` in base64: none of them is here yet. */
const NO_FILES = 'W10=';

interface UnaryMethod<Request, Response> {
  readonly path: string;
  readonly requestSerialize: (value: Request) => Buffer;
  readonly responseDeserialize: (value: Buffer) => Response;
}

type Callback<Response> = (error: ServiceError | null, response?: Response) => void;

export interface GrpcNodewardCallsParts {
  /** Those of the link: calls share its connection. */
  readonly connections: LinkConnections;
  /** Which server is asked. */
  readonly address: () => LinkAddress;
}

/** The agent's calls over the link's connections. */
export class GrpcNodewardCalls implements NodewardCalls {
  readonly #parts: GrpcNodewardCallsParts;

  constructor(parts: GrpcNodewardCallsParts) {
    this.#parts = parts;
  }

  async controlPlaneNodes(options: CallOptions): Promise<readonly ControlPlaneNode[]> {
    const answer = await this.#unary(NodewardService.getControlPlaneNodes, {}, options);
    return answer.ControlPlaneNodes.map(({ vpnIp, kubeEndpoint }) => ({ vpnIp, kubeEndpoint }));
  }

  async manualSync(self: OverlayPeer, nodeIsReady: boolean, options: CallOptions): Promise<OverlaySet> {
    const nodePeer = { ...self, extraAllowedIps: [...self.extraAllowedIps] };
    const { peers, address } = await this.#unary(NodewardService.manualSync, { nodePeer, nodeIsReady }, options);
    return { peers: peers.map(overlayPeer), address };
  }

  async installCommands(options: CallOptions): Promise<readonly InstallCommand[]> {
    const { commands } = await this.#unary(NodewardService.getInstallCommands, { jsonB64FileList: NO_FILES }, options);
    return commands.map(installCommand);
  }

  async updateStatus(text: string, options: CallOptions): Promise<void> {
    await this.#unary(NodewardService.updateStatus, { status: text.toWellFormed() }, options);
  }

  async addNodelog(entry: NodelogEntry, options: CallOptions): Promise<void> {
    await this.#unary(NodewardService.addNodelog, { ...entry, severity: severityNumber(entry.severity) }, options);
  }

  async regenerateCertificate(csr: Uint8Array, options: CallOptions): Promise<IssuedPair> {
    const request = { csr: Buffer.from(csr) };
    const { privateKey, publicKey, caCert } = await this.#unary(NodewardService.regenerateCertificate, request, options);
    return { privateKey, certificate: publicKey, ca: caCert };
  }

  async uploadReply(reply: LinkMessage, { signal }: CallOptions): Promise<void> {
    const data = Buffer.from(reply.jsonB64, 'utf8');
    if (data.length > MAX_SENT_BYTES) {
      throw new AgentError('link.too_large', { problem: `${reply.type} has ${data.length} bytes, ${MAX_SENT_BYTES} at most` });
    }
    const { path } = ResultServiceService.upload;
    await this.#call<UploadResponse>(UPLOAD_MS, signal, (client, deadline, callback) => {
      const call = client.makeClientStreamRequest<UploadRequest, UploadResponse>(
        path,
        ResultServiceService.upload.requestSerialize,
        ResultServiceService.upload.responseDeserialize,
        new Metadata(),
        { deadline },
        callback,
      );
      sendChunks(call, reply, data);
      return call;
    });
  }

  #unary<Request, Response>(
    { path, requestSerialize, responseDeserialize }: UnaryMethod<Request, Response>,
    request: Request,
    { signal }: CallOptions,
  ): Promise<Response> {
    return this.#call<Response>(CALL_MS, signal, (client, deadline, callback) =>
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, new Metadata(), { deadline }, callback),
    );
  }

  async #call<Response>(
    budgetMs: number,
    signal: AbortSignal,
    begin: (client: LinkConnection['client'], deadline: number, callback: Callback<Response>) => Pick<ClientUnaryCall, 'cancel'>,
  ): Promise<Response> {
    const { connections, address } = this.#parts;
    const connection = await connections.to(address(), { signal });
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    connections.hold(connection);
    const call = begin(connection.client, Date.now() + budgetMs, (error, response) => {
      if (error === null && response !== undefined) resolve(response);
      else reject(error ?? new AgentError('link.refused', { problem: 'the server answered with nothing' }));
    });
    const onAbort = () => call.cancel();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await promise;
    } catch (error) {
      signal.throwIfAborted();
      throw callFailure(error);
    } finally {
      signal.removeEventListener('abort', onAbort);
      connections.release(connection);
    }
  }
}

/** At the pace of the connection, so that a slow line has room for heartbeats between two chunks. */
function sendChunks(call: ClientWritableStream<UploadRequest>, { type, tag }: LinkMessage, data: Buffer): void {
  const sha256 = createHash('sha256').update(data).digest();
  const next = (at: number) => {
    const end = Math.min(data.length, at + CHUNK_BYTES);
    const first = at === 0 ? { tag, type } : { tag: '', type: '' };
    const isLast = end === data.length;
    const chunk = { ...first, data: data.subarray(at, end), sha256: isLast ? sha256 : Buffer.alloc(0) };
    call.write(chunk, () => (isLast ? call.end() : next(end)));
  };
  // A call that fails says so by its callback.
  call.on('error', () => {});
  next(0);
}

function callFailure(error: unknown): unknown {
  if (!(error instanceof Error && 'details' in error && 'code' in error)) return error;
  const { details, code } = error;
  if (typeof details !== 'string' || typeof code !== 'number') return error;
  if (code === status.RESOURCE_EXHAUSTED && details.includes('larger than')) {
    return new AgentError('link.too_large', { problem: details }, { cause: error });
  }
  return new AgentError(codeOf(code, details), { problem: details }, { cause: error });
}

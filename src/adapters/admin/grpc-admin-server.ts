import { chmod, mkdir, rm, stat } from 'node:fs/promises';
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
} from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { Explainer } from '../../ports/driving/explainer.js';
import type { Operations } from '../../ports/driving/operations.js';
import type { Resources } from '../../ports/driving/resources.js';
import type { DrivingServer } from '../../ports/driving/server.js';
import type { Logger } from '../../ports/logger.js';
import { type AdminServiceServer, AdminServiceService, type ApplyRequest } from '../generated/holdfast/admin/v1/admin.js';
import { toStatus } from './grpc-errors.js';
import {
  applyToWire,
  changeToWire,
  eventToWire,
  explanationToWire,
  refFromWire,
  selectorFromWire,
  statusToWire,
  trafficToWire,
} from './mapping.js';
import { socketName } from './unix-socket.js';

/** A file of 16 MiB and what JSON and its neighbours add. */
const MAX_REQUEST_BYTES = 64 * 1024 * 1024;

export interface GrpcAdminServerParts {
  /** A folder of our own, mode 0700, and the socket in it. */
  readonly folder: AbsolutePath;
  readonly socket: AbsolutePath;
  readonly resources: Resources;
  readonly operations: Operations;
  readonly explainer: Explainer;
  readonly logger: Logger;
  /** The peer's uid of a connected socket's descriptor (SO_PEERCRED). */
  readonly peerUid: (descriptor: number) => number;
}

/** The admin API on a unix socket. Only the daemon's own user and root are let in. */
export class GrpcAdminServer implements DrivingServer {
  readonly #parts: GrpcAdminServerParts;
  #grpc: Server | undefined;
  #listener: NetServer | undefined;
  #release: () => void = () => {};
  readonly #sockets = new Set<Socket>();

  constructor(parts: GrpcAdminServerParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { folder, socket } = this.#parts;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const owner = await stat(folder);
    if (owner.uid !== process.geteuid?.()) {
      throw new AgentError('admin.unreachable', { problem: `${folder} belongs to another user (uid ${owner.uid})` });
    }
    await chmod(folder, 0o700);
    // Whoever starts holds the data directory's lock: a socket that is there has no daemon behind it.
    await rm(socket, { force: true });
    const grpc = new Server({ 'grpc.max_receive_message_length': MAX_REQUEST_BYTES });
    grpc.addService(AdminServiceService, this.#handlers());
    this.#grpc = grpc;
    const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
    this.#listener = createServer((connection) => {
      if (!this.#admit(connection)) return;
      injector.injectConnection(connection);
    });
    await this.#listen(this.#listener, socket);
  }

  async stop(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    this.#grpc?.forceShutdown();
    this.#grpc = undefined;
    for (const socket of this.#sockets) socket.destroy();
    if (listener?.listening === true) await new Promise<void>((resolve) => listener.close(() => resolve()));
    this.#release();
    this.#release = () => {};
  }

  /** The socket has its mode from the first moment: bind makes the file under the umask. */
  async #listen(listener: NetServer, path: AbsolutePath): Promise<void> {
    const { name, release } = socketName(path);
    this.#release = release;
    const mask = process.umask(0o177);
    try {
      const listening = new Promise<void>((resolve, reject) => {
        listener.once('error', reject);
        listener.listen(name, resolve);
      });
      await listening;
    } finally {
      process.umask(mask);
    }
  }

  #admit(connection: Socket): boolean {
    const uid = this.#peerUidOf(connection);
    if (uid !== undefined && uid !== 0 && uid !== process.geteuid?.()) {
      this.#parts.logger.warn('refused a connection to the admin socket', { uid });
      connection.destroy();
      return false;
    }
    this.#sockets.add(connection);
    connection.on('close', () => this.#sockets.delete(connection));
    connection.on('error', () => {});
    return true;
  }

  /** `undefined` when Node does not show the descriptor: then the modes of folder and socket decide. */
  #peerUidOf(connection: Socket): number | undefined {
    const handle: unknown = Reflect.get(connection, '_handle');
    const descriptor: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'fd') : undefined;
    return typeof descriptor === 'number' && descriptor >= 0 ? this.#parts.peerUid(descriptor) : undefined;
  }

  #handlers(): AdminServiceServer {
    const { resources, operations, explainer } = this.#parts;
    return {
      apply: this.#unary(async (request, signal) => applyToWire(await resources.apply(applyCall(request), { signal }))),
      delete: this.#unary(async ({ refs, dryRun, ignoreNotFound, requestId }, signal) => {
        const call = { refs: refs.map(refFromWire), dryRun, ignoreNotFound, requestId: requestId || undefined };
        const { revision, deleted } = await resources.delete(call, { signal });
        return { revision, deleted: [...deleted] };
      }),
      get: this.#unary(async ({ selector }, signal) => {
        const { revision, objects } = await resources.get(selectorFromWire(selector), { signal });
        return { revision, objectsJson: objects.map((object) => JSON.stringify(object)) };
      }),
      watch: this.#streaming(async function* ({ selector }, signal) {
        for await (const change of resources.watch(selectorFromWire(selector), { signal })) yield changeToWire(change);
      }),
      status: this.#unary(async () => statusToWire(operations.status())),
      events: this.#streaming(async function* ({ follow }, signal) {
        for await (const event of operations.events(follow, { signal })) yield eventToWire(event);
      }),
      top: this.#unary(async ({ namespace }) => {
        const { monotonicMs, listeners } = operations.traffic();
        const services = listeners.map(trafficToWire).filter((service) => namespace === '' || service.namespace === namespace);
        return { monotonicMs: BigInt(Math.round(monotonicMs)), services };
      }),
      explain: this.#unary(async ({ namespace, service, port, from }, signal) =>
        explanationToWire(
          await explainer.explain({ namespace, service, port: port || undefined, from: from || undefined }, { signal }),
        ),
      ),
    };
  }

  #unary<Request, Response>(
    handle: (request: Request, signal: AbortSignal) => Promise<Response>,
  ): handleUnaryCall<Request, Response> {
    return (call, callback) => {
      handle(call.request, signalOf(call)).then(
        (response) => callback(null, response),
        (error: unknown) => callback(this.#failed(error)),
      );
    };
  }

  #streaming<Request, Response>(
    handle: (request: Request, signal: AbortSignal) => AsyncIterable<Response>,
  ): handleServerStreamingCall<Request, Response> {
    return (call) => {
      const signal = signalOf(call);
      pump(call, handle(call.request, signal), signal).then(
        () => call.end(),
        (error: unknown) => call.emit('error', this.#failed(error)),
      );
    };
  }

  #failed(error: unknown) {
    if (!(error instanceof AgentError)) this.#parts.logger.error('an admin call failed', { error });
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
    if (call.write(message)) continue;
    await new Promise<void>((resolve) => {
      call.once('drain', resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}

function signalOf(call: ServerUnaryCall<unknown, unknown> | ServerWritableStream<unknown, unknown>): AbortSignal {
  const controller = new AbortController();
  call.on('cancelled', () => controller.abort());
  return controller.signal;
}

/** @throws AgentError `resource.invalid` for a document that is not JSON */
function applyCall({ documents, source, prune, dryRun, requestId }: ApplyRequest) {
  return {
    documents: documents.map(({ file, number, json }) => ({ file, number, value: parseJson(file, number, json) })),
    source,
    prune,
    dryRun,
    requestId: requestId || undefined,
  };
}

function parseJson(file: string, number: number, json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new AgentError('resource.invalid', { problem: `${file}: document ${number}: expected JSON` }, { cause: error });
  }
}

import { chmod, lstat, rm } from 'node:fs/promises';
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AbsolutePath } from '../../domain/kernel/paths.js';
import { revision } from '../../domain/log/model.js';
import type { Explainer } from '../../ports/driving/explainer.js';
import type { Operations } from '../../ports/driving/operations.js';
import type { ReadOptions, Resources } from '../../ports/driving/resources.js';
import type { DrivingServer } from '../../ports/driving/server.js';
import type { Logger } from '../../ports/logger.js';
import { ensureFolder } from '../files/durable-file.js';
import {
  type AdminServiceServer,
  AdminServiceService,
  type ApplyRequest,
  type GetRequest,
} from '../generated/holdfast/admin/v1/admin.js';
import { FleetServiceService } from '../generated/holdfast/admin/v1/fleet.js';
import { NodeServiceService } from '../generated/holdfast/admin/v1/node.js';
import { type FleetParts, fleetHandlers } from './fleet-handlers.js';
import { GrpcCalls, PEER_PREFIX } from './grpc-calls.js';
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
import { type NodeParts, nodeHandlers } from './node-handlers.js';
import { socketName } from './unix-socket.js';

/** A file of 16 MiB and what JSON and its neighbours add. */
const MAX_REQUEST_BYTES = 64 * 1024 * 1024;
/** People and their scripts; each takes a descriptor from the connections that the node carries. */
const MAX_CONNECTIONS = 256;

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
  /** Of a control plane; undefined where there is no fleet. */
  readonly fleet?: FleetParts | undefined;
  /** Of a node of a fleet; undefined where there is no control plane elsewhere. */
  readonly node?: NodeParts | undefined;
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

  /** @throws AgentError `admin.not_served` */
  async start(): Promise<void> {
    const { folder, socket } = this.#parts;
    try {
      await ownFolder(folder);
      // Whoever starts holds the data directory's lock: a socket that is there has no daemon behind it.
      await rm(socket, { force: true });
      await this.#serve(socket);
    } catch (error) {
      if (error instanceof AgentError) throw error;
      const problem = `${socket}: ${error instanceof Error ? error.message : String(error)}`;
      throw new AgentError('admin.not_served', { problem }, { cause: error });
    }
  }

  async stop(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    const closed = listener?.listening === true ? new Promise<void>((resolve) => listener.close(() => resolve())) : undefined;
    this.#grpc?.forceShutdown();
    this.#grpc = undefined;
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    this.#release();
    this.#release = () => {};
  }

  async #serve(socket: AbsolutePath): Promise<void> {
    const grpc = new Server({ 'grpc.max_receive_message_length': MAX_REQUEST_BYTES });
    const calls = new GrpcCalls(this.#parts.logger);
    grpc.addService(AdminServiceService, this.#handlers(calls));
    const { fleet, node } = this.#parts;
    if (fleet !== undefined) grpc.addService(FleetServiceService, fleetHandlers(calls, fleet));
    if (node !== undefined) grpc.addService(NodeServiceService, nodeHandlers(calls, node));
    this.#grpc = grpc;
    const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
    const listener = createServer((connection) => {
      if (this.#admit(connection)) injector.injectConnection(connection);
    });
    listener.maxConnections = MAX_CONNECTIONS;
    this.#listener = listener;
    await this.#listen(listener, socket);
    // Running out of descriptors fails an accept; the next one is tried by itself.
    listener.on('error', (error) => this.#parts.logger.warn('the admin socket could not accept', { error }));
  }

  async #listen(listener: NetServer, path: AbsolutePath): Promise<void> {
    const { name, release } = socketName(path);
    this.#release = release;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    listener.once('error', reject);
    // The socket has its mode from the first moment: bind, which is done when listen returns, makes the file under the umask.
    const mask = process.umask(0o177);
    try {
      listener.listen(name, resolve);
    } finally {
      process.umask(mask);
    }
    await promise;
    listener.off('error', reject);
  }

  #admit(connection: Socket): boolean {
    const uid = this.#peerUidOf(connection);
    if (uid !== undefined && uid !== 0 && uid !== process.geteuid?.()) {
      this.#parts.logger.warn('refused a connection to the admin socket', { uid });
      connection.destroy();
      return false;
    }
    // A unix socket has no address; what each call shows of its peer is whose it is.
    Object.defineProperty(connection, 'remoteAddress', { value: `${PEER_PREFIX}${uid ?? 'unknown'}` });
    this.#sockets.add(connection);
    connection.on('close', () => this.#sockets.delete(connection));
    connection.on('error', () => {});
    return true;
  }

  /** `undefined` when Node does not show the descriptor, or it is gone: then the modes of folder and socket decide. */
  #peerUidOf(connection: Socket): number | undefined {
    const handle: unknown = Reflect.get(connection, '_handle');
    const descriptor: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'fd') : undefined;
    if (typeof descriptor !== 'number' || descriptor < 0) return undefined;
    try {
      return this.#parts.peerUid(descriptor);
    } catch (error) {
      this.#parts.logger.warn('the user behind a connection to the admin socket is not known', { error });
      return undefined;
    }
  }

  #handlers(calls: GrpcCalls): AdminServiceServer {
    const { resources, operations, explainer } = this.#parts;
    return {
      apply: calls.unary(async (request, signal) => applyToWire(await resources.apply(applyCall(request), { signal }))),
      delete: calls.unary(async ({ refs, dryRun, ignoreNotFound, requestId }, signal) => {
        const call = { refs: refs.map(refFromWire), dryRun, ignoreNotFound, requestId: requestId || undefined };
        const { revision, deleted } = await resources.delete(call, { signal });
        return { revision, deleted: [...deleted] };
      }),
      get: calls.unary(async ({ selector, ...read }, signal) => {
        const { revision, objects, ageMs } = await resources.get(selectorFromWire(selector), readOptions(read, signal));
        return { revision, objectsJson: objects.map((object) => JSON.stringify(object)), ageMs: BigInt(Math.round(ageMs)) };
      }),
      watch: calls.streaming(async function* ({ selector, ...read }, signal) {
        const changes = resources.watch(selectorFromWire(selector), readOptions(read, signal));
        for await (const change of changes) yield changeToWire(change);
      }),
      status: calls.unary(async () => statusToWire(operations.status())),
      events: calls.streaming(async function* ({ follow }, signal) {
        for await (const event of operations.events(follow, { signal })) yield eventToWire(event);
      }),
      top: calls.unary(async ({ namespace }) => {
        const { monotonicMs, listeners } = operations.traffic();
        const services = listeners.map(trafficToWire).filter((service) => namespace === '' || service.namespace === namespace);
        return { monotonicMs: BigInt(Math.round(monotonicMs)), services };
      }),
      explain: calls.unary(async ({ namespace, service, port, from }, signal) =>
        explanationToWire(
          await explainer.explain({ namespace, service, port: port || undefined, from: from || undefined }, { signal }),
        ),
      ),
    };
  }
}

function readOptions({ stale, atLeast }: Pick<GetRequest, 'stale' | 'atLeast'>, signal: AbortSignal): ReadOptions {
  return { signal, stale, ...(atLeast === 0n ? {} : { atLeast: revision(atLeast) }) };
}

/** Makes it ours and closed to others. */
async function ownFolder(folder: AbsolutePath): Promise<void> {
  await ensureFolder(folder);
  const entry = await lstat(folder);
  if (!entry.isDirectory()) throw new AgentError('admin.not_served', { problem: `${folder} is no folder` });
  if (entry.uid !== process.geteuid?.()) {
    throw new AgentError('admin.not_served', { problem: `${folder} belongs to another user (uid ${entry.uid})` });
  }
  await chmod(folder, 0o700);
}

/** @throws AgentError `resource.invalid` for a document that is not JSON */
function applyCall({ documents, source, prune, dryRun, requestId }: ApplyRequest) {
  return {
    documents: documents.map(({ file, number, json, path }) => ({ file, number, path, value: parseJson(file, number, json) })),
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

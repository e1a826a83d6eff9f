import { chmod, lstat, rm } from 'node:fs/promises';
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import type { AdminCaller } from '../../domain/admin/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { DrivingServer } from '../../ports/driving/server.js';
import { ensureFolder } from '../files/durable-file.js';
import { type AdminParts, adminServices, MAX_REQUEST_BYTES } from './admin-services.js';
import type { AdminCall } from './grpc-calls.js';
import { socketName } from './unix-socket.js';

/** People and their scripts; each takes a descriptor from the connections that the node carries. */
const MAX_CONNECTIONS = 256;

/** Before the user's id, where a connection would have an address. */
const PEER_PREFIX = 'uid:';

export interface GrpcAdminServerParts extends AdminParts {
  /** A folder of our own, mode 0700, and the socket in it. */
  readonly folder: AbsolutePath;
  readonly socket: AbsolutePath;
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
    for (const { definition, implementation } of adminServices(this.#parts, localCaller)) {
      grpc.addService(definition, implementation);
    }
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

/** Whoever is let in may do everything. */
function localCaller(call: AdminCall): AdminCaller {
  const peer = call.getPeer();
  const name = `local:${peer.startsWith(PEER_PREFIX) ? peer.slice(PEER_PREFIX.length) : 'unknown'}`;
  return { name, who: name, grade: 'admin', rule: 'admin socket' };
}

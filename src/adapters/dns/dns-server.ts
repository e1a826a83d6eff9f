import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { AgentError } from '../../domain/kernel/errors.js';
import { type AddressPort, formatAddressPort, type IpAddress, portNumber } from '../../domain/kernel/network.js';
import type { BindFailure } from '../../ports/dataplane/data-plane.js';
import type { DnsResponder } from '../../ports/dns/dns-responder.js';
import type { NameAnswers } from '../../ports/driving/name-answers.js';
import type { DrivingServer } from '../../ports/driving/server.js';
import type { Logger } from '../../ports/logger.js';
import { errnoOf } from '../files/errno.js';
import { TcpQueries } from './tcp-queries.js';

const MAX_CONNECTIONS = 256;
/** With another port for TCP than for UDP nobody could ask again by TCP. */
const ATTEMPTS_FOR_BOTH = 10;

export interface DnsServerParts {
  readonly listen: AddressPort | 'off';
  /** Whether another port will do when this one is taken. */
  readonly mayMove: boolean;
  /** By UDP; started before this server is. */
  readonly responder: DnsResponder;
  /** By TCP. */
  readonly answers: NameAnswers;
  readonly logger: Logger;
}

interface Bound {
  readonly tcp: Server;
  readonly port: number;
}

/** Names by UDP and TCP (RFC 1035, 4.2; RFC 7766): both, or neither. */
export class DnsServer implements DrivingServer {
  readonly #parts: DnsServerParts;
  readonly #connections = new Set<Socket>();
  #bound: Bound | undefined;

  constructor(parts: DnsServerParts) {
    this.#parts = parts;
  }

  /** `address:port` while it serves, else empty. */
  get address(): string {
    const { listen } = this.#parts;
    return listen === 'off' || this.#bound === undefined ? '' : formatAddressPort(listen.address, this.#bound.port);
  }

  /** @throws AgentError `dns.not_served` */
  async start(): Promise<void> {
    const { listen, mayMove, logger } = this.#parts;
    if (listen === 'off' || this.#bound !== undefined) return;
    let failure: AgentError | undefined;
    const ports = mayMove ? [listen.port, ...Array<number>(ATTEMPTS_FOR_BOTH).fill(0)] : [listen.port];
    for (const port of ports) {
      try {
        this.#bound = await this.#bind(listen.address, port);
        if (failure !== undefined) logger.warn(`dns: ${failure.facts.problem}; names are answered on ${this.address} instead`);
        return;
      } catch (error) {
        const problem = `${formatAddressPort(listen.address, port)} cannot be bound: ${reasonOf(error)}`;
        failure ??= new AgentError('dns.not_served', { problem }, { cause: error });
      }
    }
    if (failure !== undefined) throw failure;
  }

  async stop(): Promise<void> {
    const bound = this.#bound;
    this.#bound = undefined;
    if (bound === undefined) return;
    this.#parts.responder.listen([]);
    const closed = once(bound.tcp, 'close');
    bound.tcp.close();
    for (const connection of this.#connections) connection.destroy();
    await closed;
  }

  async #bind(address: IpAddress, wanted: number): Promise<Bound> {
    const tcp = createServer((socket) => this.#accept(socket));
    tcp.maxConnections = MAX_CONNECTIONS;
    tcp.listen({ host: address, port: wanted, exclusive: true });
    await once(tcp, 'listening');
    const bound = tcp.address();
    const port = portNumber(bound === null || typeof bound === 'string' ? wanted : bound.port);
    const [udp] = port === undefined ? [] : this.#parts.responder.listen([{ address, port }]);
    if (port === undefined || udp?.listening !== true) {
      tcp.close();
      await once(tcp, 'close');
      throw new UdpNotBound(udp?.listening === false ? udp.reason : 'other');
    }
    tcp.on('error', (error) => this.#parts.logger.warn('dns: a connection could not be accepted', { error }));
    return { tcp, port };
  }

  #accept(socket: Socket): void {
    this.#connections.add(socket);
    socket.once('close', () => this.#connections.delete(socket));
    new TcpQueries(socket, (query) => this.#parts.answers.answer(query, 'tcp')).serve();
  }
}

class UdpNotBound extends Error {
  readonly reason: BindFailure;

  constructor(reason: BindFailure) {
    super(`UDP: ${reason}`);
    this.reason = reason;
  }
}

/** As the kernel names it, whichever of the two could not be bound. */
function reasonOf(error: unknown): string {
  return error instanceof UdpNotBound ? (errnos[error.reason] ?? error.message) : (errnoOf(error) ?? String(error));
}

const errnos: Partial<Record<BindFailure, string>> = {
  ...{ address_in_use: 'EADDRINUSE', permission_denied: 'EACCES', address_unavailable: 'EADDRNOTAVAIL', fd_limit: 'EMFILE' },
};

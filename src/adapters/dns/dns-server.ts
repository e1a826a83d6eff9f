import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { AgentError } from '../../domain/kernel/errors.js';
import { type AddressPort, formatAddressPort } from '../../domain/kernel/network.js';
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
  readonly answers: NameAnswers;
  readonly logger: Logger;
}

interface Bound {
  readonly udp: UdpSocket;
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
        const problem = `${formatAddressPort(listen.address, port)} cannot be bound: ${errnoOf(error) ?? String(error)}`;
        failure ??= new AgentError('dns.not_served', { problem }, { cause: error });
      }
    }
    if (failure !== undefined) throw failure;
  }

  async stop(): Promise<void> {
    const bound = this.#bound;
    this.#bound = undefined;
    if (bound === undefined) return;
    bound.udp.close();
    const closed = once(bound.tcp, 'close');
    bound.tcp.close();
    for (const connection of this.#connections) connection.destroy();
    await closed;
  }

  async #bind(address: string, wanted: number): Promise<Bound> {
    const tcp = createServer((socket) => this.#accept(socket));
    tcp.maxConnections = MAX_CONNECTIONS;
    tcp.listen({ host: address, port: wanted, exclusive: true });
    await once(tcp, 'listening');
    const bound = tcp.address();
    const port = bound === null || typeof bound === 'string' ? wanted : bound.port;
    const udp = createSocket(address.includes(':') ? 'udp6' : 'udp4');
    try {
      udp.bind({ address, port, exclusive: true });
      await once(udp, 'listening');
    } catch (error) {
      udp.close();
      tcp.close();
      await once(tcp, 'close');
      throw error;
    }
    const { logger } = this.#parts;
    tcp.on('error', (error) => logger.warn('dns: a connection could not be accepted', { error }));
    udp.on('error', (error) => logger.warn('dns: a datagram could not be sent or received', { error }));
    udp.on('message', (query, { address: from, port: fromPort }) => {
      const answered = this.#parts.answers.answer(query, 'udp');
      // A failure to send is of that asker alone, who asks again.
      if (answered !== undefined) udp.send(answered, fromPort, from, () => {});
    });
    return { udp, tcp, port };
  }

  #accept(socket: Socket): void {
    this.#connections.add(socket);
    socket.once('close', () => this.#connections.delete(socket));
    new TcpQueries(socket, (query) => this.#parts.answers.answer(query, 'tcp')).serve();
  }
}

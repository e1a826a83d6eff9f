import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AddressPort } from '../../domain/kernel/network.js';
import { formatAddressPort } from '../../domain/kernel/network.js';
import type { DrivingServer } from '../../ports/driving/server.js';
import type { Logger } from '../../ports/logger.js';
import { errnoOf } from '../files/errno.js';
import type { RenderedMetrics } from './metrics-page.js';

const HEADERS_TIMEOUT_MS = 5_000;
const MAX_CONNECTIONS = 64;

export interface PrometheusServerParts {
  readonly listen: AddressPort | 'off';
  /** Whether another port will do when this one is taken. */
  readonly mayMove: boolean;
  readonly metrics: { render(): Promise<RenderedMetrics> };
  /** What is not ready; empty when everything is. */
  readonly pending: () => readonly string[];
  readonly logger: Logger;
}

/** `/metrics` in the Prometheus text format, `/healthz` (the process answers), `/readyz` (every subsystem serves). */
export class PrometheusServer implements DrivingServer {
  readonly #parts: PrometheusServerParts;
  #server: Server | undefined;

  constructor(parts: PrometheusServerParts) {
    this.#parts = parts;
  }

  /** `address:port` while it serves, else empty. */
  get address(): string {
    const { listen } = this.#parts;
    const bound = this.#server?.address();
    if (listen === 'off' || bound === null || bound === undefined || typeof bound === 'string') return '';
    return formatAddressPort(listen.address, bound.port);
  }

  /** @throws AgentError `metrics.not_served` */
  async start(): Promise<void> {
    const { listen, mayMove, logger } = this.#parts;
    if (listen === 'off' || this.#server !== undefined) return;
    let failure: AgentError | undefined;
    for (const port of mayMove ? [listen.port, 0] : [listen.port]) {
      const server = createServer((request, response) => void this.#serve(request, response));
      server.headersTimeout = HEADERS_TIMEOUT_MS;
      server.maxConnections = MAX_CONNECTIONS;
      try {
        await bind(server, listen.address, port);
        // Running out of descriptors fails an accept; the next one is tried by itself.
        server.on('error', (error) => logger.warn('metrics: a connection could not be accepted', { error }));
        this.#server = server;
        if (failure !== undefined) logger.warn(`metrics: ${failure.facts.problem}; they are served on ${this.address} instead`);
        return;
      } catch (error) {
        const problem = `${formatAddressPort(listen.address, port)} cannot be bound: ${errnoOf(error) ?? String(error)}`;
        failure = new AgentError('metrics.not_served', { problem }, { cause: error });
      }
    }
    if (failure !== undefined) throw failure;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url?.split('?', 1)[0];
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      return answer(response, 405, 'only GET and HEAD\n');
    }
    switch (path) {
      case '/metrics':
        return this.#metrics(response);
      case '/healthz':
        return answer(response, 200, 'ok\n');
      case '/readyz': {
        const pending = this.#parts.pending();
        return pending.length === 0
          ? answer(response, 200, 'ready\n')
          : answer(response, 503, `not ready: ${pending.join(', ')}\n`);
      }
      default:
        return answer(response, 404, 'see /metrics, /healthz, /readyz\n');
    }
  }

  async #metrics(response: ServerResponse): Promise<void> {
    try {
      const { text, contentType } = await this.#parts.metrics.render();
      answer(response, 200, text, contentType);
    } catch (error) {
      this.#parts.logger.error('metrics could not be collected', { error });
      answer(response, 500, 'see the log\n');
    }
  }
}

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function answer(response: ServerResponse, code: number, body: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(code, { 'content-type': type });
  response.end(body);
}

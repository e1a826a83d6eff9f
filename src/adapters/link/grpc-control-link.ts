import { agentHeaders } from '../../domain/link/headers.js';
import type { AgentFacts, ServerFacts } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { ControlLink, LinkAddress, LinkStream } from '../../ports/link/control-link.js';
import { NodewardService } from '../generated/runos/nodeward/proto/l2sec/l2sec.js';
import { GrpcLinkStream } from './grpc-link-stream.js';
import type { LinkConnections } from './link-connections.js';
import { toMetadata } from './link-status.js';

export interface GrpcControlLinkParts {
  readonly connections: LinkConnections;
  readonly clock: Clock;
}

/** The link over gRPC and mutual TLS. */
export class GrpcControlLink implements ControlLink {
  readonly #parts: GrpcControlLinkParts;
  #malformed = 0;

  constructor(parts: GrpcControlLinkParts) {
    this.#parts = parts;
  }

  /** Messages that could not be decoded and were dropped, over all streams. */
  get malformed(): number {
    return this.#malformed;
  }

  async open(address: LinkAddress, facts: AgentFacts, { signal }: CallOptions): Promise<LinkStream> {
    const { connections, clock } = this.#parts;
    const connection = await connections.to(address, { signal });
    connections.hold(connection);
    const { path } = NodewardService.nodeAgentStream;
    const call = connection.client.makeBidiStreamRequest<Buffer, Buffer>(path, asItIs, asItIs, toMetadata(agentHeaders(facts)));
    return new GrpcLinkStream({
      call,
      connection,
      now: () => clock.now(),
      onHeaders: (server: ServerFacts | undefined) => {
        connections.announced(address, server?.capabilities.has('keepalive') === true);
        // Another kind of server, which names no facts, has no log either.
        if (server !== undefined) connections.settle(connection);
      },
      onMalformed: () => {
        this.#malformed++;
      },
      onEnded: () => connections.release(connection),
    });
  }

  reloadCertificate(): void {
    this.#parts.connections.retire();
  }

  async close(): Promise<void> {
    this.#parts.connections.close();
  }
}

function asItIs(bytes: Buffer): Buffer {
  return bytes;
}

import { type ChannelCredentials, credentials, status } from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import { callerHeaders } from '../../domain/link/headers.js';
import type { CallerFacts } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Pair } from '../../ports/certificate/pair-store.js';
import type { RenewalAnswer, RenewalClient } from '../../ports/certificate/renewal-client.js';
import { NodewardClient } from '../generated/runos/nodeward/proto/l2sec/l2sec.js';
import { clientOptions, describe, explain, unary } from './unary-call.js';

export interface GrpcRenewalClientConfig {
  readonly host: string;
  readonly port: number;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
  readonly timeoutMs?: number;
  /** Of this process, so that a server can tell it from another machine with the same certificate. */
  readonly caller?: CallerFacts;
}

const TIMEOUT_MS = 30_000;

/** Of a call that was not let in; with every other status somebody has looked at it, and at our certificate before. */
const outside: ReadonlySet<status> = new Set([
  status.UNAUTHENTICATED,
  status.PERMISSION_DENIED,
  status.UNAVAILABLE,
  status.DEADLINE_EXCEEDED,
]);

/** Nodeward's L2Sec, over a connection of its own for each call, with the pair that is given. */
export class GrpcRenewalClient implements RenewalClient {
  readonly #config: GrpcRenewalClientConfig;

  constructor(config: GrpcRenewalClientConfig) {
    this.#config = config;
  }

  async regenerate(pair: Pair, csr: Uint8Array, options: CallOptions): Promise<RenewalAnswer> {
    const { timeoutMs = TIMEOUT_MS, caller } = this.#config;
    return this.#with(pair, async (client) => {
      const request = { csr: Buffer.from(csr) };
      const headers = caller === undefined ? {} : callerHeaders(caller);
      const ended = await unary(client.regenerateCertificate.bind(client), request, timeoutMs, { ...options, headers });
      if ('error' in ended) throw await this.#explain(ended.error, pair, options);
      const { privateKey, publicKey, caCert } = ended.response;
      return { privateKey, certificate: publicKey, ca: caCert };
    });
  }

  /** The call changes nothing, and every server has it. */
  async tryPair(pair: Pair, options: CallOptions): Promise<void> {
    const { timeoutMs = TIMEOUT_MS } = this.#config;
    await this.#with(pair, async (client) => {
      const ended = await unary(client.getControlPlaneNodes.bind(client), {}, timeoutMs, options);
      if ('error' in ended && outside.has(ended.error.code)) throw await this.#explain(ended.error, pair, options);
    });
  }

  #explain(error: Parameters<typeof explain>[0], pair: Pair, options: CallOptions): Promise<AgentError> {
    const { host, port, now } = this.#config;
    return explain(error, 'renewal', { host, port, ca: pair.ca, pair }, now(), options);
  }

  async #with<T>(pair: Pair, use: (client: InstanceType<typeof NodewardClient>) => Promise<T>): Promise<T> {
    const client = new NodewardClient(describe(this.#config), credentialsOf(pair), clientOptions);
    try {
      return await use(client);
    } finally {
      client.close();
    }
  }
}

function credentialsOf({ ca, privateKey, certificate }: Pair): ChannelCredentials {
  try {
    return credentials.createSsl(Buffer.from(ca), Buffer.from(privateKey), Buffer.from(certificate));
  } catch {
    // Not the cause, which may quote the key.
    throw new AgentError('certificate.unusable', { problem: 'the pair of this node cannot be used for TLS' });
  }
}

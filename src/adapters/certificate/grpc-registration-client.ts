import { credentials } from '@grpc/grpc-js';
import type { CallOptions } from '../../ports/call-options.js';
import type { RegistrationAnswer, RegistrationClient, RegistrationRequest } from '../../ports/certificate/registration-client.js';
import { NodewardClient } from '../generated/runos/nodeward/proto/l1sec/l1sec.js';
import { readTrustRoot, type TrustRootFile } from './trust-root.js';
import { clientOptions, describe, explain, unary } from './unary-call.js';

export interface GrpcRegistrationClientConfig {
  readonly host: string;
  readonly port: number;
  /** All that is trusted: the system's roots are not. */
  readonly root: TrustRootFile;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
  readonly timeoutMs?: number;
}

/** A server that makes keys itself makes four at a time, and there may be a queue. */
const TIMEOUT_MS = 30_000;

/** Nodeward's L1Sec: the server shows a certificate, we show none. */
export class GrpcRegistrationClient implements RegistrationClient {
  readonly #config: GrpcRegistrationClientConfig;

  constructor(config: GrpcRegistrationClientConfig) {
    this.#config = config;
  }

  async check(options: CallOptions): Promise<void> {
    await readTrustRoot(this.#config.root, options);
  }

  async register(request: RegistrationRequest, options: CallOptions): Promise<RegistrationAnswer> {
    const { host, port, now, root, timeoutMs = TIMEOUT_MS } = this.#config;
    const ca = await readTrustRoot(root, options);
    const client = new NodewardClient(describe({ host, port }), credentials.createSsl(Buffer.from(ca)), clientOptions);
    try {
      const { account: aid, hostCidrs, csr, ...rest } = request;
      const wire = { ...rest, aid, hostCidrs: [...hostCidrs], csr: Buffer.from(csr) };
      const ended = await unary(client.register.bind(client), wire, timeoutMs, options);
      if ('error' in ended) throw await explain(ended.error, 'registration', { host, port, ca }, now(), options);
      const { nid, privateKey, publicKey, caCert } = ended.response;
      return { nid, privateKey, certificate: publicKey, ca: caCert };
    } finally {
      client.close();
    }
  }
}

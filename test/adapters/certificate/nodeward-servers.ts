import { X509Certificate } from 'node:crypto';
import { Metadata, Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js';
import { onTestFinished } from 'vitest';
import * as l1 from '../../../src/adapters/generated/runos/nodeward/proto/l1sec/l1sec.js';
import * as l2 from '../../../src/adapters/generated/runos/nodeward/proto/l2sec/l2sec.js';
import { toStatus } from '../../../src/adapters/grpc/grpc-errors.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';
import type { RegistrationAnswer, RegistrationRequest } from '../../../src/ports/certificate/registration-client.js';
import type { RenewalServer } from '../../contract/enrolment-clients.contract.js';

export interface TestServer {
  readonly port: number;
  readonly stop: () => Promise<void>;
}

export interface ServerExtras {
  /** The `date` that refusals carry. */
  readonly date?: string;
}

/** A registration port that answers as it is told. */
export function registrationServer(
  pair: Pair,
  answer: (request: RegistrationRequest) => Promise<RegistrationAnswer>,
  extras: ServerExtras = {},
): Promise<TestServer> {
  const server = new Server();
  server.addService(l1.NodewardService, {
    register: unary(extras, async ({ request }: ServerUnaryCall<l1.NodeRegistrationRequest, unknown>) => {
      const { aid: account, csr, ...rest } = request;
      const { nid, privateKey, certificate, ca } = await answer({ ...rest, account, csr });
      return { nid, privateKey, publicKey: certificate, caCert: ca };
    }),
    serverRegister: unary(extras, () => Promise.reject(new Error('not here'))),
  });
  return listen(server, ServerCredentials.createSsl(null, [chain(pair)]));
}

/** A mutual channel that judges certificates as it is told. */
export function renewalServer(pair: Pair, { regenerate, admit }: RenewalServer, extras: ServerExtras = {}): Promise<TestServer> {
  const server = new Server();
  server.addService(
    {
      regenerateCertificate: l2.NodewardService.regenerateCertificate,
      getControlPlaneNodes: l2.NodewardService.getControlPlaneNodes,
    },
    {
      regenerateCertificate: unary(extras, async (call: ServerUnaryCall<l2.RegenerateCertificateRequest, unknown>) => {
        const answer = await regenerate(shown(call), call.request.csr);
        return { privateKey: answer.privateKey, publicKey: answer.certificate, caCert: answer.ca };
      }),
      getControlPlaneNodes: unary(extras, async (call: ServerUnaryCall<unknown, unknown>) => {
        await admit(shown(call));
        return { ControlPlaneNodes: [] };
      }),
    },
  );
  return listen(server, ServerCredentials.createSsl(Buffer.from(pair.ca), [chain(pair)], true));
}

function shown(call: ServerUnaryCall<never, unknown> | ServerUnaryCall<unknown, unknown>): string {
  const raw = call.getAuthContext().sslPeerCertificate?.raw;
  if (raw === undefined) throw new Error('no certificate');
  return new X509Certificate(raw).toString();
}

function unary<Request>({ date }: ServerExtras, work: (call: ServerUnaryCall<Request, unknown>) => Promise<unknown>) {
  return (call: ServerUnaryCall<Request, unknown>, callback: sendUnaryData<unknown>) => {
    work(call).then(
      (answer) => callback(null, answer),
      (error: unknown) => {
        const facts = toStatus(error);
        const metadata = facts.metadata ?? new Metadata();
        if (date !== undefined) metadata.set('date', date);
        callback({ code: status.INTERNAL, details: '', ...facts, metadata });
      },
    );
  };
}

function chain({ certificate, privateKey }: Pair) {
  return { cert_chain: Buffer.from(certificate), private_key: Buffer.from(privateKey) };
}

async function listen(server: Server, credentials: ServerCredentials): Promise<TestServer> {
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error === null ? resolve(bound) : reject(error)));
  });
  const stop = async () => server.forceShutdown();
  onTestFinished(stop);
  return { port, stop };
}

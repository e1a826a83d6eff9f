import type { TLSSocket } from 'node:tls';
import type { Revocation, RevocationTarget } from '../../src/domain/certificate/revocation.js';
import {
  type AgentFacts,
  aid,
  type CallerFacts,
  epoch,
  type LinkMessage,
  nid,
  registrationId,
  type ServerFacts,
} from '../../src/domain/link/model.js';
import type { Enrolment, IssuedPair, RegisterCall, RenewOptions } from '../../src/ports/driving/enrolment.js';
import type { NodeCalls } from '../../src/ports/driving/node-calls.js';
import type { NodeStream, NodeStreamHandler, NodeStreams, PeerNode } from '../../src/ports/driving/node-streams.js';
import type { RevocationFeed } from '../../src/ports/driving/revocations.js';
import type { ThrowawayPki } from './throwaway-pki.js';

export const facts: AgentFacts = {
  instance: 'instance-1',
  session: 1,
  boot: 'boot-1',
  hardware: 'hw-1',
  journal: { id: 'journal-1', counter: 7n },
  capabilities: new Set(['journal', 'result-ack', 'keepalive']),
};

export const serverFacts: ServerFacts = {
  fleet: 'fleet-1',
  server: 'server-1',
  epoch: epoch(3n),
  capabilities: new Set(['journal', 'redeliver', 'result-ack']),
  spreadMs: 12_000,
  window: 32,
};

export function nodeUri(name: string): string {
  return `URI:holdfast:node:acme:${name}:reg1`;
}

/** The certificate of a node of account `acme`. */
export function nodePair(pki: ThrowawayPki, name = 'n1', more: { readonly from?: string; readonly to?: string } = {}) {
  const { certificate, privateKey } = pki.issue({ name, san: [nodeUri(name)], ...more });
  return { ca: pki.root, certificate, privateKey };
}

export function serverPair(pki: ThrowawayPki, hosts: readonly string[] = ['DNS:localhost', 'IP:127.0.0.1']) {
  const { certificate, privateKey } = pki.issue({ name: 'server', san: hosts, usage: 'serverAuth' });
  return { certificate, privateKey, clientRoots: [pki.root] };
}

/** As much of a judge as these tests need: what TLS says of the chain, and the node's name in the certificate. */
export function judgePeer(socket: TLSSocket): PeerNode | string {
  const certificate = socket.getPeerCertificate();
  if (certificate.raw === undefined) return 'no certificate was shown';
  if (!socket.authorized) return `the certificate is not good: ${socket.authorizationError}`;
  const match = /URI:holdfast:node:([^:]+):([^:]+):([^:,\s]+)/.exec(certificate.subjectaltname ?? '');
  if (match === null) return 'not the certificate of a node';
  const [, account = '', name = '', registration = ''] = match;
  return {
    identity: { role: 'node', aid: aid(account), nid: nid(name), registration: registrationId(registration) },
    serial: certificate.serialNumber.toLowerCase(),
    notAfter: Date.parse(certificate.valid_to),
    address: `${socket.remoteAddress}:${socket.remotePort}`,
  };
}

export interface SeenStream {
  readonly stream: NodeStream;
  readonly received: LinkMessage[];
  closed: number;
}

/** Answers with `answer`, keeps what comes. */
export class RecordingStreams implements NodeStreams {
  readonly seen: SeenStream[] = [];
  facts = serverFacts;
  refuses: Error | undefined;
  answer: (message: LinkMessage, stream: NodeStream) => void = () => {};

  headers(): Omit<ServerFacts, 'epoch'> {
    const { epoch: _, ...rest } = this.facts;
    return rest;
  }

  async open(stream: NodeStream): Promise<{ readonly facts: ServerFacts; readonly handler: NodeStreamHandler }> {
    if (this.refuses !== undefined) throw this.refuses;
    const seen: SeenStream = { stream, received: [], closed: 0 };
    this.seen.push(seen);
    const handler = {
      received: (message: LinkMessage) => {
        seen.received.push(message);
        this.answer(message, stream);
      },
      closed: () => {
        seen.closed++;
      },
    };
    return { facts: this.facts, handler };
  }

  get newest(): SeenStream {
    const seen = this.seen.at(-1);
    if (seen === undefined) throw new Error('no stream was opened');
    return seen;
  }
}

/** Nothing is revoked before a test does so. */
export class FakeRevocations implements RevocationFeed {
  readonly #listeners = new Set<(revocation: Revocation) => void>();

  onRevoked(listener: (revocation: Revocation) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  revoke(of: RevocationTarget, id: string): void {
    const revocation: Revocation = { of, id, from: 0, kind: 'revoked', reason: 'it was stolen', until: Number.MAX_SAFE_INTEGER };
    for (const listener of this.#listeners) listener(revocation);
  }
}

/** Issues the same pair to everybody. */
export class RecordingEnrolment implements Enrolment {
  readonly registered: RegisterCall[] = [];
  readonly renewed: (Uint8Array | undefined)[] = [];
  /** Of the newest renewal. */
  caller: CallerFacts | undefined;
  refuses: Error | undefined;
  revoked: Error | undefined;

  async register(call: RegisterCall): Promise<IssuedPair & { readonly nid: string }> {
    this.registered.push(call);
    if (this.refuses !== undefined) throw this.refuses;
    return { nid: 'n1', ...this.#pair(call.csr) };
  }

  async renew(_node: PeerNode, csr: Uint8Array | undefined, { caller }: RenewOptions): Promise<IssuedPair> {
    this.renewed.push(csr);
    this.caller = caller;
    if (this.refuses !== undefined) throw this.refuses;
    return this.#pair(csr);
  }

  admit(): void {
    if (this.revoked !== undefined) throw this.revoked;
  }

  #pair(csr: Uint8Array | undefined): IssuedPair {
    return { privateKey: csr === undefined ? 'a key' : '', certificate: 'a certificate', ca: 'a root' };
  }
}

/** Writes down what comes, as `name: JSON`. */
export class RecordingCalls implements NodeCalls {
  readonly seen: string[] = [];

  async controlPlaneNodes(node: PeerNode) {
    this.#saw('controlPlaneNodes', node, {});
    return [{ vpnIp: '10.1.0.1', kubeEndpoint: 'https://10.1.0.1:6443' }];
  }

  async manualSync(node: PeerNode, self: unknown, nodeIsReady: boolean) {
    this.#saw('manualSync', node, { self, nodeIsReady });
    const peer = { pubKey: 'key', endpointIp: '', ip: '10.1.0.2', extraAllowedIps: ['10.9.0.0/16'] };
    return { peers: [peer], address: '10.1.0.1/16' };
  }

  async updateStatus(node: PeerNode, status: string) {
    this.#saw('updateStatus', node, { status });
  }

  async addNodelog(node: PeerNode, entry: unknown) {
    this.#saw('addNodelog', node, entry);
  }

  async installProgress(node: PeerNode, progress: unknown) {
    this.#saw('installProgress', node, progress);
  }

  async uploaded(node: PeerNode, { tag, type, jsonB64 }: LinkMessage) {
    this.#saw('uploaded', node, { tag, type, length: jsonB64.length });
  }

  #saw(name: string, { identity }: PeerNode, what: unknown): void {
    this.seen.push(`${identity.nid} ${name} ${JSON.stringify(what)}`);
  }
}

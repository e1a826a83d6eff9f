import { type Metadata, type ServiceDefinition, status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import { concerns } from '../../domain/certificate/revocation.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { callerFacts } from '../../domain/link/headers.js';
import { HEARTBEAT_TYPE, type LinkMessage, MAX_RECEIVED_BYTES } from '../../domain/link/model.js';
import { RateLimits } from '../../domain/link/rate-limit.js';
import type { Clock } from '../../ports/clock.js';
import type { Enrolment } from '../../ports/driving/enrolment.js';
import type { NodeCalls } from '../../ports/driving/node-calls.js';
import type { NodeStreams, PeerNode } from '../../ports/driving/node-streams.js';
import type { RevocationFeed } from '../../ports/driving/revocations.js';
import type { DrivingServer } from '../../ports/driving/server.js';
import type { Logger } from '../../ports/logger.js';
import { type ResultServiceServer, ResultServiceService } from '../generated/holdfast/link/v1/link.js';
import { type NodewardServer, NodewardService } from '../generated/runos/nodeward/proto/l2sec/l2sec.js';
import { toStatus } from '../grpc/grpc-errors.js';
import { GrpcTlsServer } from './grpc-tls-server.js';
import { readerOf } from './link-status.js';
import { installProgress, nodelogEntry, overlayPeer } from './mapping.js';
import { type NodeCall, NodeStreamCall } from './node-stream-call.js';
import { type JudgePeer, Peers } from './peer-interceptor.js';
import { readUpload, tooManyUploads, UploadSlots } from './result-upload.js';
import { type AcceptLimits, type ServerPair, usualLimits } from './tls-acceptor.js';
import { refused, signalOf, unary } from './unary-calls.js';

const UPLOADS_AT_ONCE = 2;
const IDLE_MS = 300_000;
/** Of a stop: for streams that were ended just before. */
const LAST_WORDS_MS = 1_000;

/** A service on the mutual channel; its handlers ask `nodeOf` who calls. */
export interface NodeService {
  readonly definition: ServiceDefinition;
  readonly implement: (nodeOf: (call: { readonly metadata: Metadata }) => PeerNode) => UntypedServiceImplementation;
}

export interface GrpcNodeServerParts {
  readonly listen: { readonly host: string; readonly port: number };
  /** With the roots of the nodes' certificates; read at the start and at `reload`. */
  readonly pair: () => ServerPair;
  readonly judgePeer: JudgePeer;
  readonly streams: NodeStreams;
  readonly calls: NodeCalls;
  readonly enrolment: Enrolment;
  /** Whatever was opened with a certificate that is revoked ends, also what others serve here. */
  readonly revocations: RevocationFeed;
  /** Beside our own. */
  readonly services?: readonly NodeService[];
  readonly limits?: Partial<AcceptLimits>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The mutual channel (L2) of a control plane: streams and calls of nodes, each judged by its certificate when it begins. */
export class GrpcNodeServer implements DrivingServer {
  readonly #parts: GrpcNodeServerParts;
  readonly #peers: Peers;
  readonly #server: GrpcTlsServer;
  // A beat comes every 5 s, so that only a broken or hostile node is ever held up; never by address: a fleet may have one.
  readonly #beats = new RateLimits({ perSecond: 2, burst: 10 });
  readonly #nodelogs = new RateLimits({ perSecond: 10, burst: 50 });
  readonly #statuses = new RateLimits({ perSecond: 1, burst: 5 });
  readonly #uploads = new UploadSlots(UPLOADS_AT_ONCE);
  #unsubscribe: () => void = () => {};
  readonly #ending = new Set<Promise<void>>();
  readonly #counts = { malformed: 0, limited: 0, refused: 0 };

  constructor(parts: GrpcNodeServerParts) {
    this.#parts = parts;
    const { listen, pair, limits, clock } = parts;
    this.#peers = new Peers(() => clock.now());
    this.#server = new GrpcTlsServer({
      listen,
      pair,
      limits: { ...usualLimits, ...limits },
      maxMessageBytes: MAX_RECEIVED_BYTES,
      idleMs: IDLE_MS,
      services: this.#services(),
      interceptor: (called) => this.#peers.interceptor(called, (socket) => this.#judge(socket)),
    });
  }

  async start(): Promise<void> {
    await this.#server.start();
    this.#unsubscribe();
    this.#unsubscribe = this.#parts.revocations.onRevoked((revocation) =>
      this.#peers.open.endWhere((node) => concerns(revocation, node), `revoked: ${revocation.reason}`),
    );
  }

  /** Streams that were ended before get their status. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    const timer = new AbortController();
    const late = this.#parts.clock.sleep(LAST_WORDS_MS, { signal: timer.signal }).catch(() => {});
    await Promise.race([Promise.all(this.#ending), late]);
    timer.abort();
    await this.#server.stop();
  }

  /** Connections from now on get the pair as it is now. */
  reload(): void {
    this.#server.reload();
  }

  /** 0 while it does not listen. */
  get port(): number {
    return this.#server.port;
  }

  /** Messages that could not be decoded, those over a node's limits, calls that were refused; and of connections. */
  counts() {
    return { ...this.#counts, connections: this.#server.counts() };
  }

  #judge(socket: Parameters<JudgePeer>[0]): PeerNode | string {
    const verdict = this.#verdict(socket);
    if (typeof verdict === 'string') this.#counts.refused++;
    return verdict;
  }

  #verdict(socket: Parameters<JudgePeer>[0]): PeerNode | string {
    const { judgePeer, enrolment, logger } = this.#parts;
    try {
      const verdict = judgePeer(socket);
      if (typeof verdict !== 'string') enrolment.admit(verdict);
      return verdict;
    } catch (error) {
      if (error instanceof AgentError) return error.facts.problem ?? error.message;
      logger.error('a certificate could not be judged', { error });
      return 'the certificate could not be judged';
    }
  }

  #services() {
    const nodeOf = (call: { readonly metadata: Metadata }) => this.#peers.of(call).node;
    const own = [
      { definition: nodewardDefinition, implementation: this.#nodeward() },
      { definition: ResultServiceService, implementation: this.#results() },
    ];
    const others = this.#parts.services ?? [];
    return [...own, ...others.map(({ definition, implement }) => ({ definition, implementation: implement(nodeOf) }))];
  }

  #nodeward(): UntypedServiceImplementation {
    const { calls, enrolment } = this.#parts;
    const nodeOf = (call: { readonly metadata: Metadata }) => this.#peers.of(call).node;
    const onFault = (error: unknown) => this.#onFault(error);
    const own: Partial<NodewardServer> = {
      manualSync: unary(onFault, async (call, signal) => {
        const { nodePeer, nodeIsReady } = call.request;
        const self = nodePeer === undefined ? undefined : overlayPeer(nodePeer);
        const { peers, address } = await calls.manualSync(nodeOf(call), self, nodeIsReady, { signal });
        return { peers: peers.map((peer) => ({ ...peer, extraAllowedIps: [...peer.extraAllowedIps] })), address };
      }),
      getControlPlaneNodes: unary(onFault, async (call, signal) => ({
        ControlPlaneNodes: [...(await calls.controlPlaneNodes(nodeOf(call), { signal }))],
      })),
      updateStatus: unary(onFault, async (call, signal) => {
        this.#limit(this.#statuses, nodeOf(call), 'statuses');
        await calls.updateStatus(nodeOf(call), call.request.status, { signal });
        return {};
      }),
      addNodelog: unary(onFault, async (call, signal) => {
        this.#limit(this.#nodelogs, nodeOf(call), 'lines');
        await calls.addNodelog(nodeOf(call), nodelogEntry(call.request), { signal });
        return {};
      }),
      updateNodeInstallationStatus: unary(onFault, async (call, signal) => {
        this.#limit(this.#statuses, nodeOf(call), 'statuses');
        await calls.installProgress(nodeOf(call), installProgress(call.request), { signal });
        return {};
      }),
      regenerateCertificate: unary(onFault, async (call, signal) => {
        const csr = call.request.csr.length === 0 ? undefined : call.request.csr;
        const caller = callerFacts(readerOf(call.metadata));
        const { privateKey, certificate, ca } = await enrolment.renew(nodeOf(call), csr, { signal, caller });
        return { privateKey, publicKey: certificate, caCert: ca };
      }),
    };
    return { ...notOurs, ...own, nodeAgentStream: (call: NodeCall) => this.#stream(call) };
  }

  #stream(call: NodeCall): void {
    const { streams } = this.#parts;
    const stream = new NodeStreamCall({
      call,
      peer: this.#peers.of(call),
      streams,
      admit: (node, message) => this.#admitMessage(node, message),
      onMalformed: () => {
        this.#counts.malformed++;
      },
      onEnding: (over) => {
        this.#ending.add(over);
        void over.then(() => this.#ending.delete(over));
      },
      onFault: (error) => this.#onFault(error),
    });
    void stream.run();
  }

  #admitMessage(node: PeerNode, { type }: LinkMessage): boolean {
    if (type !== HEARTBEAT_TYPE || this.#beats.take(nameOf(node), this.#parts.clock.monotonic())) return true;
    this.#counts.limited++;
    return false;
  }

  /** @throws AgentError `link.limited` */
  #limit(limits: RateLimits, node: PeerNode, what: string): void {
    if (limits.take(nameOf(node), this.#parts.clock.monotonic())) return;
    this.#counts.limited++;
    throw new AgentError('link.limited', { problem: `too many ${what} of this node` });
  }

  #results(): ResultServiceServer {
    return {
      upload: (call, callback) => {
        const { node } = this.#peers.of(call);
        const give = this.#uploads.take(nameOf(node));
        if (give === undefined) return callback(tooManyUploads);
        const signal = signalOf(call);
        readUpload(call)
          .then((reply) => this.#parts.calls.uploaded(node, reply, { signal }))
          .finally(give)
          .then(
            () => callback(null, {}),
            (error: unknown) => {
              if (!signal.aborted && !(error instanceof AgentError)) this.#onFault(error);
              callback(toStatus(error));
            },
          );
      },
    };
  }

  #onFault(error: unknown): void {
    this.#parts.logger.error('a call of a node failed', { error });
  }
}

/** What is read and written on the main stream are bytes. */
const nodewardDefinition: ServiceDefinition = {
  ...NodewardService,
  nodeAgentStream: { ...NodewardService.nodeAgentStream, requestDeserialize: asItIs, responseSerialize: asItIs },
};

const otherAgents = refused(status.UNIMPLEMENTED, 'this control plane serves node agents only');
const noInstall = refused(status.FAILED_PRECONDITION, 'no install plan is configured on this control plane');
const noTokens = refused(status.FAILED_PRECONDITION, 'tokens are made with `holdfast token create`');

const notOurs: UntypedServiceImplementation = {
  communicate: otherAgents.stream,
  clusterAgentStream: otherAgents.stream,
  serverAgentStream: otherAgents.stream,
  getClusterAgentCredentials: otherAgents.unary,
  getInstallVpnCommands: noInstall.unary,
  getInstallCommands: noInstall.unary,
  getNodeRegistrationToken: noTokens.unary,
};

function nameOf({ identity }: PeerNode): string {
  return `${identity.aid}/${identity.nid}`;
}

function asItIs(bytes: Buffer): Buffer {
  return bytes;
}

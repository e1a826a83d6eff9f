import type { TLSSocket } from 'node:tls';
import type { AdminCaller } from '../../domain/admin/model.js';
import { leastGrade, suffices } from '../../domain/admin/roles.js';
import { concerns } from '../../domain/certificate/revocation.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { TokenBucket } from '../../domain/link/rate-limit.js';
import type { Clock } from '../../ports/clock.js';
import type { RevocationFeed } from '../../ports/driving/revocations.js';
import type { DrivingServer } from '../../ports/driving/server.js';
import type { AdminPeer } from '../certificate/admin-peer-judge.js';
import { GrpcTlsServer } from '../link/grpc-tls-server.js';
import { Peers } from '../link/peer-interceptor.js';
import type { AcceptLimits, ServerPair } from '../link/tls-acceptor.js';
import { type AdminParts, adminServices, MAX_REQUEST_BYTES } from './admin-services.js';
import { Audited } from './audited.js';
import type { FleetParts } from './fleet-handlers.js';

/**
 * People and their scripts are few; strangers may be many. No more than `perSecond` * `firstCallMs` and a burst are unfinished, 1,200, so
 * that those who say nothing only ever delay the others, by 5 s for each 1,000 that come at once.
 */
const limits: AcceptLimits = {
  perSecond: 200,
  unfinished: 1_500,
  firstCallMs: 5_000,
  waiting: 4_096,
  waitMs: 20_000,
  open: 6_000,
};
const IDLE_MS = 300_000;
/** Lines of the log for strangers: as many calls as they like to try. */
const REFUSALS = { perSecond: 1, burst: 20 };

export interface GrpcRemoteAdminServerParts extends Omit<AdminParts, 'node'> {
  readonly listen: { readonly host: string; readonly port: number };
  /** With the root of admins; read at the start and at `reload`. */
  readonly pair: () => ServerPair;
  readonly judge: (socket: TLSSocket) => AdminPeer | AgentError;
  /** Whatever was opened with a certificate that is revoked ends. */
  readonly revocations: RevocationFeed;
  readonly fleet: FleetParts;
  readonly limits?: Partial<AcceptLimits>;
  readonly clock: Clock;
}

/** The admin API of a control plane for those who have a certificate of an admin: each call is judged, also for its role. */
export class GrpcRemoteAdminServer implements DrivingServer {
  readonly #parts: GrpcRemoteAdminServerParts;
  readonly #peers: Peers<AdminPeer>;
  readonly #server: GrpcTlsServer;
  readonly #audited: Audited;
  readonly #refusals = new TokenBucket(REFUSALS, performance.now());
  #unsubscribe: () => void = () => {};

  /** @throws AgentError `admin.not_served` for a method without a role */
  constructor(parts: GrpcRemoteAdminServerParts) {
    this.#parts = parts;
    this.#audited = new Audited(parts.fleet.audit, parts.logger);
    this.#peers = new Peers(() => parts.clock.now());
    this.#server = new GrpcTlsServer({
      listen: parts.listen,
      pair: parts.pair,
      limits: { ...limits, ...parts.limits },
      maxMessageBytes: MAX_REQUEST_BYTES,
      idleMs: IDLE_MS,
      services: adminServices(parts, (call) => callerOf(this.#peers.of(call).node)),
      interceptor: (called) =>
        this.#peers.interceptor(
          called,
          (socket) => this.#judge(socket),
          (peer, method) => this.#forbids(peer, method),
        ),
    });
  }

  /** @throws AgentError `link.not_served` */
  async start(): Promise<void> {
    await this.#server.start();
    this.#unsubscribe();
    this.#unsubscribe = this.#parts.revocations.onRevoked((revocation) =>
      this.#peers.open.endWhere((peer) => concerns(revocation, peer), `revoked: ${revocation.reason}`),
    );
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
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

  /** Of connections, and calls that go on. */
  counts() {
    return { calls: this.#peers.open.size, connections: this.#server.counts() };
  }

  #judge(socket: TLSSocket): AdminPeer | AgentError {
    const { judge, logger } = this.#parts;
    try {
      const verdict = judge(socket);
      if (verdict instanceof AgentError && this.#refusals.take(performance.now())) {
        const address = socket.remoteAddress;
        logger.warn('a call of the admin port was refused', { address, code: verdict.code, problem: verdict.facts.problem });
      }
      return verdict;
    } catch (error) {
      logger.error('a certificate could not be judged', { error });
      return new AgentError('admin.failed', { problem: 'the certificate could not be judged' });
    }
  }

  #forbids(peer: AdminPeer, method: string): AgentError | undefined {
    const { grade, name } = peer.identity;
    const least = leastGrade(method);
    if (least !== undefined && suffices(grade, least)) return undefined;
    if (least === undefined) return new AgentError('admin.not_offered', { problem: `there is no method ${method}` });
    const call = { caller: callerOf(peer), type: `admin${method}`, tag: '-', payload: '' };
    void this.#audited.denied(call, `role, ${least} is needed`);
    return new AgentError('admin.not_allowed', { problem: `admin:${name} has the role ${grade}; this is for the role ${least}` });
  }
}

/** `admin:alice`, and for the audit log `admin:alice:operator:<serial>@192.0.2.1:50000`. */
function callerOf({ identity: { name, grade }, serial, address }: AdminPeer): AdminCaller {
  return { name: `admin:${name}`, who: `admin:${name}:${grade}:${serial}@${address}`, grade, rule: `role ${grade}` };
}

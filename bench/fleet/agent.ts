import { randomBytes, randomUUID } from 'node:crypto';
import { GrpcRegistrationClient } from '../../dist/adapters/certificate/grpc-registration-client.js';
import { X509KeyMaker } from '../../dist/adapters/certificate/x509-key-maker.js';
import { bootTime } from '../../dist/adapters/clock/boot-time.js';
import { SystemClock } from '../../dist/adapters/clock/system-clock.js';
import { GrpcControlLink } from '../../dist/adapters/link/grpc-control-link.js';
import { LinkConnections } from '../../dist/adapters/link/link-connections.js';
import { GrpcLogConnection } from '../../dist/adapters/log/grpc-log-connection.js';
import { openLogger } from '../../dist/adapters/logger/pino-logger.js';
import type { LinkSession, LinkUser } from '../../dist/app/link/link-session.js';
import { LinkSubsystem } from '../../dist/app/link/link-subsystem.js';
import { RemoteLogConsumer } from '../../dist/app/log/remote-log-consumer.js';
import { ViewKeeper } from '../../dist/app/log/view-keeper.js';
import { nodeName } from '../../dist/domain/identity/model.js';
import { AgentError } from '../../dist/domain/kernel/errors.js';
import type { ServerMessage } from '../../dist/domain/link/model.js';
import type { ViewStore } from '../../dist/ports/log/view-store.js';
import { instant, type ServerPlace } from './protocol.ts';

/** The server lets 50 a second in. */
const HELD_BACK_MS = 200;
const STALE_AFTER_MS = 30_000;

const clock = new SystemClock({ unref: true });
const logger = openLogger({ level: 'error', colour: false });
const keys = new X509KeyMaker();
const never = { signal: new AbortController().signal };
const boot = randomUUID();

interface Pair {
  readonly ca: string;
  readonly certificate: string;
  readonly privateKey: string;
}

/** Keeps nothing: an agent of the bench begins with a snapshot, and is never restarted. */
const noStore: ViewStore = {
  open: async () => ({ view: undefined, dropped: undefined }),
  replace: async () => {},
  append: async () => true,
  close: async () => {},
};

/** Answers at once what it is asked, and what it is asked again with the same. */
const answering: LinkUser = {
  opened: () => {},
  closed: () => {},
  received: (session: LinkSession, { type, tag }: ServerMessage) => {
    if (type !== 'RESULT_ACK') void session.send({ type, tag, jsonB64: Buffer.from('{"status":"ready"}').toString('base64') });
    return true;
  },
};

/**
 * An agent without a machine: registration, link and log are those of `holdfast agent`, certificates and connections are its own; it
 * keeps nothing, carries no traffic and runs nothing.
 */
export class SimulatedAgent {
  /** Milliseconds that the call took which let it in. */
  readonly registeredInMs: number;
  readonly heldBack: number;
  readonly #link: LinkSubsystem;
  readonly #consumer: RemoteLogConsumer;
  readonly #arrivals: { readonly revision: bigint; readonly at: number }[] = [];

  private constructor(place: ServerPlace, name: string, nid: string, pair: Pair, registered: { inMs: number; heldBack: number }) {
    this.registeredInMs = registered.inMs;
    this.heldBack = registered.heldBack;
    const address = { host: place.host, port: place.nodesPort };
    const readPair = async () => pair;
    const connections = new LinkConnections({ readPair, clock });
    this.#link = linkOf(address, connections);
    const nodeId = nodeName(name);
    if (nodeId === undefined) throw new Error(`not a name of a node: ${name}`);
    const log = new GrpcLogConnection({ connections, addresses: [address], nodeId, clock });
    const common = { clock, random: Math.random, logger };
    const binding = { fleet: 'bench', nid, registration: name };
    const keeper = new ViewKeeper({ ...common, store: noStore, binding });
    this.#consumer = new RemoteLogConsumer({ ...common, log, keeper, bootTime, staleAfterMs: STALE_AFTER_MS });
    this.#consumer.onChange(() => this.#arrived());
  }

  static async register(place: ServerPlace, name: string, token: string): Promise<SimulatedAgent> {
    const root = { path: place.root, sha256: undefined };
    const client = new GrpcRegistrationClient({ host: place.host, port: place.registrationPort, root, now: () => clock.now() });
    const { csr, privateKey } = await keys.makeRequest(never);
    const machineId = randomBytes(16).toString('hex');
    const request = { machineId, account: 'default', token, os: 'Simulated', hostCidrs: ['127.0.0.0/8'], csr };
    for (let heldBack = 0; ; heldBack += 1) {
      const begun = instant();
      try {
        const { nid, certificate, ca } = await client.register(request, never);
        const pair = { ca, certificate, privateKey };
        return new SimulatedAgent(place, name, nid, pair, { inMs: instant() - begun, heldBack });
      } catch (error) {
        if (!(error instanceof AgentError && error.code === 'certificate.too_many')) throw error;
        await clock.sleep(HELD_BACK_MS * (1 + Math.random()), never);
      }
    }
  }

  async start(): Promise<void> {
    await this.#link.start();
    await this.#consumer.start(never.signal);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#link.stop(), this.#consumer.stop(never.signal)]);
  }

  get isLinked(): boolean {
    return this.#link.state().connected !== undefined;
  }

  /** Of the newest heartbeat that was answered, milliseconds. */
  get beatMs(): number | undefined {
    const beat = this.#link.state().connected?.lastBeat;
    return beat === undefined ? undefined : beat.answeredAt - beat.sentAt;
  }

  /** When it had the revision; undefined while it has it not. */
  arrivalOf(revision: bigint): number | undefined {
    const newest = this.#arrivals.at(-1);
    if (newest === undefined || newest.revision < revision) return undefined;
    return this.#arrivals.find((arrival) => arrival.revision >= revision)?.at;
  }

  #arrived(): void {
    this.#arrivals.push({ revision: this.#consumer.state.revision, at: instant() });
  }
}

function linkOf(address: { readonly host: string; readonly port: number }, connections: LinkConnections): LinkSubsystem {
  const instance = randomUUID();
  const journal = { id: randomUUID(), counter: 0n };
  const capabilities = new Set(['journal', 'result-ack'] as const);
  return new LinkSubsystem({
    link: new GrpcControlLink({ connections, clock }),
    addresses: [address],
    facts: () => ({ instance, boot, hardware: instance, journal, capabilities }),
    roles: { read: async () => ({ isCp: false, isWorker: true, status: 'ready' }) },
    users: [answering],
    version: 'bench',
    nodeIp: undefined,
    auditHead: () => undefined,
    bootTime: () => performance.now(),
    newTag: randomUUID,
    clock,
    random: Math.random,
    logger,
  });
}

import { AgentError } from '../../domain/kernel/errors.js';
import { formatHostPort, type HostPort } from '../../domain/kernel/network.js';
import type { ServerMessage } from '../../domain/link/model.js';
import { readPayload, SMALL_PAYLOAD_BYTES } from '../../domain/link/payload.js';
import { readEndpoints } from '../../domain/loadbalancer/endpoints.js';
import { BALANCER_PORT } from '../../domain/loadbalancer/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { ApiBalancer, BalancedServer, BalancerStatus } from '../../ports/driving/api-balancer.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import type { Outbox } from '../../ports/outbox/outbox.js';
import { messageOf } from '../agent/managed-subsystem.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { Subsystem } from '../agent/subsystem.js';
import type { LinkSession, LinkUser } from '../link/link-session.js';
import type { BalancerKeeper, BalancerReading } from './balancer-keeper.js';

/** What the control plane is asked, and by what it answers. */
export const LIST_TYPE = 'GetControlPlaneNodes';
const ASK_MS = 10_000;
/** Of the loop; a part of it is chance, so that the nodes of a fleet do not ask together. */
const LOOK_MS = 60_000;
const CHANCE = 0.1;
const NEVER = new AbortController().signal;

export interface BalancerSubsystemParts {
  readonly keeper: BalancerKeeper;
  /** As `LinkSubsystem.ask`. */
  readonly ask: (type: string, jsonB64: string, timeoutMs: number, options: CallOptions) => Promise<ServerMessage>;
  readonly outbox: Outbox;
  readonly clock: Clock;
  /** From 0 up to, not with, 1. */
  readonly random: () => number;
  readonly logger: Logger;
}

/**
 * Keeps the balancer of the cluster's API at the list of the control plane: asked at each connect and once a minute. Without a link the
 * last list is kept up.
 */
export class BalancerSubsystem implements Subsystem, LinkUser, ProblemSource, ApiBalancer {
  readonly name = 'loadbalancer';
  readonly #parts: BalancerSubsystemParts;
  readonly #loop: ReconcileLoop;
  #session: LinkSession | undefined;
  #lane: Promise<unknown> = Promise.resolve();
  #reading: BalancerReading = { state: 'waiting' };
  #problem: StatusProblem | undefined;

  constructor(parts: BalancerSubsystemParts) {
    const { clock, random, logger } = parts;
    this.#parts = parts;
    const greatestGapMs = LOOK_MS * (1 - CHANCE * random());
    const run = (signal: AbortSignal) => this.#inTurn({ signal });
    this.#loop = new ReconcileLoop({ name: this.name, run, clock, random, logger, leastGapMs: 1_000, greatestGapMs });
  }

  async start(): Promise<void> {
    this.#loop.start();
  }

  /** A node without a balancer is ready: it serves what it has. */
  async ready(): Promise<void> {}

  /** HAProxy goes on: its connections outlive this process. */
  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  opened(session: LinkSession): void {
    this.#session = session;
    this.#loop.markDirty();
  }

  /** The answer to its question goes to whoever asked. */
  received(): boolean {
    return false;
  }

  closed(session: LinkSession): void {
    if (this.#session === session) this.#session = undefined;
  }

  async refresh(options: CallOptions): Promise<BalancerStatus> {
    if (this.#session === undefined)
      throw new AgentError('loadbalancer.not_linked', { problem: 'there is no link to the control plane' });
    await this.#inTurn(options);
    return this.status();
  }

  status(): BalancerStatus {
    const reading = this.#reading;
    const common = { port: BALANCER_PORT, ...this.#parts.keeper.counts() };
    if (reading.state !== 'serving') {
      return { ...common, state: this.#problem === undefined ? reading.state : 'failing', servers: [] };
    }
    return { ...common, state: this.#problem === undefined ? 'serving' : 'failing', servers: serversOf(reading) };
  }

  problems(): readonly StatusProblem[] {
    return this.#problem === undefined ? [] : [this.#problem];
  }

  /** A question of people and the loop go one after the other. */
  async #inTurn(options: CallOptions): Promise<void> {
    const mine = this.#lane.then(() => {
      options.signal.throwIfAborted();
      return this.#watched(options);
    });
    this.#lane = mine.catch(() => {});
    await mine;
  }

  async #watched(options: CallOptions): Promise<void> {
    const { clock } = this.#parts;
    try {
      await this.#look(options);
      if (this.#problem !== undefined) this.#tell('info', 'the balancer of the API works again');
      this.#problem = undefined;
    } catch (error) {
      options.signal.throwIfAborted();
      const [reason, remedy] = [messageOf(error), error instanceof AgentError ? error.remedy : 'see the log of the daemon'];
      if (this.#problem?.reason !== reason) this.#tell('warning', reason);
      this.#problem = { subject: 'loadbalancer', reason, since: this.#problem?.since ?? clock.now(), remedy };
      throw error;
    }
  }

  /** What is there is kept up whatever the control plane says; then it is told what is wrong with its list. */
  async #look(options: CallOptions): Promise<void> {
    const { keeper } = this.#parts;
    if (this.#reading.state === 'absent') this.#reading = await keeper.bring(undefined, options);
    // Without HAProxy there is no need of a list.
    if (this.#reading.state === 'absent') return;
    const asked = this.#session === undefined ? undefined : await this.#list(options).catch((error: unknown) => wrapped(error));
    options.signal.throwIfAborted();
    const before = endpointsOf(this.#reading);
    this.#reading = await keeper.bring(asked instanceof AgentError ? undefined : asked, options);
    const after = endpointsOf(this.#reading);
    if (after !== before && after !== '') this.#tell('info', `the API is balanced over ${after}`);
    if (asked instanceof AgentError && this.#reading.state !== 'absent') throw asked;
  }

  /** @throws AgentError `loadbalancer.bad_list`, `link.*` */
  async #list(options: CallOptions): Promise<readonly HostPort[]> {
    const { type, jsonB64 } = await this.#parts.ask(LIST_TYPE, '', ASK_MS, options);
    if (type === 'ERROR') throw new AgentError('loadbalancer.bad_list', { problem: `it answers ${jsonB64.slice(0, 200)}` });
    const payload = readPayload(jsonB64, SMALL_PAYLOAD_BYTES);
    // An older control plane has nothing to say.
    if (payload.ok && (payload.value === null || type === 'NO_CONTENT')) return [];
    const list = payload.ok ? readEndpoints(payload.value) : { ok: false as const, problem: `it is ${payload.problem}` };
    if (!list.ok) throw new AgentError('loadbalancer.bad_list', { problem: list.problem });
    return list.endpoints;
  }

  #tell(severity: 'info' | 'warning', message: string): void {
    const { outbox, clock } = this.#parts;
    const labels = { subject: 'loadbalancer' };
    const event = { time: clock.now(), kind: 'event' as const, stream: 'node', severity, message, labels };
    // The memory outbox takes it at once; one that cannot says so in its statistics.
    outbox.append(event, { signal: NEVER }).catch(() => {});
  }
}

function wrapped(error: unknown): AgentError {
  return error instanceof AgentError
    ? error
    : new AgentError('loadbalancer.bad_list', { problem: messageOf(error) }, { cause: error });
}

function endpointsOf(reading: BalancerReading): string {
  return reading.state === 'serving' ? reading.servers.map(({ endpoint }) => formatHostPort(endpoint)).join(', ') : '';
}

/** Those of the list, then those that have left it and still drain. */
function serversOf({ servers, running }: Extract<BalancerReading, { state: 'serving' }>): readonly BalancedServer[] {
  const seen = new Map(running.servers.map((server) => [server.name, server]));
  const listed = servers.map(({ name, endpoint }): BalancedServer => {
    const server = seen.get(name);
    const state = server === undefined ? 'unknown' : server.isUp ? 'up' : 'down';
    return { name, endpoint: formatHostPort(endpoint), state, sessions: server?.sessions ?? 0 };
  });
  const names = new Set<string>(servers.map(({ name }) => name));
  const leaving = running.servers.filter(({ name }) => !names.has(name));
  return [
    ...listed,
    ...leaving.map(({ name, host, address, port, sessions }): BalancedServer => {
      return { name, endpoint: formatHostPort({ host: host || (address ?? ''), port }), state: 'draining', sessions };
    }),
  ];
}

import { AgentError } from '../../domain/kernel/errors.js';
import { formatIpv4Range, type Ipv4Range } from '../../domain/kernel/network.js';
import type { Observed } from '../../domain/overlay/model.js';
import { wantedSet } from '../../domain/overlay/schema.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { OverlaySync, SyncedOverlay } from '../../ports/driving/overlay-sync.js';
import type { NodewardCalls } from '../../ports/link/nodeward-calls.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import { messageOf } from '../agent/managed-subsystem.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { Subsystem } from '../agent/subsystem.js';
import type { LinkSession, LinkUser } from '../link/link-session.js';
import type { OverlayKeeper, OverlayTurn } from './overlay-keeper.js';

/** Of the sync; a part of it is chance, so that the nodes of a fleet do not ask together. */
const SYNC_MS = 60_000;
const CHANCE = 0.1;

export interface OverlaySubsystemParts {
  readonly keeper: OverlayKeeper;
  readonly calls: Pick<NodewardCalls, 'manualSync'>;
  readonly nodeIsReady: () => boolean;
  /** The address under which others reach this node; undefined: that of the connection to the control plane. Empty: none. */
  readonly endpoint: string | undefined;
  /** Behind this node. */
  readonly networks: readonly Ipv4Range[];
  readonly clock: Clock;
  /** From 0 up to, not with, 1. */
  readonly random: () => number;
  readonly logger: Logger;
}

/** What a sync came to; undefined where there is no overlay to be in. */
type Synced = SyncedOverlay | undefined;

/** Asks the control plane for the peers of this node, at each connect and once a minute. Without a link the last set is kept up. */
export class OverlaySubsystem implements Subsystem, LinkUser, ProblemSource, OverlaySync {
  readonly name = 'overlay';
  readonly #parts: OverlaySubsystemParts;
  readonly #loop: ReconcileLoop;
  #session: LinkSession | undefined;
  #problem: StatusProblem | undefined;

  constructor(parts: OverlaySubsystemParts) {
    const { clock, random, logger } = parts;
    this.#parts = parts;
    const greatestGapMs = SYNC_MS * (1 - CHANCE * random());
    const run = async (signal: AbortSignal) => void (await this.#watched({ signal }));
    this.#loop = new ReconcileLoop({ name: this.name, run, clock, random, logger, leastGapMs: 1_000, greatestGapMs });
  }

  async start(): Promise<void> {
    this.#loop.start();
  }

  /** A node without an overlay is ready: it serves what it has. */
  async ready(): Promise<void> {}

  /** The interface stays: its tunnels outlive this process. */
  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  opened(session: LinkSession): void {
    this.#session = session;
    this.#loop.markDirty();
  }

  /** Its instruction comes by the engine. */
  received(): boolean {
    return false;
  }

  closed(session: LinkSession): void {
    if (this.#session === session) this.#session = undefined;
  }

  async sync(options: CallOptions): Promise<SyncedOverlay> {
    if (this.#session === undefined)
      throw new AgentError('overlay.not_linked', { problem: 'there is no link to the control plane' });
    const synced = await this.#watched(options);
    return synced ?? { address: '', peers: 0, failed: [] };
  }

  /** As others are told: the address under which they reach this node. */
  endpoint(): string {
    return this.#parts.endpoint ?? this.#session?.localAddress ?? '';
  }

  problems(): readonly StatusProblem[] {
    const failed = this.#parts.keeper.reading()?.failed ?? [];
    const remedy = 'mend what is declared of this peer at the control plane';
    const named = failed.map(({ publicKey, reason }) => ({
      subject: `overlay peer ${publicKey}`,
      reason,
      since: undefined,
      remedy,
    }));
    return [...(this.#problem === undefined ? [] : [this.#problem]), ...named];
  }

  async #watched(options: CallOptions): Promise<Synced> {
    const { keeper, clock } = this.#parts;
    try {
      const synced = await keeper.inTurn((turn) => this.#sync(turn, options), options);
      this.#problem = undefined;
      return synced;
    } catch (error) {
      options.signal.throwIfAborted();
      const remedy = error instanceof AgentError ? error.remedy : 'see the log of the daemon';
      this.#problem = { subject: 'overlay', reason: messageOf(error), since: this.#problem?.since ?? clock.now(), remedy };
      throw error;
    }
  }

  async #sync(turn: OverlayTurn, options: CallOptions): Promise<Synced> {
    const session = this.#session;
    const last = this.#parts.keeper.last();
    if (session === undefined) return last === undefined ? undefined : outcomeOf(await turn.apply(last));
    const observed = await turn.observe();
    // An older control plane has the interface made by its own commands: without one it has no overlay for this node.
    if (session.server === undefined && observed.link === undefined) return undefined;
    const { peers, address } = await this.#parts.calls.manualSync(this.#self(observed), this.#parts.nodeIsReady(), options);
    // Ours says so when it has none: an interface of that name is somebody else's.
    if (session.server !== undefined && address === '') return undefined;
    return outcomeOf(
      await turn.apply(
        wantedSet(
          peers.map((peer) => ({ ...peer, vpnIp: peer.ip })),
          address,
        ),
      ),
    );
  }

  #self({ publicKey, link }: Observed) {
    return {
      pubKey: publicKey,
      endpointIp: this.endpoint(),
      ip: link?.addresses[0]?.address ?? '',
      extraAllowedIps: this.#parts.networks.map(formatIpv4Range),
    };
  }
}

function outcomeOf({ observed, peers, failed }: Awaited<ReturnType<OverlayTurn['apply']>>): SyncedOverlay {
  return { address: observed.link?.addresses[0]?.address ?? '', peers, failed };
}

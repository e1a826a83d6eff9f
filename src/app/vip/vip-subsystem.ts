import { AgentError } from '../../domain/kernel/errors.js';
import { parseExact } from '../../domain/kernel/exact-json.js';
import { readHeartbeatAnswer } from '../../domain/link/heartbeat.js';
import type { ServerMessage } from '../../domain/link/model.js';
import { readPayload, SMALL_PAYLOAD_BYTES } from '../../domain/link/payload.js';
import type { HolderAnswer } from '../../domain/vip/model.js';
import { holderAnswer } from '../../domain/vip/schema.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import type { ClaimWatch, VirtualAddress } from '../../ports/vip/virtual-address.js';
import { messageOf } from '../agent/managed-subsystem.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { Subsystem } from '../agent/subsystem.js';
import type { AnsweredHeartbeat, LinkSession, LinkUser } from '../link/link-session.js';
import type { VipKeeper } from './vip-keeper.js';

const LOOK_MS = 1_000;
const ASK_MS = 5_000;
const ASK_TYPE = 'AmIVIPHolder';
/** Of `{}`. */
const NOTHING = 'e30=';
/** One who holds on alone asks around so often. */
const PROBE_MS = 2_000;

export interface VipSubsystemParts {
  readonly keeper: VipKeeper;
  readonly address: Pick<VirtualAddress, 'watch'>;
  readonly ask: (type: string, jsonB64: string, timeoutMs: number, options: CallOptions) => Promise<ServerMessage>;
  /** Of a server that does not name its fleet. */
  readonly rootFingerprint: () => string;
  readonly bootTime: () => number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
}

/** Keeps the virtual IP for as long as the control plane says that this node has it, and asks it whenever that is not certain. */
export class VipSubsystem implements Subsystem, LinkUser, ProblemSource {
  readonly name = 'vip';
  readonly #parts: VipSubsystemParts;
  readonly #loop: ReconcileLoop;
  #session: LinkSession | undefined;
  /** Whether the control plane is to be asked. */
  #isUnsure = false;
  #asking: Promise<void> | undefined;
  #problem: StatusProblem | undefined;
  #watch: { readonly claims: ClaimWatch; probeAt: number } | undefined;

  constructor(parts: VipSubsystemParts) {
    const { clock, random, logger } = parts;
    this.#parts = parts;
    const run = async () => this.#look();
    // A failure is no reason to look less often: the address is to go in time.
    const gaps = { leastGapMs: 0, greatestGapMs: LOOK_MS, firstBackoffMs: LOOK_MS, greatestBackoffMs: LOOK_MS };
    this.#loop = new ReconcileLoop({ name: this.name, run, clock, random, logger, ...gaps });
  }

  /** Whatever an earlier process has left is gone before anybody is asked. */
  async start(): Promise<void> {
    this.#try(() => this.#parts.keeper.clear());
    this.#loop.start();
  }

  async ready(): Promise<void> {}

  /** Given up at once: another node need not wait for it to run out. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    this.#session = undefined;
    this.#unwatch();
    this.#try(() => this.#parts.keeper.clear());
  }

  opened(session: LinkSession): void {
    this.#session = session;
    this.#parts.keeper.connected(session.server?.fleet ?? this.#parts.rootFingerprint());
    this.#unsure();
  }

  /** Its instructions come by the engine. */
  received(): boolean {
    return false;
  }

  answered(_: LinkSession, { sentAt, answer }: AnsweredHeartbeat): void {
    const { keeper } = this.#parts;
    const said = readHeartbeatAnswer(answer.jsonB64)?.vip;
    // An older server that answers lets its holder go on.
    if (said === undefined || said === 'holder') this.#try(() => keeper.prolong(sentAt));
    const isHeld = keeper.state().hold.until !== undefined;
    if (said === 'holder' ? !isHeld : said === 'other' && isHeld) this.#unsure();
  }

  closed(session: LinkSession): void {
    if (this.#session === session) this.#session = undefined;
  }

  problems(): readonly StatusProblem[] {
    const { failure } = this.#parts.keeper.state();
    const failed = failure === undefined ? undefined : this.#problemOf(failure, undefined);
    return [this.#problem ?? failed].filter((problem) => problem !== undefined);
  }

  #look(): void {
    const { keeper, logger } = this.#parts;
    const because = this.#try(() => keeper.look());
    if (because !== undefined) this.#unsure();
    if (this.#isUnsure) this.#unsure();
    try {
      this.#lookAround();
    } catch (error) {
      this.#unwatch();
      logger.warn('the neighbours cannot be asked about the virtual IP', { error });
    }
  }

  #unsure(): void {
    this.#isUnsure = true;
    const session = this.#session;
    if (session === undefined || this.#asking !== undefined) return;
    this.#asking = this.#ask(session).finally(() => {
      this.#asking = undefined;
    });
  }

  /** What is not answered, or was overtaken, is asked again by the next look. */
  async #ask(session: LinkSession): Promise<void> {
    const { keeper, ask, bootTime, logger } = this.#parts;
    const [askedAt, changes] = [bootTime(), keeper.changes];
    try {
      const answer = readAnswer(await ask(ASK_TYPE, NOTHING, ASK_MS, { signal: session.signal }));
      if (session !== this.#session || changes !== keeper.changes) return;
      // What the kernel does not take is asked for again.
      const done = this.#try(() => {
        keeper.confirm(answer, askedAt);
        return true;
      });
      this.#isUnsure = done !== true;
    } catch (error) {
      if (!session.signal.aborted) logger.warn('the control plane does not say who has the virtual IP', { error });
    }
  }

  /** One that holds on without its control plane gives way to whoever else has the address (RFC 5227). */
  #lookAround(): void {
    const { keeper, address, bootTime, logger } = this.#parts;
    if (!keeper.state().isAlone) {
      this.#unwatch();
      return;
    }
    this.#watch ??= { claims: address.watch(), probeAt: 0 };
    const claim = this.#watch.claims.claim();
    if (claim !== undefined) {
      logger.warn('another machine has the virtual IP', { mac: claim });
      this.#unwatch();
      this.#try(() => keeper.conflict());
    } else if (bootTime() >= this.#watch.probeAt) {
      this.#watch.probeAt = bootTime() + PROBE_MS;
      this.#watch.claims.probe();
    }
  }

  #unwatch(): void {
    this.#watch?.claims.close();
    this.#watch = undefined;
  }

  #try<T>(step: () => T): T | undefined {
    const { clock, logger } = this.#parts;
    try {
      const result = step();
      this.#problem = undefined;
      return result;
    } catch (error) {
      if (this.#problem === undefined) logger.warn('the virtual IP cannot be put right; it is tried again', { error });
      this.#problem = this.#problemOf(error, this.#problem?.since ?? clock.now());
      return undefined;
    }
  }

  #problemOf(error: unknown, since: number | undefined): StatusProblem {
    const remedy = error instanceof AgentError ? error.remedy : 'see the log of the daemon';
    return { subject: 'virtual IP', reason: messageOf(error), since, remedy };
  }
}

/** @throws AgentError `link.refused` for what is no answer */
function readAnswer({ type, jsonB64 }: ServerMessage): HolderAnswer {
  const payload = type === 'ERROR' ? undefined : readPayload(jsonB64, SMALL_PAYLOAD_BYTES, parseExact);
  const parsed = holderAnswer.safeParse(payload?.ok === true ? payload.value : undefined);
  if (parsed.success) return parsed.data;
  throw new AgentError('link.refused', { problem: `${ASK_TYPE} was answered with ${type}, which says nothing` });
}

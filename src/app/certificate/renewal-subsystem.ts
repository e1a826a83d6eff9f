import { nextRenewalAt, renewalTime, withRenewal } from '../../domain/certificate/validity.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { formatInstant, roughly } from '../../domain/kernel/instant.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { KeyMaker } from '../../ports/certificate/key-maker.js';
import type { PairStore, StoredPair } from '../../ports/certificate/pair-store.js';
import type { RenewalClient } from '../../ports/certificate/renewal-client.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { Subsystem } from '../agent/subsystem.js';

export interface RenewalConfig {
  readonly pairs: PairStore;
  readonly client: RenewalClient;
  readonly keys: KeyMaker;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From 0 up to, not with, 1. */
  readonly random: () => number;
  /**
   * Resolves when this process has the stream of its node, or has waited long enough for it: a server gives the next certificate to the
   * machine that has the stream.
   */
  readonly linked: (options: CallOptions) => Promise<void>;
  /** Fingerprint of a root, as heartbeats name it; undefined when it is none. */
  readonly fingerprintOf: (root: string) => string | undefined;
  /** A new pair is in use on disk: connections are to be made with it from now on. */
  readonly onRenewed: (pair: StoredPair) => void;
}

/** What a server takes of a node. */
const LEAST_GAP_MS = 60_000;
/** The wall clock may be set meanwhile. */
const CHECK_MS = 60 * 60_000;
const FIRST_BACKOFF_MS = 2 * 60_000;
const GREATEST_BACKOFF_MS = 3 * 60 * 60_000;
/** A renewal that does not succeed is a problem when so little is left. */
const REPORTED_LEFT_MS = 7 * 24 * 60 * 60_000;

/**
 * Keeps the node's certificate from running out: looks at start and every hour. A new pair is kept on disk before it is tried, tried on
 * a connection of its own before it replaces the old one, and a kept one is tried first after a crash: from its first use on the server
 * takes the old one for 5 min only.
 */
export class RenewalSubsystem implements Subsystem, ProblemSource {
  readonly name = 'renewal';
  readonly #config: RenewalConfig;
  readonly #loop: ReconcileLoop;
  #current: StoredPair | undefined;
  #renewals: readonly number[] = [];
  /** Serial of a kept pair that was refused: another one is asked for. */
  #refused: string | undefined;
  /** By which nodes are certified now, and when this node asks for a certificate of it, on the monotonic clock. */
  #root: { readonly fingerprint: string; readonly dueAt: number } | undefined;
  readonly #stop = new AbortController();
  /** Drawn once for a certificate: otherwise each look would move the time. */
  #jitter: { readonly serial: string; readonly value: number } | undefined;

  constructor(config: RenewalConfig) {
    this.#config = config;
    this.#loop = new ReconcileLoop({
      name: 'renewal of the certificate',
      run: (signal) => this.#run({ signal }),
      clock: config.clock,
      logger: config.logger,
      random: config.random,
      leastGapMs: LEAST_GAP_MS,
      greatestGapMs: CHECK_MS,
      firstBackoffMs: FIRST_BACKOFF_MS,
      greatestBackoffMs: GREATEST_BACKOFF_MS,
    });
  }

  async start(): Promise<void> {
    this.#loop.start();
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop.stop();
  }

  /** Looks now, or as soon as the last look is a minute ago: the certificate is refused, or the clock was set. */
  look(): void {
    this.#loop.markDirty();
  }

  /**
   * The control plane says by which root it certifies nodes. A node whose certificate is of another one asks for its next one, at a time
   * within `spreadMs`: all nodes learn of a new root at once.
   */
  rootIs(fingerprint: string, spreadMs: number): void {
    if (this.#root?.fingerprint === fingerprint) return;
    const { clock, random } = this.#config;
    const inMs = random() * spreadMs;
    this.#root = { fingerprint, dueAt: clock.monotonic() + inMs };
    clock.sleep(inMs, this.#stop).then(
      () => this.#loop.markDirty(),
      () => {},
    );
  }

  problems(): readonly StatusProblem[] {
    const own = this.#current === undefined ? [] : this.#lateness(this.#current);
    return [...this.#config.pairs.problems(), ...own];
  }

  #lateness({ notBefore, notAfter }: StoredPair): readonly StatusProblem[] {
    const now = this.#config.clock.now();
    const problem = (reason: string, remedy: string) => [{ subject: 'certificate', reason, since: undefined, remedy }];
    const times = `valid from ${formatInstant(notBefore)} to ${formatInstant(notAfter)}, and this machine's clock says ${formatInstant(now)}`;
    if (now > notAfter) return problem(`expired ${roughly(now - notAfter)} ago: ${times}`, REGISTER_AGAIN);
    if (now < notBefore) return problem(`not valid yet: ${times}`, 'set the clock of this machine');
    const failure = this.#loop.status().error?.error;
    if (failure === undefined || notAfter - now > REPORTED_LEFT_MS) return [];
    const why = failure instanceof Error ? failure.message : String(failure);
    return problem(`expires in ${roughly(notAfter - now)} and cannot be renewed: ${why}`, remedyOf(failure));
  }

  async #run(options: CallOptions): Promise<void> {
    const { clock, pairs } = this.#config;
    const { current, staged } = await pairs.load(options);
    const former = this.#current;
    this.#current = current;
    // It was put in use, but whoever did it could not tell: what came after that had failed.
    if (former !== undefined && current !== undefined && current.serial !== former.serial) this.#config.onRenewed(current);
    // Also of a registration that died before its pair was in use: its token is spent.
    if (staged !== undefined && staged.serial !== this.#refused) return this.#adopt(staged, options);
    if (current === undefined) return;
    if (clock.now() < renewalTime(current, this.#jitterOf(current)) && !this.#isOfFormerRoot(current)) return;
    if (nextRenewalAt(this.#renewals, clock.now()) > clock.now()) return;
    await this.#adopt(await this.#fetch(current, options), options);
  }

  async #fetch(current: StoredPair, options: CallOptions): Promise<StoredPair> {
    const { client, clock, keys, linked, pairs } = this.#config;
    await linked(options);
    const { csr, privateKey } = await keys.makeRequest(options);
    const answer = await client.regenerate(current, csr, options).catch((error: unknown) => {
      // Both are refused: then the newer one may have been taken before, and what refused it may pass.
      if (isRefusal(error)) this.#refused = undefined;
      throw error;
    });
    this.#renewals = withRenewal(this.#renewals, clock.now());
    return pairs.stage({ certificate: answer.certificate, privateKey: answer.privateKey || privateKey, ca: answer.ca }, options);
  }

  async #adopt(pair: StoredPair, options: CallOptions): Promise<void> {
    const { client, logger, onRenewed, pairs } = this.#config;
    try {
      await client.tryPair(pair, options);
    } catch (error) {
      // It stays: a connection that was closed looks like a refusal, and the server may have seen it before.
      if (isRefusal(error)) this.#refused = pair.serial;
      throw error;
    }
    await pairs.activate(pair.serial, options);
    this.#current = pair;
    logger.info('the certificate of this node was renewed', { serial: pair.serial, until: formatInstant(pair.notAfter) });
    onRenewed(pair);
  }

  #isOfFormerRoot({ ca }: StoredPair): boolean {
    const { clock, fingerprintOf } = this.#config;
    if (this.#root === undefined || clock.monotonic() < this.#root.dueAt) return false;
    const own = fingerprintOf(ca);
    return own !== undefined && own !== this.#root.fingerprint;
  }

  #jitterOf({ serial }: StoredPair): number {
    if (this.#jitter?.serial !== serial) this.#jitter = { serial, value: this.#config.random() * 2 - 1 };
    return this.#jitter.value;
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof AgentError && error.code === 'certificate.refused';
}

const REGISTER_AGAIN = 'register the node again with a new token, unless the clock is wrong';

function remedyOf(error: unknown): string {
  return error instanceof AgentError ? error.remedy : 'look into the log of this node';
}

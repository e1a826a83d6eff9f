import { renewalTime } from '../../domain/certificate/validity.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { formatInstant } from '../../domain/kernel/instant.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { Subsystem } from '../agent/subsystem.js';
import type { OwnCertificates, OwnPair } from './own-certificates.js';

export interface ServerPairConfig {
  readonly own: OwnCertificates;
  readonly port: 'l1' | 'l2' | 'admin';
  /** Of this replica. */
  readonly server: string;
  /** Names and addresses under which it is called. */
  readonly hosts: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** From 0 up to, not with, 1. */
  readonly random: () => number;
  /** Another pair is to be shown from now on; not called for the first one. */
  readonly onRenewed: () => void;
}

/** The wall clock may be set meanwhile. */
const CHECK_MS = 60 * 60_000;
const LEAST_GAP_MS = 60_000;

/** The certificate of one port of the control plane: made at start, before the port is opened, and in time while it runs. */
export class ServerPairSubsystem implements Subsystem {
  readonly name: string;
  readonly #config: ServerPairConfig;
  readonly #loop: ReconcileLoop;
  #pair: OwnPair | undefined;

  constructor(config: ServerPairConfig) {
    this.#config = config;
    this.name = `${config.port} certificate`;
    this.#loop = new ReconcileLoop({
      name: this.name,
      run: (signal) => this.#renewIfDue({ signal }),
      clock: config.clock,
      logger: config.logger,
      random: config.random,
      leastGapMs: LEAST_GAP_MS,
      greatestGapMs: CHECK_MS,
    });
  }

  /** @throws AgentError `certificate.failed` before the start */
  pair(): OwnPair {
    if (this.#pair === undefined) throw new AgentError('certificate.failed', { problem: `the ${this.name} is not made yet` });
    return this.#pair;
  }

  /** Wall clock, milliseconds; undefined before the start. */
  get expiresAt(): number | undefined {
    return this.#pair?.notAfter;
  }

  async start(signal: AbortSignal): Promise<void> {
    this.#pair = await this.#make({ signal });
    this.#loop.start();
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  async #renewIfDue(options: CallOptions): Promise<void> {
    const { clock, logger, onRenewed } = this.#config;
    if (clock.now() < renewalTime(this.pair(), 0)) return;
    this.#pair = await this.#make(options);
    logger.info(`${this.name}: made anew`, { until: formatInstant(this.#pair.notAfter) });
    onRenewed();
  }

  #make(options: CallOptions): Promise<OwnPair> {
    const { own, port, server, hosts } = this.#config;
    return own.server(port, server, hosts, options);
  }
}

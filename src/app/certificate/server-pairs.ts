import { renewalTime } from '../../domain/certificate/validity.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { Subsystem } from '../agent/subsystem.js';
import type { OwnCertificates, OwnPair } from './own-certificates.js';

export interface ServerPairsConfig {
  readonly own: OwnCertificates;
  /** Of this replica. */
  readonly name: string;
  /** Names and addresses under which it is called. */
  readonly hosts: readonly string[];
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  /** There are new ones: connections from now on are to be made with them. */
  readonly renewed: () => void;
}

interface Pairs {
  readonly l1: OwnPair;
  readonly l2: OwnPair;
}

const LOOK_MS = 60 * 60_000;

/** The certificates that this replica shows: made at the start, and anew in time while it runs. Their keys are on no disk. */
export class ServerPairs implements Subsystem {
  readonly name = 'server-certificates';
  readonly #config: ServerPairsConfig;
  readonly #loop: ReconcileLoop;
  #pairs: Pairs | undefined;

  constructor(config: ServerPairsConfig) {
    const { clock, logger, random } = config;
    this.#config = config;
    this.#loop = new ReconcileLoop({
      name: 'certificates of this server',
      run: (signal) => this.#look({ signal }),
      clock,
      logger,
      random,
      leastGapMs: LOOK_MS,
      greatestGapMs: LOOK_MS,
    });
  }

  /** @throws AgentError `certificate.failed` */
  async start(signal: AbortSignal): Promise<void> {
    this.#pairs = await this.#make({ signal });
    this.#loop.start();
  }

  async ready(): Promise<void> {}

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** @throws Error before the start */
  get(port: keyof Pairs): OwnPair {
    if (this.#pairs === undefined) throw new Error('the certificates are not made yet');
    return this.#pairs[port];
  }

  async #look(options: CallOptions): Promise<void> {
    if (this.#config.clock.now() < renewalTime(this.get('l2'), 0)) return;
    this.#pairs = await this.#make(options);
    this.#config.renewed();
  }

  async #make(options: CallOptions): Promise<Pairs> {
    const { own, name, hosts } = this.#config;
    return { l1: await own.server('l1', name, hosts, options), l2: await own.server('l2', name, hosts, options) };
  }
}

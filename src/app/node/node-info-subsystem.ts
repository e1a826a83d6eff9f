import type { Identity } from '../../domain/identity/model.js';
import { formatNodeInfo, nodeInfoKey } from '../../domain/node/model.js';
import type { Clock } from '../../ports/clock.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { Logger } from '../../ports/logger.js';
import type { NodeProbe } from '../../ports/node/node-probe.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { Subsystem } from '../agent/subsystem.js';

/** A record changes at most so often (engine.md E11). */
const LEAST_GAP_MS = 10_000;
/** The machine is looked at so often; a part of it is chance, so that the nodes of a fleet do not propose together. */
const LOOK_MS = 60_000;
const CHANCE = 0.2;

export interface NodeInfoParts {
  readonly identity: Identity;
  readonly version: string;
  readonly probe: NodeProbe;
  readonly log: Pick<OrderedLog, 'propose'>;
  /** State of each part of the agent. */
  readonly subsystems: () => Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** From 0 up to, not with, 1. */
  readonly random: () => number;
  readonly logger: Logger;
}

/** Says in the log what this node is, when that changes. */
export class NodeInfoSubsystem implements Subsystem {
  readonly name = 'node-info';
  readonly #parts: NodeInfoParts;
  readonly #loop: ReconcileLoop;
  /** What the log is known to hold; undefined: it may hold anything. */
  #said: string | undefined;

  constructor(parts: NodeInfoParts) {
    const { clock, random, logger } = parts;
    this.#parts = parts;
    const greatestGapMs = LOOK_MS * (1 - CHANCE * random());
    const run = (signal: AbortSignal) => this.#run(signal);
    // Without a control plane the next attempt is as good a minute later.
    this.#loop = new ReconcileLoop({
      ...{ name: this.name, run, clock, random, logger, leastGapMs: LEAST_GAP_MS, greatestGapMs },
      firstBackoffMs: LEAST_GAP_MS,
    });
  }

  async start(): Promise<void> {
    this.#loop.start();
  }

  /** Nothing on this node waits for its record. */
  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { identity, version, probe, log, subsystems } = this.#parts;
    const machine = await probe.look({ signal });
    const value = formatNodeInfo({ ...machine, version, labels: identity.labels, subsystems: subsystems() });
    if (value === this.#said) return;
    // What was said before may have been taken, or not.
    this.#said = undefined;
    await log.propose({ changes: [{ key: nodeInfoKey(identity.nodeId), value }], preconditions: [] }, { signal });
    this.#said = value;
  }
}

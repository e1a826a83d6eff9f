import { type DnsmasqMemory, type DnsmasqPlan, isServed, wayBack } from '../../domain/dnsmasq/model.js';
import { type Answer, NO_CONTENT } from '../../domain/instruction/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { restartProblem, type UnitState } from '../../domain/service/model.js';
import type { Clock } from '../../ports/clock.js';
import type { DnsmasqConfig } from '../../ports/dnsmasq/dnsmasq-config.js';
import type { Units } from '../../ports/service/units.js';
import { messageOf } from '../agent/managed-subsystem.js';
import type { EffectContext } from '../instruction/effects.js';

export const DNSMASQ_UNIT = 'dnsmasq.service';
/** A unit that cannot serve ends within milliseconds; systemd starts it again after 100 ms at the earliest. */
const SETTLE_MS = 2_000;

export interface DnsmasqEffectParts {
  readonly config: DnsmasqConfig;
  readonly units: Pick<Units, 'state' | 'restart'>;
  readonly clock: Clock;
  /** Hex. */
  readonly sha256: (data: Uint8Array) => string;
  /** Boot id of the kernel. */
  readonly boot: string;
}

/** Gives dnsmasq another configuration, or leaves it with the one that it had (engine.md A8). */
export class DnsmasqEffect {
  readonly #parts: DnsmasqEffectParts;

  constructor(parts: DnsmasqEffectParts) {
    this.#parts = parts;
  }

  /**
   * Answered without a restart when exactly this is served already. Until the new file is placed an abort leaves everything as it was;
   * from there on it goes to one end or the other: the new one served, or the old one back and served.
   * @throws AgentError `dnsmasq.refused`, `dnsmasq.failed`, `dnsmasq.unusable`, `service.unmanaged`, `command.*`
   */
  async run({ contents }: DnsmasqPlan, context: EffectContext): Promise<Answer> {
    const { config, units, sha256, boot } = this.#parts;
    const bytes = new TextEncoder().encode(contents);
    const digest = sha256(bytes);
    const unit = await units.state(DNSMASQ_UNIT, context);
    if (!unit.isKnown) throw new AgentError('dnsmasq.unusable', { problem: `this machine has no ${DNSMASQ_UNIT}` });
    const placed = await config.read(context);
    const memory = await config.remembered(context);
    if (isServed(digest, boot, memory, placed, unit)) return NO_CONTENT;
    const problem = await config.test(bytes, context);
    if (problem !== undefined) throw new AgentError('dnsmasq.refused', { problem });
    const before = wayBack(memory, placed);
    await config.remember({ served: undefined, unfinished: { before, digest } }, context);
    await context.reached(`placing ${digest}`);
    context.signal.throwIfAborted();
    await config.place(bytes, { signal: NEVER });
    const served = await this.#restarted(unit);
    if (typeof served === 'string') throw await this.#goneBack(before, served);
    await this.#remember(digest, served);
    return NO_CONTENT;
  }

  /** The unit when it has stayed up on what is in place, else why not. */
  async #restarted(before: UnitState): Promise<UnitState | string> {
    const { units, clock } = this.#parts;
    try {
      await units.restart(DNSMASQ_UNIT, { signal: NEVER });
      const after = await units.state(DNSMASQ_UNIT, { signal: NEVER });
      await clock.sleep(SETTLE_MS, { signal: NEVER });
      const settled = await units.state(DNSMASQ_UNIT, { signal: NEVER });
      return restartProblem(before, after, settled) ?? settled;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** The failure to be reported, when what was there before has been tried again. */
  async #goneBack(before: Uint8Array | undefined, why: string): Promise<AgentError> {
    const { config, units } = this.#parts;
    const back = before === undefined ? 'there is no file again' : 'the former file is back';
    try {
      await config.place(before, { signal: NEVER });
      const again = await this.#restarted(await units.state(DNSMASQ_UNIT, { signal: NEVER }));
      if (typeof again === 'string') return failed(`${why}; ${back}, and with that: ${again}`);
      await config.remember(NOTHING, { signal: NEVER });
      return failed(`${why}; ${back} and dnsmasq runs on that`);
    } catch (error) {
      return failed(`${why}; what was before could not be put back: ${messageOf(error)}`);
    }
  }

  async #remember(digest: string, { startedAt }: UnitState): Promise<void> {
    const { config, boot } = this.#parts;
    try {
      const placed = await config.read({ signal: NEVER });
      if (placed?.digest !== digest) throw failed('somebody else has written the file meanwhile');
      await config.remember({ served: { digest, mark: placed.mark, boot, startedAt }, unfinished: undefined }, { signal: NEVER });
    } catch (error) {
      throw failed(`dnsmasq was restarted on the new file and runs, but: ${messageOf(error)}`);
    }
  }
}

const NEVER = new AbortController().signal;
const NOTHING: DnsmasqMemory = { served: undefined, unfinished: undefined };

function failed(problem: string): AgentError {
  return new AgentError('dnsmasq.failed', { problem });
}

import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { DnsmasqConfig } from '../../ports/dnsmasq/dnsmasq-config.js';
import type { Units } from '../../ports/service/units.js';
import { DNSMASQ_UNIT } from './dnsmasq-effect.js';

/** Takes away the configuration that this node has given dnsmasq. */
export class DnsmasqRemover {
  readonly #config: DnsmasqConfig;
  readonly #units: Units;

  constructor(config: DnsmasqConfig, units: Units) {
    this.#config = config;
    this.#units = units;
  }

  /**
   * A file with other contents than this node has placed is somebody else's, and stays. What is forgotten last is known to be unfinished by
   * the next call. @throws AgentError `dnsmasq.unusable`, `service.failed`
   */
  async remove(options: CallOptions): Promise<void> {
    const { served, unfinished } = await this.#config.remembered(options);
    const placed = await this.#config.read(options);
    if (placed !== undefined && (placed.digest === served?.digest || placed.digest === unfinished?.digest))
      await this.#config.place(undefined, options);
    else if (placed !== undefined || (served === undefined && unfinished === undefined)) return;
    await this.#restart(options);
    await this.#config.remember({ served: undefined, unfinished: undefined }, options);
  }

  /** Where nobody runs services, nobody serves it. */
  async #restart(options: CallOptions): Promise<void> {
    try {
      const { isKnown, isActive } = await this.#units.state(DNSMASQ_UNIT, options);
      if (isKnown && isActive) await this.#units.restart(DNSMASQ_UNIT, options);
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'service.unmanaged') throw error;
    }
  }
}

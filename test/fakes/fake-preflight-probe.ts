import type { PreflightFacts, Wanted } from '../../src/domain/preflight/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { PreflightProbe } from '../../src/ports/preflight/preflight-probe.js';

/** A machine that a test describes; nothing else is known of it. */
export class FakePreflightProbe implements PreflightProbe {
  facts: PreflightFacts = { now: 0, proxy: {} };

  async look({ server }: Wanted, { signal }: CallOptions): Promise<PreflightFacts> {
    signal.throwIfAborted();
    const { lookup, way, ...local } = this.facts;
    return server === undefined ? local : { ...local, lookup, way };
  }
}

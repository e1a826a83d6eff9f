import type { PreflightFacts, Wanted } from '../../src/domain/preflight/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { PreflightProbe } from '../../src/ports/preflight/preflight-probe.js';

/** A machine that a test describes; nothing else is known of it. */
export class FakePreflightProbe implements PreflightProbe {
  facts: PreflightFacts = { now: 0, proxy: {} };

  async look({ server, targets, knownAnswer: known, udpEcho: echo }: Wanted, { signal }: CallOptions): Promise<PreflightFacts> {
    signal.throwIfAborted();
    const { lookup, way, serverClock, answers, knownAnswer, udpEcho, ...local } = this.facts;
    return {
      ...local,
      ...(server !== undefined && { lookup, way, serverClock }),
      ...(targets !== undefined && { answers }),
      ...(known !== undefined && { knownAnswer }),
      ...(echo !== undefined && { udpEcho }),
    };
  }
}

import type { HealthCheck } from '../../domain/dataplane/health.js';
import type { IpAddress, PortNumber } from '../../domain/kernel/network.js';
import type { CallOptions } from '../call-options.js';

/** Whom to ask, and what. */
export interface ProbeTarget {
  readonly address: IpAddress;
  readonly port: PortNumber;
  /** Its port is not looked at. */
  readonly check: HealthCheck;
}

/** `reason` is one line of ours for people, without anything that the endpoint has said; empty when it is well. */
export interface ProbeResult {
  readonly ok: boolean;
  readonly reason: string;
  readonly latencyMs: number;
}

/** Asks endpoints how they are. */
export interface HealthProber {
  /**
   * One check, on a connection of its own that is closed when it resolves. Whatever the endpoint does is a result. On abort it rejects
   * with the signal's reason at once; that is also how a check that takes too long is ended. Calls do not wait for each other.
   */
  probe(target: ProbeTarget, options: CallOptions): Promise<ProbeResult>;
}

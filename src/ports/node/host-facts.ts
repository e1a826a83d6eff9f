import type { HostNetwork } from '../../domain/certificate/host.js';
import type { CallOptions } from '../call-options.js';

/** What a machine says of itself when it registers. */
export interface HostFacts {
  /** `undefined` when the machine has none. */
  machineId(options: CallOptions): Promise<string | undefined>;
  /** The text of os-release; empty when there is none. */
  osRelease(options: CallOptions): Promise<string>;
  /** IPv4 addresses and routes; those that can be read. */
  networks(options: CallOptions): Promise<readonly HostNetwork[]>;
}

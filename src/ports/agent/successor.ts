import type { CallOptions } from '../call-options.js';
import type { ListeningSocket } from '../dataplane/data-plane.js';

/** What one process of a daemon leaves to the next; the descriptors stay open on this side. */
export interface Inheritance {
  /** Files that a daemon of this machine holds: its data directory, and what keeps an older agent from starting. */
  readonly locks: readonly number[];
  readonly sockets: readonly ListeningSocket[];
}

/** The process that is to take this one's place. Each call throws AgentError `agent.successor_failed` when it ends, or says nothing for too long. */
export interface Successor {
  readonly pid: number;
  /** Its configuration is good, and it waits. */
  asks(options: CallOptions): Promise<void>;
  give(inheritance: Inheritance): void;
  /** It has taken everything up. */
  serves(options: CallOptions): Promise<void>;
  /** It has ended when this resolves. Safe twice. */
  kill(): Promise<void>;
}

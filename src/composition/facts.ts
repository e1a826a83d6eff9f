import type { Addon } from '../adapters/dataplane/addon.js';
import type { Config, Mode } from '../domain/config/model.js';
import type { Identity } from '../domain/identity/model.js';
import type { Paths } from '../domain/kernel/paths.js';
import type { DataPlane, ListeningSocket } from '../ports/dataplane/data-plane.js';

/** What is known before anything is built: every module may read it. */
export interface Facts {
  readonly mode: Mode;
  readonly version: string;
  readonly config: Config;
  readonly paths: Paths;
  readonly identity: Identity;
  readonly addon: Addon;
  /** Sockets of the process before this one. */
  readonly inherited?: readonly ListeningSocket[];
  /** The data plane of the agent that this one takes up again, as no successor has come up. */
  readonly carried?: DataPlane;
  /** Wall clock, milliseconds. */
  readonly startedAt: number;
}

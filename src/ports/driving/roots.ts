import type { CallOptions } from '../call-options.js';
import type { RootFacts } from '../certificate/authority-maker.js';

/** `registration`: what machines that register judge the control plane by. `nodes`: what nodes and their control plane judge each other by. */
export const rootNames = ['registration', 'nodes'] as const;
export type RootName = (typeof rootNames)[number];

export interface FormerRoot extends RootFacts {
  /** Wall clock, milliseconds. */
  readonly replacedAt: number;
  /** Whom valid certificates of it name. Of `registration` it is not known who has the root. */
  readonly inUse: readonly RootUser[];
}

export interface RootUser {
  readonly nid: string;
  readonly serial: string;
  /** Wall clock, milliseconds. */
  readonly notAfter: number;
}

export interface RootStatus {
  readonly name: RootName;
  readonly current: RootFacts;
  readonly former: FormerRoot | undefined;
}

/** The roots of the control plane, and how they follow each other. */
export interface Roots {
  /** In the order of `rootNames`. @throws AgentError `store.*` */
  list(options: CallOptions): Promise<readonly RootStatus[]>;
  /**
   * A new root that certifies from now on; certificates of the former one stay good until it is retired. Durable, and the same for all
   * replicas, when it resolves.
   * @throws AgentError `certificate.root_rotating` while there is a former one, `certificate.failed`, `store.*`
   */
  rotate(name: RootName, options: CallOptions): Promise<RootStatus>;
  /**
   * The former root counts no longer. With `force` also when certificates of it are in use: they are revoked, and their nodes have to
   * register again. Repeated after a failure it goes on.
   * @throws AgentError `certificate.root_in_use` with those who use it, `certificate.no_former_root`, `store.*`
   */
  retire(
    name: RootName,
    force: boolean,
    options: CallOptions,
  ): Promise<{ readonly retired: RootFacts; readonly revoked: readonly RootUser[] }>;
}

import type { EtcdMember, MemberId } from '../../domain/etcd/model.js';
import type { CallOptions } from '../call-options.js';

export interface AddedMember {
  readonly id: MemberId;
  /** `name=url,name=url`: the members before it. */
  readonly initialCluster: string;
}

/** What people ask of the etcd of this machine. One change at a time; another one waits. */
export interface EtcdMembership {
  /** Also without a quorum. @throws AgentError `etcd.unavailable` */
  list(options: CallOptions): Promise<readonly EtcdMember[]>;

  /**
   * Resolves when it is gone. A leader hands over first, or nothing is removed.
   * @throws AgentError `etcd.refused`, `etcd.unavailable`; `etcd.unknown_member`
   */
  remove(id: MemberId, options: CallOptions): Promise<void>;

  /** Again with the same URL before the member has started: the same member. @throws AgentError `etcd.refused`, `etcd.unavailable` */
  add(peerUrl: string, options: CallOptions): Promise<AddedMember>;

  /** @throws AgentError `etcd.refused`, `etcd.unavailable`, `etcd.unknown_member` */
  promote(id: MemberId, options: CallOptions): Promise<void>;
}

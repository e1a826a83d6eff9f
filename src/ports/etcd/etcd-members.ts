import type { EtcdMember, MemberId } from '../../domain/etcd/model.js';
import type { CallOptions } from '../call-options.js';

/** The membership of the etcd that this machine's Kubernetes uses. */
export interface EtcdMembers {
  /**
   * All members and how each is: whoever says nothing for 2 s is not healthy. `agreed`: as a quorum knows them now, else as the member
   * of this machine does.
   * @throws AgentError `etcd.unavailable`: there is no etcd here, it does not answer, or it has no quorum
   */
  list(agreed: boolean, options: CallOptions): Promise<readonly EtcdMember[]>;

  /** Resolves when the target leads. After an abort it leads or not. @throws AgentError `etcd.refused`, `etcd.unavailable` */
  moveLeader(target: MemberId, options: CallOptions): Promise<void>;

  /** One that is not there is no error. After an abort or a failure it is gone or not. @throws AgentError `etcd.refused`, `etcd.unavailable` */
  remove(id: MemberId, options: CallOptions): Promise<void>;

  /** As a learner. After an abort or a failure it is added or not. @throws AgentError `etcd.refused`, `etcd.unavailable` */
  add(peerUrl: string, options: CallOptions): Promise<MemberId>;

  /** Gives a learner a vote. @throws AgentError `etcd.refused`: it has not caught up, or is none; `etcd.unavailable` */
  promote(id: MemberId, options: CallOptions): Promise<void>;
}

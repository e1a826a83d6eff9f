import type { AuditHead } from '../../domain/audit/model.js';
import type { InstructionState } from '../../domain/dispatch/model.js';
import type { Reply, Tag } from '../../domain/instruction/model.js';
import type { Nid } from '../../domain/link/model.js';
import type { NodeState } from '../../domain/link/presence.js';
import type { NodeInfo } from '../../domain/node/model.js';
import type { CallOptions } from '../call-options.js';
import type { RegisteredNode } from './registrations.js';

export interface SendCall {
  readonly nid: Nid;
  readonly type: string;
  /** JSON text of an object, sent as it is; empty for an empty one. */
  readonly json: string;
  /** Undefined: one is made. The same one again is the same instruction. */
  readonly tag: Tag | undefined;
  /** It is never sent later than this from now, milliseconds. */
  readonly expiresMs: number;
  /** Who sends it, for those who look later. */
  readonly by: string;
}

/** An instruction, without what it says. Times are of the wall clock, milliseconds. */
export interface InstructionStatus {
  readonly nid: Nid;
  readonly tag: Tag;
  readonly type: string;
  readonly state: InstructionState;
  readonly by: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly deliveredAt: number | undefined;
  readonly finishedAt: number | undefined;
  /** Of an unfinished one: what stands between it and its end. */
  readonly waitsFor: string;
  /** Why it ended without a reply; empty when it did not. */
  readonly reason: string;
  /** Type of the reply; undefined while there is none. */
  readonly replyType: string | undefined;
  readonly replyBytes: number;
}

/** Absent members select everything. */
export interface InstructionFilter {
  readonly nid?: Nid | undefined;
  readonly tag?: Tag | undefined;
}

/** What nodes are told to do, and what came of it. Finished ones are kept for 24 h, 200 a node. */
export interface Instructions {
  /**
   * Durable when it resolves. It is delivered at most once to a node that cannot deduplicate.
   * @throws AgentError `fleet.unknown_node`, `dispatch.invalid`, `dispatch.duplicate_tag`, `dispatch.too_large`, `dispatch.too_many`, `store.*`
   */
  send(call: SendCall, options: CallOptions): Promise<InstructionStatus>;
  /** In the order of their sending. */
  list(filter: InstructionFilter, options: CallOptions): Promise<readonly InstructionStatus[]>;
  /** With the reply, if there is one. @throws AgentError `dispatch.not_found`, `store.*` */
  get(
    nid: Nid,
    tag: Tag,
    options: CallOptions,
  ): Promise<{ readonly status: InstructionStatus; readonly reply: Reply | undefined }>;
  /** What there is, then each one as it changes, its newest state, until abort. A reader that is slow misses states between. */
  watch(filter: InstructionFilter, options: CallOptions): AsyncIterable<InstructionStatus>;
  /**
   * What was not sent yet is not sent; what was is asked to stop where its agent can, and ends with the agent's answer.
   * @throws AgentError `dispatch.not_found`, `dispatch.not_cancellable` for an agent that does not know how, `store.*`
   */
  cancel(nid: Nid, tag: Tag, options: CallOptions): Promise<InstructionStatus>;
}

export interface FleetNode extends RegisteredNode {
  /** In the log; empty before its first connection to it. */
  readonly name: string;
  /** What it says of its machine; undefined before it did. */
  readonly info: NodeInfo | undefined;
  readonly state: NodeState;
  /** Wall clock, milliseconds; undefined when it was never connected. */
  readonly lastSeen: number | undefined;
  /** As the node says: `ready`, `not_ready` …; empty when it never did. */
  readonly status: string;
  readonly version: string;
  readonly address: string;
  /** The replica that has its stream. */
  readonly server: string;
  /** Instructions wait until this is taken back. */
  readonly cordoned: boolean;
  readonly unanswered: number;
  /** Empty, or what is wrong with the node as a whole. */
  readonly problem: string;
  /** Of its audit log, the highest that it has said; undefined when it never did. */
  readonly auditHead: AuditHead | undefined;
}

/** The nodes of the fleet, for those who operate it. */
export interface FleetNodes {
  /** Sorted by id. @throws AgentError `store.unavailable` */
  list(options: CallOptions): Promise<readonly FleetNode[]>;
  /** Whether instructions are held back from it. The same again changes nothing. @throws AgentError `fleet.unknown_node`, `store.*` */
  cordon(nid: Nid, cordoned: boolean, options: CallOptions): Promise<void>;
  /**
   * Its certificates are revoked, its stream ends, and what was to be sent to it is cancelled. Repeated after a failure it goes on.
   * @throws AgentError `fleet.unknown_node`, `store.*`
   */
  remove(nid: Nid, options: CallOptions): Promise<void>;
  /**
   * The certificate with this serial is refused from now on, and what was opened with it ends within a second. Its node stays, and what is
   * to be sent to it waits for it to register again.
   * @throws AgentError `fleet.unknown_certificate`, `store.*`
   */
  revokeCertificate(serial: string, reason: string, options: CallOptions): Promise<void>;
}

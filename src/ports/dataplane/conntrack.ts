import type { FlowFilter, Flows } from '../../domain/dataplane/flows.js';
import type { CallOptions } from '../call-options.js';

export interface FlowTally {
  readonly done: number;
  /** They were gone before, or another flow had taken their place, which was left as it was. */
  readonly gone: number;
}

export interface ChallengeTally {
  /** Segments: two for each TCP flow. */
  readonly sent: number;
  readonly failed: number;
  /** Of the first that failed, one line. */
  readonly problem?: string;
}

/**
 * The connections that the kernel tracks for this machine. No call keeps the main thread, and calls do not wait for each other. An aborted call
 * rejects with the signal's reason; what it has begun is carried out.
 * @throws AgentError `dataplane.conntrack_failed`
 */
export interface Conntrack {
  /** A flow that the kernel moves meanwhile may come twice or be missed: whoever must have all asks again. */
  list(filter: FlowFilter, options: CallOptions): Promise<Flows>;

  /**
   * Forgets each flow, by what its answers look like and by its id: never what has taken its place, unless the kernel gave that the same id at the
   * same place for the same client and back-end.
   */
  remove(flows: Flows, options: CallOptions): Promise<FlowTally>;

  /** Sets the bits of `mask` in each flow's mark to those of `value`. One that has taken the place of a flow has them cleared. */
  mark(flows: Flows, value: number, mask: number, options: CallOptions): Promise<FlowTally>;

  /**
   * Makes both ends of each TCP flow say something, also when they are idle, by an empty segment with wrong numbers that rules leave untracked by its
   * packet mark. A rule that rejects the flow's packets then resets either end. Flows of other protocols are passed over. An end answers one such segment in 500 ms, also of those that came before: whoever
   * must reach both ends of all calls once more after 600 ms, for flows that are closed (8) as well, as one end's reset closes the flow.
   */
  challenge(flows: Flows, packetMark: number, options: CallOptions): Promise<ChallengeTally>;
}

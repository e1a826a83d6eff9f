import type { ExplainedPort } from '../../domain/dataplane/explain.js';
import type { Revision } from '../../domain/log/model.js';
import type { CallOptions } from '../call-options.js';
import type { ListenerState } from '../dataplane/listener-status.js';

export interface ExplainCall {
  readonly namespace: string;
  readonly service: string;
  /** A port's name or number; all of them when left out. */
  readonly port?: string | undefined;
  /** A client whose endpoint is asked for, an IP address as typed. */
  readonly from?: string | undefined;
}

/** A port with what has become of its listener on this node. */
export interface PortExplanation extends ExplainedPort {
  readonly listener: ListenerState;
  /** `address:port` that it is bound to, empty while it is not. */
  readonly listen: string;
}

export interface Explanation {
  readonly nodeId: string;
  readonly revision: Revision;
  readonly ports: readonly PortExplanation[];
}

/** Says where traffic goes on this node, and why. Changes nothing. */
export interface Explainer {
  /**
   * As of the newest revision when the call was made.
   * @throws AgentError `resource.not_found` when there is no such service, or no such port; `resource.invalid` when
   * `from` is no address
   */
  explain(call: ExplainCall, options: CallOptions): Promise<Explanation>;
}

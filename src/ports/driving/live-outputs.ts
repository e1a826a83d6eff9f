import type { OutputPiece } from '../../domain/instruction/live-output.js';
import type { Tag } from '../../domain/instruction/model.js';
import type { Nid } from '../../domain/link/model.js';
import type { CallOptions } from '../call-options.js';

/** What scripts say while they run. */
export interface LiveOutputs {
  /**
   * The newest 64 KiB of what was said, then the rest as it comes, until the instruction has ended or on abort. Lossy: `seq` shows gaps. Of
   * an older agent nothing comes.
   * @throws AgentError `dispatch.not_found`, `dispatch.elsewhere` when another replica has the node's stream, `store.unavailable`
   */
  follow(nid: Nid, tag: Tag, options: CallOptions): AsyncIterable<OutputPiece>;
}

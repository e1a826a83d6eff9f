import type { CallerFacts } from '../link/model.js';

/**
 * `current`: it has the node's stream, or would have it at once. `stranger`: another machine, or another start of it, which has not shown
 * yet that it is the node.
 */
export type RenewalVerdict = 'current' | 'stranger';

/**
 * Whether a process may have a certificate to follow that of its node (engine.md F5): only the machine that has the current stream.
 * @param stream who has the current stream; undefined when nobody had one, or an older agent @param caller undefined for an older agent
 */
export function judgeRenewal(stream: CallerFacts | undefined, caller: CallerFacts | undefined): RenewalVerdict {
  if (stream === undefined || stream.instance === caller?.instance) return 'current';
  // A process that was started anew takes the stream over without a question.
  return caller !== undefined && stream.boot === caller.boot && stream.hardware === caller.hardware ? 'current' : 'stranger';
}

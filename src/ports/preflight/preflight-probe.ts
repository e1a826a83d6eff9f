import type { PreflightFacts, Wanted } from '../../domain/preflight/model.js';
import type { CallOptions } from '../call-options.js';

/** Looks at a machine before it becomes a node. */
export interface PreflightProbe {
  /**
   * Each fact once, all at the same time, each within some seconds: what hangs or fails is undefined. Where the kernel lacks a module it
   * is loaded, as the only trial that tells; nothing else on the machine stays changed. Over the network only what `wanted` names is
   * asked.
   * Rejects on abort only.
   */
  look(wanted: Wanted, options: CallOptions): Promise<PreflightFacts>;
}

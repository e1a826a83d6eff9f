import type { ConfigFile } from '../../domain/config/problem.js';
import type { CallOptions } from '../call-options.js';

/** Where the configuration stands that people write. */
export interface ConfigSource {
  /**
   * Reads it anew. `undefined` when there is none and none was asked for by name. What is wrong with it is returned, so that it is
   * told together with what is wrong elsewhere; only an abort rejects.
   */
  read(options: CallOptions): Promise<ConfigFile | undefined>;
}

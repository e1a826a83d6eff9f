import type { ConfigFile } from '../../domain/config/problem.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ConfigSource } from '../../ports/config/config-source.js';

/** The first of several that is there; the others are not looked at. */
export class FirstConfigFile implements ConfigSource {
  readonly #sources: readonly ConfigSource[];

  constructor(sources: readonly ConfigSource[]) {
    this.#sources = sources;
  }

  async read(options: CallOptions): Promise<ConfigFile | undefined> {
    for (const source of this.#sources) {
      const found = await source.read(options);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

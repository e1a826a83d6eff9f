import { type Config, type Mode, type Setting, settings } from '../domain/config/model.js';
import { type ConfigResult, planReload, resolveConfig } from '../domain/config/plan.js';
import { configError } from '../domain/config/problem.js';
import type { CallOptions } from '../ports/call-options.js';
import type { ConfigSource } from '../ports/config/config-source.js';
import type { Logger } from '../ports/logger.js';

export interface ConfigLoaderParts {
  readonly mode: Mode;
  readonly source: ConfigSource;
  readonly env: NodeJS.ProcessEnv;
  readonly flags: Readonly<Partial<Record<Setting, string>>>;
}

/** The configuration of this process: read at the start, and again when asked. */
export class ConfigLoader {
  readonly #parts: ConfigLoaderParts;
  #current: Config | undefined;
  #reloading: Promise<void> = Promise.resolve();

  constructor(parts: ConfigLoaderParts) {
    this.#parts = parts;
  }

  /** @throws AgentError `config.invalid` with every problem and warning */
  async load(options: CallOptions): Promise<{ readonly config: Config; readonly warnings: readonly string[] }> {
    const result = await this.#resolve(options);
    if (!result.valid) throw configError(result.problems, result.warnings);
    this.#current = result.config;
    return result;
  }

  /** Takes what can change while running and hands it to `use`; all else is told. One at a time, in the order of the calls. */
  reload(use: (config: Config, changed: readonly Setting[]) => void, logger: Logger, options: CallOptions): Promise<void> {
    this.#reloading = this.#reloading.then(() => this.#reload(use, logger, options));
    return this.#reloading;
  }

  async #reload(use: (config: Config, changed: readonly Setting[]) => void, logger: Logger, options: CallOptions): Promise<void> {
    try {
      if (this.#current === undefined) return;
      const { config, live, warnings, error } = planReload(this.#current, await this.#resolve(options));
      this.#current = config;
      for (const warning of warnings) logger.warn(warning);
      if (error !== undefined) return logger.error(error);
      use(config, live);
      logger.info('configuration read again', { changed: live.map((setting) => settings[setting].path) });
    } catch (error) {
      if (!options.signal.aborted) logger.error('the configuration could not be read again', { error });
    }
  }

  async #resolve(options: CallOptions): Promise<ConfigResult> {
    const { mode, source, env, flags } = this.#parts;
    return resolveConfig({ mode, file: await source.read(options), environment: env, flags });
  }
}

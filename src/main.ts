import type { CliContext, ExitCode } from './adapters/cli/context.js';
import type { DevOptions, LocalVerbs, RestoreOptions } from './adapters/cli/program.js';

/** The verbs that run the daemon or work on its files. They load what only they need: a client starts in a tenth of a second. */
export const localVerbs: LocalVerbs = {
  async dev(context: CliContext, options: DevOptions): Promise<ExitCode> {
    return (await import('./composition/dev.js')).dev(context, options);
  },
  async restore(context: CliContext, options: RestoreOptions): Promise<ExitCode> {
    return (await import('./composition/restore.js')).restore(context, options);
  },
};

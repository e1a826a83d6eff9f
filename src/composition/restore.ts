import type { CliContext, ExitCode } from '../adapters/cli/context.js';
import type { RestoreOptions } from '../adapters/cli/program.js';
export async function restore(_context: CliContext, _options: RestoreOptions): Promise<ExitCode> {
  throw new Error('wait for the log');
}

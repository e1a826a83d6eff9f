import { existsSync } from 'node:fs';
import { type CliContext, type ExitCode, exitCodes } from '../adapters/cli/context.js';
import { structured, table } from '../adapters/cli/output.js';
import type { RestoreOptions } from '../adapters/cli/program.js';
import { loadAddon } from '../adapters/dataplane/addon.js';
import { listCopies } from '../adapters/log/sqlite-log-copies.js';
import { restoreLog } from '../adapters/log/sqlite-log-restore.js';
import { AgentError } from '../domain/kernel/errors.js';
import { checkDataDir, holdDataDir } from './data-dir.js';
import { pathsOf, usualDataDir } from './paths.js';

/** Puts a copy in the place of a damaged log while no daemon runs, or lists the copies. */
export async function restore({ console, env }: CliContext, options: RestoreOptions): Promise<ExitCode> {
  const paths = pathsOf(options, env, usualDataDir());
  if (!existsSync(paths.dataDir))
    throw new AgentError('config.invalid', {
      problem: `there is no data directory ${paths.dataDir}`,
      remedy: 'name the data directory of the stopped daemon with --data-dir or HOLDFAST_DATA_DIR',
    });
  if (options.list) {
    const copies = listCopies(paths.logDb).map(({ file, time, head, problem }) => ({
      file,
      time: new Date(time).toISOString(),
      revision: head?.revision,
      problem,
    }));
    const rows = copies.map(({ file, time, revision, problem }) => [file, time, String(revision ?? '-'), problem ?? 'intact']);
    console.out(
      options.output === 'table' ? table(['COPY', 'MADE', 'REVISION', 'STATE'], rows) : structured(options.output, { copies }),
    );
    return exitCodes.done;
  }
  await checkDataDir(paths);
  holdDataDir(loadAddon(), paths);
  const copy = options.copy === undefined ? {} : { copy: options.copy };
  const restored = restoreLog({ file: paths.logDb, now: Date.now(), ...copy });
  if (options.output !== 'table') console.out(structured(options.output, restored));
  else {
    const { revision, time, aside, acknowledged } = restored;
    const lost = acknowledged === undefined || acknowledged <= revision ? '' : `; revisions up to ${acknowledged} are lost`;
    console.out(`restored ${restored.copy}: revision ${revision} of ${new Date(time).toISOString()}${lost}\n`);
    for (const file of aside) console.out(`set aside ${file}\n`);
  }
  return exitCodes.done;
}

import { randomUUID } from 'node:crypto';
import { readManifests } from '../manifest/manifest-files.js';
import { shortRef } from './apply.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, UsageError, withClient } from './context.js';
import { structured } from './output.js';
import { refOfDocument, refsOfArgs } from './selection.js';

export interface DeleteOptions extends GlobalOptions {
  readonly namespace: string;
  readonly filename: readonly string[];
  readonly dryRun: boolean;
  readonly ignoreNotFound: boolean;
}

export async function remove(context: CliContext, args: readonly string[], options: DeleteOptions): Promise<ExitCode> {
  const { filename, dryRun, ignoreNotFound } = options;
  if (filename.length > 0 && args.length > 0) throw new UsageError('expected names or -f, found both');
  const refs =
    filename.length === 0
      ? refsOfArgs(args, options.namespace)
      : (await readManifests(filename, context.stdin, context)).documents.map(refOfDocument);
  const request = { refs: [...refs], dryRun, ignoreNotFound, requestId: randomUUID() };
  const { deleted } = await withClient(context, options, (client) => client.delete(request, context));
  if (options.output !== 'table') context.console.out(structured(options.output, { deleted }));
  else context.console.out(deleted.map((ref) => `${shortRef(ref)} deleted${dryRun ? ' (dry run)' : ''}\n`).join(''));
  return exitCodes.done;
}

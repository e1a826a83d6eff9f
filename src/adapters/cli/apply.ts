import { randomUUID } from 'node:crypto';
import { createPatch } from 'diff';
import { AgentError } from '../../domain/kernel/errors.js';
import { printable } from '../../domain/kernel/printable.js';
import { DEFAULT_NAMESPACE } from '../../domain/resource/model.js';
import type { Manifests } from '../../ports/resource/manifest-source.js';
import { Action, type AppliedResource, type ApplyResponse, type Problem } from '../generated/holdfast/admin/v1/admin.js';
import { readManifests, sourceOf } from '../manifest/manifest-files.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, UsageError, withClient } from './context.js';
import { paint, structured, yaml } from './output.js';

export interface ApplyOptions extends GlobalOptions {
  readonly filename: readonly string[];
  readonly prune: boolean;
  readonly dryRun: boolean;
  readonly source?: string;
}

const words: Readonly<Record<Action, string>> = {
  [Action.UNSPECIFIED]: 'unknown',
  [Action.CREATED]: 'created',
  [Action.UPDATED]: 'updated',
  [Action.UNCHANGED]: 'unchanged',
  [Action.DELETED]: 'deleted',
  [Action.UNRECOGNIZED]: 'unknown',
};

export async function apply(context: CliContext, options: ApplyOptions): Promise<ExitCode> {
  const { response, manifests } = await send(context, options, options.dryRun);
  if (response.problems.length > 0) return reportProblems(context, response.problems, manifests);
  const { console } = context;
  if (options.output !== 'table') {
    const resources = response.resources.map(({ ref, action, addresses }) => ({ ...ref, action: words[action], addresses }));
    console.out(structured(options.output, { revision: response.revision, resources }));
  } else {
    console.out(response.resources.map((resource) => `${applied(resource)}${options.dryRun ? ' (dry run)' : ''}\n`).join(''));
    if (!options.dryRun) console.err(`revision ${response.revision}\n`);
  }
  warn(context, response);
  return exitCodes.done;
}

export async function diff(context: CliContext, options: ApplyOptions & { readonly exitCode: boolean }): Promise<ExitCode> {
  const { response, manifests } = await send(context, options, true);
  if (response.problems.length > 0) return reportProblems(context, response.problems, manifests);
  const changed = response.resources.filter(({ action }) => action !== Action.UNCHANGED);
  if (options.output !== 'table') {
    const resources = changed.map(({ ref, action, beforeJson, afterJson }) => ({
      ...ref,
      action: words[action],
      before: parse(beforeJson),
      after: parse(afterJson),
    }));
    context.console.out(structured(options.output, { resources }));
  } else {
    for (const resource of changed) context.console.out(patch(context, resource));
  }
  warn(context, response);
  return options.exitCode && changed.length > 0 ? exitCodes.failed : exitCodes.done;
}

async function send(context: CliContext, options: ApplyOptions, dryRun: boolean) {
  const { filename, prune } = options;
  if (prune && options.source === undefined && filename.includes('-')) {
    // Whatever else was piped in would be of the same source, and removed.
    throw new UsageError('--prune of what comes from standard input needs --source NAME');
  }
  const manifests = await readManifests(filename, context.stdin, context);
  if (manifests.documents.length === 0 && !prune) {
    throw new AgentError('resource.invalid', { problem: `no document in ${filename.join(', ')}` });
  }
  const documents = manifests.documents.map(({ value, ...place }) => ({ ...place, json: JSON.stringify(value) }));
  // The same path is the same source, from wherever it is named.
  const source = options.source ?? sourceOf(filename);
  const request = { documents, source, prune, dryRun, requestId: randomUUID() };
  const response = await withClient(context, options, (client) => client.apply(request, context));
  return { response, manifests };
}

function reportProblems({ console }: CliContext, problems: readonly Problem[], manifests: Manifests): ExitCode {
  for (const problem of problems) console.err(`${manifests.describe(problem)}\n`);
  console.err('nothing was changed\n');
  return exitCodes.failed;
}

function applied({ ref, action, addresses }: AppliedResource): string {
  const where = addresses.length === 0 ? '' : `  ${addresses.join(', ')}`;
  return `${shortRef(ref)} ${words[action]}${where}`;
}

export function shortRef(ref: AppliedResource['ref']): string {
  const { kind = '', namespace = '', name = '' } = ref ?? {};
  return `${kind.toLowerCase()}/${name}${namespace === DEFAULT_NAMESPACE ? '' : ` (namespace ${namespace})`}`;
}

function warn({ console }: CliContext, { resources }: ApplyResponse): void {
  for (const { ref, warnings } of resources) {
    for (const warning of warnings)
      console.err(`${paint(console, 'yellow', 'warning')}: ${printable(`${shortRef(ref)}: ${warning}`)}\n`);
  }
}

function patch({ console }: CliContext, { ref, beforeJson, afterJson }: AppliedResource): string {
  const text = createPatch(shortRef(ref), toYaml(beforeJson), toYaml(afterJson), 'now', 'after apply');
  return text
    .split('\n')
    .slice(2)
    .filter((line) => line !== '\\ No newline at end of file')
    .map((line) => {
      if (line.startsWith('+')) return paint(console, 'green', line);
      return line.startsWith('-') ? paint(console, 'red', line) : line;
    })
    .join('\n');
}

function toYaml(json: string): string {
  // The log keeps keys sorted, the schema gives them in its own order: only what differs is to show.
  return json === '' ? '' : yaml(JSON.parse(json), { sortMapEntries: true });
}

function parse(json: string): unknown {
  return json === '' ? null : JSON.parse(json);
}

import { AgentError } from '../../domain/kernel/errors.js';
import { printable } from '../../domain/kernel/printable.js';
import type { ResourceRef } from '../../domain/resource/model.js';
import type { ResourceObject } from '../../domain/resource/render.js';
import type { GrpcAdminClient } from '../admin/grpc-admin-client.js';
import { ChangeType, type LogStatus } from '../generated/holdfast/admin/v1/admin.js';
import { shortRef } from './apply.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, withClient } from './context.js';
import { describeObject, isUsable } from './describe.js';
import { json, structured, table, yaml } from './output.js';
import { type Selection, selectionOf } from './selection.js';

const NOTHING_READ = { revision: 0n, ageMs: 0n };

export interface SelectOptions extends GlobalOptions, Selection {
  readonly stale: boolean;
  readonly atLeast?: string;
}

export interface GetOptions extends SelectOptions {
  readonly watch: boolean;
}

/** `holdfast get`, `holdfast get all`, `get service hello`, `get service/hello`. */
export async function get(context: CliContext, args: readonly string[], options: GetOptions): Promise<ExitCode> {
  if (options.watch) return watch(context, args, options);
  const selection = selectionOf(args, options);
  const objects = await withClient(context, options, (client) => fetchObjects(context, client, selection, options));
  if (selection.name !== '' && objects.length === 0) throw new AgentError('resource.not_found', { problem: asked(selection) });
  if (options.output !== 'table') {
    const one = selection.kind !== '' && selection.namespace !== '' && selection.name !== '';
    context.console.out(
      structured(options.output, one ? objects[0] : { apiVersion: 'holdfast/v1', kind: 'List', items: objects }),
    );
  } else if (objects.length === 0) {
    context.console.err(
      `nothing found${options.allNamespaces ? '' : ` in namespace ${options.namespace}; -A looks in all of them`}\n`,
    );
  } else {
    context.console.out(tables(objects, options.allNamespaces));
  }
  return exitCodes.done;
}

/** What there is and then each change, a line each, until interrupted. */
export async function watch(context: CliContext, args: readonly string[], options: SelectOptions): Promise<ExitCode> {
  const selector = selectionOf(args, options);
  await withClient(context, options, async (client) => {
    if (options.stale) tellAge(context, (await client.status(context)).log);
    for await (const { type, revision, objectJson } of client.watch({ selector, ...howNew(options) }, context)) {
      const object: ResourceObject = JSON.parse(objectJson);
      const word = ChangeType[type]?.toLowerCase() ?? 'changed';
      const change = { revision: Number(revision), type: word, object };
      if (options.output === 'json') context.console.out(json(change));
      else if (options.output === 'yaml') context.console.out(`---\n${yaml(change)}`);
      else context.console.out(`${printable(`${revision}  ${word}  ${shortRef(refOf(object))}  ${summary(object)}`)}\n`);
    }
  });
  return exitCodes.done;
}

export async function describe(context: CliContext, args: readonly string[], options: SelectOptions): Promise<ExitCode> {
  const selection = selectionOf(args, options);
  const { objects, services } = await withClient(context, options, async (client) => ({
    objects: await fetchObjects(context, client, selection, options),
    services: (await client.top({ namespace: selection.namespace }, context)).services,
  }));
  if (objects.length === 0) throw new AgentError('resource.not_found', { problem: asked(selection) });
  if (options.output !== 'table') context.console.out(structured(options.output, objects));
  else context.console.out(objects.map((object) => describeObject(object, services)).join('\n'));
  return exitCodes.done;
}

async function fetchObjects(
  context: CliContext,
  client: GrpcAdminClient,
  selector: ReturnType<typeof selectionOf>,
  options: SelectOptions,
): Promise<readonly ResourceObject[]> {
  const { objectsJson, ageMs, revision } = await client.get({ selector, ...howNew(options) }, context);
  if (options.stale) tellAge(context, { revision, ageMs });
  return objectsJson.map((json) => JSON.parse(json) as ResourceObject);
}

function tellAge({ console }: CliContext, { revision, ageMs }: Pick<LogStatus, 'revision' | 'ageMs'> = NOTHING_READ): void {
  console.err(`as of revision ${revision}, known to be the newest ${duration(ageMs)} ago\n`);
}

function howNew({ stale, atLeast }: SelectOptions) {
  return { stale, atLeast: BigInt(atLeast ?? 0) };
}

/** `12.3 s` */
function duration(ms: bigint): string {
  return `${(Number(ms) / 1000).toFixed(1)} s`;
}

/** `service/hello (namespace prod)`, as far as it was said. */
function asked({ kind, namespace, name, labels }: ReturnType<typeof selectionOf>): string {
  const what = [kind === '' ? 'any kind' : kind.toLowerCase(), ...(name === '' ? [] : [name])].join('/');
  const where = namespace === '' ? 'in any namespace' : `in namespace ${namespace}`;
  return `${what} ${where}${labels === '' ? '' : ` with ${labels}`}`;
}

function tables(objects: readonly ResourceObject[], withNamespace: boolean): string {
  const services = objects.filter(({ kind }) => kind === 'Service');
  const endpoints = objects.filter(({ kind }) => kind === 'Endpoints');
  const first = (object: ResourceObject) => (withNamespace ? [object.metadata.namespace] : []);
  const head = withNamespace ? ['NAMESPACE'] : [];
  const parts: string[] = [];
  if (services.length > 0) {
    const rows = services.map((object) => [
      ...first(object),
      object.metadata.name,
      object.status?.vip ?? '-',
      ports(object),
      ready(object),
    ]);
    parts.push(table([...head, 'SERVICE', 'ADDRESS', 'PORTS', 'ENDPOINTS'], rows));
  }
  if (endpoints.length > 0) {
    const rows = endpoints.map((object) => [
      ...first(object),
      object.metadata.name,
      serviceOf(object),
      String(object.spec.endpoints.length),
    ]);
    parts.push(table([...head, 'ENDPOINTS', 'SERVICE', 'COUNT'], rows));
  }
  return parts.join('\n');
}

/** `http 80`, and where it listens if that is another port. */
function ports({ status }: ResourceObject): string {
  const texts = (status?.ports ?? []).map(({ name, port, state, listen, reason }) => {
    if (state === 'failed') return `${name} ${port} (failed: ${reason ?? 'unknown'})`;
    // A control plane carries no traffic: how each node has it, each node knows.
    if (state === 'elsewhere') return `${name} ${port}`;
    if (listen === undefined) return `${name} ${port} (${state})`;
    const bound = listen.slice(listen.lastIndexOf(':') + 1);
    return bound === String(port) ? `${name} ${port}` : `${name} ${port} -> ${bound}`;
  });
  return texts.join(', ');
}

function ready({ status }: ResourceObject): string {
  const endpoints = status?.endpoints ?? [];
  const unhealthy = endpoints.filter(({ health }) => health?.state === 'unhealthy').length;
  const usable = endpoints.filter(isUsable).length;
  return `${usable}/${endpoints.length} ready${unhealthy === 0 ? '' : `, ${unhealthy} unhealthy`}`;
}

function serviceOf({ spec }: ResourceObject): string {
  return 'service' in spec ? spec.service : '-';
}

function summary(object: ResourceObject): string {
  return object.kind === 'Service'
    ? `${object.status?.vip ?? ''} ${ports(object)} ${ready(object)}`.trim()
    : `for service ${serviceOf(object)}`;
}

function refOf({ kind, metadata: { namespace, name } }: ResourceObject): ResourceRef {
  return { kind, namespace, name };
}

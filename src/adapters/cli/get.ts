import { randomUUID } from 'node:crypto';
import { stringify } from 'yaml';
import { AgentError } from '../../domain/kernel/errors.js';
import { DEFAULT_NAMESPACE, type ResourceRef } from '../../domain/resource/model.js';
import type { EndpointStatus, ResourceObject } from '../../domain/resource/render.js';
import { parseKind } from '../../domain/resource/selector.js';
import { ChangeType, type ServiceTraffic } from '../generated/holdfast/admin/v1/admin.js';
import { readManifests } from '../manifest/manifest-files.js';
import { shortRef } from './apply.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, withClient } from './context.js';
import { structured, table } from './output.js';

export interface SelectOptions extends GlobalOptions {
  readonly namespace: string;
  readonly allNamespaces: boolean;
  readonly selector?: string;
}

export interface GetOptions extends SelectOptions {
  readonly watch: boolean;
}

export interface DeleteOptions extends SelectOptions {
  readonly filename: readonly string[];
  readonly dryRun: boolean;
  readonly ignoreNotFound: boolean;
}

/** `holdfast get`, `holdfast get all`, `get service hello`, `get service/hello`. */
export async function get(context: CliContext, args: readonly string[], options: GetOptions): Promise<ExitCode> {
  if (options.watch) return watch(context, args, options);
  const selection = selectionOf(args, options);
  const objects = await withClient(context, options, (client) => fetchObjects(client, selection));
  const single = selection.name !== '';
  if (single && objects.length === 0) {
    throw new AgentError('resource.not_found', { problem: shortRef(selection) });
  }
  if (options.output !== 'table') {
    context.console.out(
      structured(options.output, single ? objects[0] : { apiVersion: 'holdfast/v1', kind: 'List', items: objects }),
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
  const { console, signal } = context;
  await withClient(context, options, async (client) => {
    for await (const { type, revision, objectJson } of client.watch({ selector: selectionOf(args, options) }, signal)) {
      const object: ResourceObject = JSON.parse(objectJson);
      const word = ChangeType[type]?.toLowerCase() ?? 'changed';
      if (options.output === 'table') console.out(`${revision}  ${word}  ${shortRef(refOf(object))}  ${summary(object)}\n`);
      else if (options.output === 'json') console.out(`${JSON.stringify({ revision: Number(revision), type: word, object })}\n`);
      else console.out(`---\n${stringify({ revision: Number(revision), type: word, object })}`);
    }
  });
  return exitCodes.done;
}

export async function describe(context: CliContext, args: readonly string[], options: SelectOptions): Promise<ExitCode> {
  const selection = selectionOf(args, options);
  const { objects, services } = await withClient(context, options, async (client) => ({
    objects: await fetchObjects(client, selection),
    services: (await client.top({ namespace: selection.namespace })).services,
  }));
  if (objects.length === 0) throw new AgentError('resource.not_found', { problem: args.join(' ') || 'nothing' });
  if (options.output !== 'table') context.console.out(structured(options.output, objects));
  else context.console.out(objects.map((object) => details(object, services)).join('\n'));
  return exitCodes.done;
}

export async function remove(context: CliContext, args: readonly string[], options: DeleteOptions): Promise<ExitCode> {
  const refs = options.filename.length > 0 ? await refsOfFiles(context, options.filename) : refsOfArgs(args, options);
  const { deleted } = await withClient(context, options, (client) =>
    client.delete({ refs: [...refs], dryRun: options.dryRun, ignoreNotFound: options.ignoreNotFound, requestId: randomUUID() }),
  );
  if (options.output !== 'table') context.console.out(structured(options.output, { deleted }));
  else context.console.out(deleted.map((ref) => `${shortRef(ref)} deleted${options.dryRun ? ' (dry run)' : ''}\n`).join(''));
  return exitCodes.done;
}

async function fetchObjects(
  client: { get(request: { selector: ReturnType<typeof selectionOf> }): Promise<{ objectsJson: string[] }> },
  selector: ReturnType<typeof selectionOf>,
): Promise<readonly ResourceObject[]> {
  const { objectsJson } = await client.get({ selector });
  return objectsJson.map((json) => JSON.parse(json) as ResourceObject);
}

function selectionOf(args: readonly string[], { namespace, allNamespaces, selector }: SelectOptions) {
  const [first = 'all', second] = args;
  const [kindText = '', inlineName] = first.split('/', 2);
  const kind = kindText === 'all' ? '' : parseKind(kindText);
  return { kind, namespace: allNamespaces ? '' : namespace, name: second ?? inlineName ?? '', labels: selector ?? '' };
}

function refsOfArgs(args: readonly string[], { namespace }: SelectOptions): readonly ResourceRef[] {
  const [first, ...rest] = args;
  if (first === undefined)
    throw new AgentError('resource.invalid', { problem: 'expected what to delete: service NAME, or -f FILE' });
  const names = first.includes('/') ? args : rest.map((name) => `${first}/${name}`);
  if (names.length === 0) throw new AgentError('resource.invalid', { problem: `expected a name after ${first}` });
  return names.map((text) => {
    const [kind = '', name = ''] = text.split('/', 2);
    return { kind: parseKind(kind), namespace, name };
  });
}

async function refsOfFiles({ stdin }: CliContext, paths: readonly string[]): Promise<readonly ResourceRef[]> {
  const { documents } = await readManifests(paths, stdin);
  return documents.map(({ file, number, value }) => {
    const { kind, metadata } = value as { kind?: unknown; metadata?: { name?: unknown; namespace?: unknown } };
    if (typeof kind !== 'string' || typeof metadata?.name !== 'string') {
      throw new AgentError('resource.invalid', { problem: `${file}: document ${number}: expected kind and metadata.name` });
    }
    const namespace = typeof metadata.namespace === 'string' ? metadata.namespace : DEFAULT_NAMESPACE;
    return { kind: parseKind(kind), namespace, name: metadata.name };
  });
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
    if (listen === undefined) return `${name} ${port} (${state})`;
    const bound = listen.slice(listen.lastIndexOf(':') + 1);
    return bound === String(port) ? `${name} ${port}` : `${name} ${port} -> ${bound}`;
  });
  return texts.join(', ');
}

function ready({ status }: ResourceObject): string {
  const endpoints = status?.endpoints ?? [];
  const unhealthy = endpoints.filter(({ health }) => health?.state === 'unhealthy').length;
  const usable = endpoints.filter((endpoint) => endpoint.ready && endpoint.health?.state !== 'unhealthy').length;
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

function details(object: ResourceObject, services: readonly ServiceTraffic[]): string {
  const { status, ...manifest } = object;
  if (status === undefined) return stringify(manifest);
  const { namespace, name } = object.metadata;
  const mine = services.filter((service) => service.namespace === namespace && service.service === name);
  const portRows = status.ports.map((port) => [port.name, String(port.port), port.state, port.listen ?? port.reason ?? '-']);
  const endpointRows = status.endpoints.map((endpoint) => [
    endpoint.address,
    endpoint.source,
    String(endpoint.weight),
    readiness(endpoint),
    ...traffic(endpoint.address.split(' '), mine),
  ]);
  return [
    `${stringify(manifest)}address: ${status.vip}\n\n`,
    table(['PORT', 'NUMBER', 'STATE', 'LISTENS ON'], portRows),
    '\n',
    endpointRows.length === 0
      ? 'no endpoints: connections are refused\n'
      : table(['ENDPOINT', 'FROM', 'WEIGHT', 'READY', 'ACTIVE', 'TOTAL'], endpointRows),
  ].join('');
}

/** `yes`, `no`, or `no, unhealthy (connection refused)`. */
export function readiness({ ready, health }: EndpointStatus): string {
  const unhealthy = health?.state === 'unhealthy' ? `unhealthy (${health.reason ?? 'no reason'})` : '';
  if (!ready) return unhealthy === '' ? 'no' : `no, ${unhealthy}`;
  return unhealthy === '' ? 'yes' : unhealthy;
}

function traffic(addresses: readonly string[], services: readonly ServiceTraffic[]): readonly [string, string] {
  const endpoints = services.flatMap((service) => service.endpoints).filter(({ address }) => addresses.includes(address));
  const sum = (pick: (endpoint: (typeof endpoints)[number]) => bigint) =>
    String(endpoints.reduce((total, one) => total + pick(one), 0n));
  return [sum(({ active }) => active), sum(({ total }) => total)];
}

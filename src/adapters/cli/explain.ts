import type { ExplainedEndpoint, ExplainedPort, ExplainResponse } from '../generated/holdfast/admin/v1/admin.js';
import { shortRef } from './apply.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, UsageError, withClient } from './context.js';
import { age, structured, table } from './output.js';
import { selectionOf } from './selection.js';

export interface ExplainOptions extends GlobalOptions {
  readonly namespace: string;
  readonly port?: string;
  readonly from?: string;
}

/** Where new connections of a service go on the daemon's node, endpoint by endpoint, and why. */
export async function explain(context: CliContext, args: readonly string[], options: ExplainOptions): Promise<ExitCode> {
  const { namespace, port = '', from = '' } = options;
  const service = serviceOf(args, namespace);
  const response = await withClient(context, options, (client) => client.explain({ namespace, service, port, from }, context));
  if (options.output === 'table')
    context.console.out(formatExplanation(shortRef({ kind: 'Service', namespace, name: service }), response));
  else context.console.out(structured(options.output, { service, namespace, ...response }));
  return exitCodes.done;
}

/** `service hello` or `service/hello`. @throws UsageError */
function serviceOf(args: readonly string[], namespace: string): string {
  const { kind, name } = selectionOf(args, { namespace, allNamespaces: false });
  if (kind === 'Service' && name !== '') return name;
  throw new UsageError(`expected service NAME, found ${args.join(' ')}`);
}

export function formatExplanation(service: string, { nodeId, ports }: ExplainResponse, now = Date.now()): string {
  return ports.map((port) => `${facts(service, nodeId, port)}${endpointTable(port.endpoints, now)}`).join('\n');
}

function facts(
  service: string,
  nodeId: string,
  { name, port, protocol, choice, outcome, from, ...listener }: ExplainedPort,
): string {
  return table(
    ['SERVICE', service],
    [
      ['port', `${name} (${port}/${protocol})`],
      ['node', nodeId],
      ['listens', listens(listener)],
      ['chosen', choice],
      ['outcome', outcome],
      ...(from === undefined ? [] : [['from', `${from.address} gets ${from.target || 'any'}: ${from.reason}`]]),
    ],
  );
}

function listens({ state, listen, reason, remedy }: Pick<ExplainedPort, 'state' | 'listen' | 'reason' | 'remedy'>): string {
  if (listen !== '') return `on ${listen}`;
  if (state === 'elsewhere') return 'on the nodes';
  return state === 'failed' ? `not: ${reason}; ${remedy}` : 'not yet';
}

function endpointTable(endpoints: readonly ExplainedEndpoint[], now: number): string {
  if (endpoints.length === 0) return '';
  const rows = endpoints.map(({ target, source, node, weight, tier, share, active, ...why }) => [
    target,
    source || '-',
    node || '-',
    weight === 0 ? '-' : String(weight),
    String(tier),
    share === 0 ? '-' : `${(share * 100).toFixed(1)}%`,
    String(active),
    verdict(why, now),
  ]);
  return `\n${table(['ENDPOINT', 'FROM', 'NODE', 'WEIGHT', 'TIER', 'SHARE', 'ACTIVE', 'VERDICT'], rows)}`;
}

function verdict(
  { verdict: word, reason, sinceMs }: Pick<ExplainedEndpoint, 'verdict' | 'reason' | 'sinceMs'>,
  now: number,
): string {
  const since = sinceMs === 0n ? '' : ` for ${age(now - Number(sinceMs))}`;
  return `${word}${since}${reason === '' ? '' : `: ${reason}`}`;
}

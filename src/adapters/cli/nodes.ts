import { AgentError } from '../../domain/kernel/errors.js';
import { printable } from '../../domain/kernel/printable.js';
import type { Node } from '../generated/holdfast/admin/v1/fleet.js';
import { isConfirmed } from './confirm.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, UsageError, withClient } from './context.js';
import { age, paint, structured, table } from './output.js';

export interface RemoveNodeOptions extends GlobalOptions {
  readonly yes: boolean;
  /** Of `delete` for resources: nobody must lose a node to a flag that he took for granted. */
  readonly dryRun: boolean;
  readonly filename: readonly string[];
}

export async function nodes(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  return getNodes(context, [], options);
}

/** By id, or by name in the log; all when none is named. */
export async function getNodes(context: CliContext, names: readonly Name[], options: GlobalOptions): Promise<ExitCode> {
  const { console } = context;
  const chosen = await choose(context, names, options);
  if (options.output !== 'table') console.out(structured(options.output, { nodes: chosen.map(shownOf) }));
  else if (chosen.length === 0) console.err('no node has registered; `holdfast token create` makes a token for one\n');
  else
    console.out(table(['NODE', 'HOST', 'STATE', 'STATUS', 'SEEN', 'VERSION', 'OS', 'ADDRESS', 'UNANSWERED'], chosen.map(rowOf)));
  for (const { node, problem } of chosen) {
    if (problem !== '') console.err(`${paint(console, 'yellow', 'warning')}: ${printable(`${node}: ${problem}`)}\n`);
  }
  return exitCodes.done;
}

/** Everything about them, what they say of their machines too. */
export async function describeNodes(context: CliContext, names: readonly Name[], options: GlobalOptions): Promise<ExitCode> {
  const chosen = await choose(context, names, options);
  if (options.output !== 'table') context.console.out(structured(options.output, { nodes: chosen.map(shownOf) }));
  else context.console.out(chosen.map((node) => structured('yaml', shownOf(node))).join('---\n'));
  return exitCodes.done;
}

/** Undefined or empty where one is missing: `node/`. */
type Name = string | undefined;

async function choose(context: CliContext, names: readonly Name[], options: GlobalOptions): Promise<readonly Node[]> {
  const { nodes: all } = await withClient(context, options, (client) => client.listNodes(context));
  const isCalled = ({ node, name }: Node, asked: Name) =>
    asked !== undefined && asked !== '' && (node === asked || name === asked);
  const unknown = names.find((asked) => !all.some((node) => isCalled(node, asked)));
  if (names.length > 0 && unknown !== undefined) {
    throw new AgentError('fleet.unknown_node', { problem: `there is no node ${JSON.stringify(unknown)}` });
  }
  return names.length === 0 ? all : all.filter((node) => names.some((asked) => isCalled(node, asked)));
}

export async function cordon(context: CliContext, node: string, cordoned: boolean, options: GlobalOptions): Promise<ExitCode> {
  await withClient(context, options, (client) => client.cordonNode({ node, cordoned }, context));
  const { console } = context;
  if (options.output !== 'table') console.out(structured(options.output, { node, cordoned }));
  else console.out(`node/${node} ${cordoned ? 'cordoned' : 'uncordoned'}\n`);
  return exitCodes.done;
}

/** The nodes that `node a b`, `node/a` or `nodes a` names; undefined when it is not about nodes. Empty where a name is missing. */
export function namedNodes(args: readonly string[]): readonly (string | undefined)[] | undefined {
  const [first = '', ...rest] = args;
  const isKind = (text: string) => text.toLowerCase() === 'node' || text.toLowerCase() === 'nodes';
  const [kind = '', named] = first.split('/', 2);
  if (!isKind(kind)) return undefined;
  return named === undefined ? rest : args.map((arg) => arg.split('/', 2)).map(([of = '', name]) => (isKind(of) ? name : ''));
}

/** Those that `delete` names; undefined when it is not about nodes. @throws UsageError */
export function nodesToRemove(args: readonly string[]): readonly string[] | undefined {
  const names = namedNodes(args);
  if (names === undefined) return undefined;
  if (names.length > 0 && names.every((name) => name !== undefined && name !== '')) return names.flatMap((name) => name ?? []);
  throw new UsageError('expected which nodes to remove: delete node NAME');
}

/** One after the other; asks first, as a node that is removed can only register again. */
export async function removeNodes(context: CliContext, names: readonly string[], options: RemoveNodeOptions): Promise<ExitCode> {
  if (options.dryRun || options.filename.length > 0) throw new UsageError('--dry-run and -f are for resources, not for nodes');
  const consequence = 'Certificates are revoked and what waits for it is cancelled.';
  if (!options.yes && !(await isConfirmed(context, `remove node ${names.join(', ')}`, consequence))) {
    context.console.err('nothing was changed\n');
    return exitCodes.failed;
  }
  await withClient(context, options, async (client) => {
    for (const node of names) {
      await client.removeNode({ node }, context);
      if (options.output === 'table') context.console.out(`node/${node} removed, its certificates are revoked\n`);
    }
  });
  if (options.output !== 'table') context.console.out(structured(options.output, { removed: names }));
  return exitCodes.done;
}

function rowOf(node: Node): readonly string[] {
  const { lastSeenMs, cordoned, unanswered, status, version, os, address } = node;
  const seen = lastSeenMs === 0n ? 'never' : `${age(Date.now() - Number(lastSeenMs))} ago`;
  const state = cordoned ? `${node.state},cordoned` : node.state;
  return [node.node, hostOf(node), state, status || '-', seen, version || '-', os, address || '-', String(unanswered)];
}

/** Undefined until it has said what it is. */
function infoOf({ infoJson }: Node): { readonly hostname: string } | undefined {
  return infoJson === '' ? undefined : JSON.parse(infoJson);
}

/** What people call the machine; before it has said so, its name in the log. */
function hostOf(node: Node): string {
  return infoOf(node)?.hostname || node.name || '-';
}

function shownOf(shown: Node) {
  const { registeredAtMs, lastSeenMs, infoJson: _, ...node } = shown;
  const time = (ms: bigint) => (ms === 0n ? undefined : new Date(Number(ms)).toISOString());
  return { ...node, registeredAt: time(registeredAtMs), lastSeen: time(lastSeenMs), info: infoOf(shown) };
}

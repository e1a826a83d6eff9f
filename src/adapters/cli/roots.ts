import { AgentError } from '../../domain/kernel/errors.js';
import type { Root, RootPair, RootUser } from '../generated/holdfast/admin/v1/certificates.js';
import { isConfirmed } from './confirm.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, withClient } from './context.js';
import { age, structured, table } from './output.js';

export interface RotateOptions extends GlobalOptions {
  readonly yes: boolean;
}

export interface RetireOptions extends RotateOptions {
  readonly force: boolean;
}

const ROTATION: Readonly<Record<string, string>> = {
  nodes: 'Agents that are connected ask for certificates of the new root within minutes; older ones when theirs are due.',
  registration: 'Machines that have the present registration-ca.crt can register until the former root is retired.',
};

/** Both roots of each kind while there are two, and who still has certificates of the former one. */
export async function listRoots(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const { roots } = await withClient(context, options, (client) => client.listRoots(context));
  const { console } = context;
  if (options.output !== 'table') {
    console.out(structured(options.output, { roots: roots.map(shownOf) }));
    return exitCodes.done;
  }
  console.out(table(['ROOT', 'STATE', 'EXPIRES IN', 'IN USE BY', 'SHA-256'], roots.flatMap(rowsOf)));
  for (const { name, inUse } of roots) {
    if (inUse.length > 0) console.err(`the former root of ${name} is in use by ${nodesOf(inUse).join(', ')}\n`);
  }
  return exitCodes.done;
}

export async function rotateRoot(context: CliContext, name: string, options: RotateOptions): Promise<ExitCode> {
  const { console } = context;
  const effect = ROTATION[name] ?? '';
  if (!options.yes && !(await isConfirmed(context, `make a new root of ${name}`, effect))) return unchanged(context);
  const made = required((await withClient(context, options, (client) => client.rotateRoot({ name }, context))).root);
  if (options.output !== 'table') console.out(structured(options.output, shownOf(made)));
  else {
    const { commonName, fingerprint } = required(made.current);
    console.out(`${commonName} certifies from now on: SHA-256 ${fingerprint}\n`);
    console.err(`${effect} Then run \`holdfast ca retire ${name}\`.\n`);
  }
  return exitCodes.done;
}

/** What it does to others is said before. */
export async function retireRoot(context: CliContext, name: string, options: RetireOptions): Promise<ExitCode> {
  const { force, output, yes } = options;
  const { console } = context;
  return withClient(context, options, async (client) => {
    const pair = yes ? undefined : (await client.listRoots(context)).roots.find((each) => each.name === name);
    const effect = consequence(name, pair?.inUse ?? [], force);
    if (!yes && !(await isConfirmed(context, `retire the former root of ${name}`, effect))) return unchanged(context);
    const { retired, revoked } = await client.retireRoot({ name, force }, context);
    if (output !== 'table') {
      console.out(structured(output, { retired: rootOf(retired), revoked: revoked.map(userOf) }));
      return exitCodes.done;
    }
    console.out(`${required(retired).commonName} is retired\n`);
    for (const node of nodesOf(revoked)) console.out(`${node} has to register again\n`);
    return exitCodes.done;
  });
}

function consequence(name: string, inUse: readonly RootUser[], force: boolean): string {
  if (name === 'registration') return 'Machines that have only the former registration-ca.crt cannot register any more.';
  const nodes = nodesOf(inUse);
  if (nodes.length === 0) return 'No valid certificate of it is in use.';
  const who = `These nodes have valid certificates of it: ${nodes.join(', ')}.`;
  return force ? `${who} They are revoked, and have to register again.` : `${who} So it is refused.`;
}

function unchanged({ console }: CliContext): ExitCode {
  console.err('nothing was changed\n');
  return exitCodes.failed;
}

function rowsOf({ name, current, former, replacedAtMs, inUse }: RootPair): readonly (readonly string[])[] {
  const row = (root: Root | undefined, state: string, users: string) => {
    const { fingerprint, notAfterMs } = required(root);
    const left = Number(notAfterMs) - Date.now();
    return [name, state, left > 0 ? age(left) : 'expired', users, fingerprint];
  };
  const own = row(current, 'certifies', '-');
  if (former === undefined) return [own];
  const users = name === 'registration' ? 'not known' : `${nodesOf(inUse).length} nodes`;
  return [own, row(former, `replaced ${age(Date.now() - Number(replacedAtMs))} ago`, users)];
}

function nodesOf(users: readonly RootUser[]): readonly string[] {
  return [...new Set(users.map(({ node }) => node))];
}

function shownOf({ name, current, former, replacedAtMs, inUse }: RootPair) {
  const before = former === undefined ? {} : { ...rootOf(former), replacedAt: iso(replacedAtMs), inUse: inUse.map(userOf) };
  return { name, current: rootOf(current), former: former === undefined ? undefined : before };
}

function rootOf(root: Root | undefined) {
  const { commonName, serial, fingerprint, notBeforeMs, notAfterMs } = required(root);
  return { commonName, serial, fingerprint, notBefore: iso(notBeforeMs), notAfter: iso(notAfterMs) };
}

function userOf({ node, serial, notAfterMs }: RootUser) {
  return { node, serial, notAfter: iso(notAfterMs) };
}

function iso(ms: bigint): string {
  return new Date(Number(ms)).toISOString();
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new AgentError('admin.failed', { problem: 'the daemon answered without a root' });
  return value;
}

import { AgentError } from '../../domain/kernel/errors.js';
import type { TokenFacts } from '../generated/holdfast/admin/v1/fleet.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, withClient } from './context.js';
import { optionalDuration } from './instructions.js';
import { age, structured, table } from './output.js';

export interface CreateTokenOptions extends GlobalOptions {
  readonly ttl: string;
  readonly replace?: string;
  readonly account?: string;
}

/** The token alone on standard output, so that a script can take it; what is to be known about it on standard error. */
export async function createToken(context: CliContext, options: CreateTokenOptions): Promise<ExitCode> {
  const { replace = '', account = '' } = options;
  const ttlMs = BigInt(optionalDuration('--ttl', options.ttl) ?? 0);
  const { token, facts } = await withClient(context, options, (client) =>
    client.createToken({ account, ttlMs, replace }, context),
  );
  if (facts === undefined) throw new AgentError('admin.failed', { problem: 'the daemon answered without a token' });
  const { console } = context;
  if (options.output !== 'table') console.out(structured(options.output, { token, ...shownOf(facts) }));
  else {
    console.out(`${token}\n`);
    const use = replace === '' ? 'for one node' : `for the machine that becomes ${replace}`;
    console.err(`${use} of account ${facts.account}, within ${options.ttl}; it is not shown again\n`);
  }
  return exitCodes.done;
}

export async function listTokens(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const { tokens } = await withClient(context, options, (client) => client.listTokens(context));
  const { console } = context;
  if (options.output !== 'table') console.out(structured(options.output, { tokens: tokens.map(shownOf) }));
  else if (tokens.length === 0) console.err('no token\n');
  else console.out(table(['TOKEN', 'ACCOUNT', 'FOR', 'AGE', 'STATE'], tokens.map(rowOf)));
  return exitCodes.done;
}

export async function revokeToken(context: CliContext, id: string, options: GlobalOptions): Promise<ExitCode> {
  await withClient(context, options, (client) => client.revokeToken({ id }, context));
  context.console.out(options.output === 'table' ? `token/${id} revoked\n` : structured(options.output, { revoked: id }));
  return exitCodes.done;
}

function rowOf({ id, account, replace, createdAtMs, expiresAtMs, usedBy }: TokenFacts): readonly string[] {
  const left = Number(expiresAtMs) - Date.now();
  const unused = left > 0 ? `expires in ${age(left)}` : 'expired';
  return [
    id,
    account,
    replace || 'a new node',
    age(Date.now() - Number(createdAtMs)),
    usedBy === '' ? unused : `used by ${usedBy}`,
  ];
}

function shownOf({ createdAtMs, expiresAtMs, ...facts }: TokenFacts) {
  const time = (ms: bigint) => new Date(Number(ms)).toISOString();
  return { ...facts, createdAt: time(createdAtMs), expiresAt: time(expiresAtMs) };
}

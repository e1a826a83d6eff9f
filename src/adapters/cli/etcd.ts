import { formatMemberId, type MemberId, memberId, parseMemberId } from '../../domain/etcd/model.js';
import { toleranceWithout } from '../../domain/etcd/plan.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { printable } from '../../domain/kernel/printable.js';
import type { EtcdMember } from '../generated/holdfast/admin/v1/node.js';
import { isConfirmed } from './confirm.js';
import { type CliContext, type ExitCode, exitCodes, type GlobalOptions, UsageError, withClient } from './context.js';
import { structured, table } from './output.js';

export interface RemoveOptions extends GlobalOptions {
  readonly yes: boolean;
}

/** Code 4 when a member is not healthy. */
export async function listMembers(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const { members } = await withClient(context, options, (client) => client.listEtcdMembers(context));
  const { console } = context;
  if (options.output !== 'table') console.out(structured(options.output, { members: members.map(shownOf) }));
  else console.out(table(['ID', 'NAME', 'ROLE', 'PEER', 'CLIENT', 'STATE'], members.map(rowOf)));
  return members.some(({ problem }) => problem !== '') ? exitCodes.degraded : exitCodes.done;
}

export async function removeMember(context: CliContext, text: string, options: RemoveOptions): Promise<ExitCode> {
  const id = idOf(text);
  if (!options.yes) {
    const { members } = await withClient(context, options, (client) => client.listEtcdMembers(context));
    const member = members.find((other) => other.id === id);
    if (member === undefined) throw new AgentError('etcd.unknown_member', { problem: `the cluster has no member ${text}` });
    if (
      !(await isConfirmed(
        context,
        `remove the etcd member ${member.name || 'without a name'} (${text})`,
        consequence(members, id),
      ))
    ) {
      context.console.err('nothing was removed\n');
      return exitCodes.failed;
    }
  }
  await withClient(context, options, (client) => client.removeEtcdMember({ id }, context));
  say(context, options, 'removed', id);
  return exitCodes.done;
}

/** What the new member is started with; it is a learner until it is promoted. */
export async function addMember(context: CliContext, peerUrl: string, options: GlobalOptions): Promise<ExitCode> {
  const added = await withClient(context, options, (client) => client.addEtcdMember({ peerUrl }, context));
  const id = formatMemberId(memberId(added.id));
  const initialCluster = `${added.initialCluster},NAME=${peerUrl}`;
  if (options.output !== 'table') context.console.out(structured(options.output, { id, initialCluster }));
  else {
    context.console.out(`etcd/${id} added\n`);
    context.console.err(
      `start it with --name NAME --initial-cluster-state existing --initial-cluster ${printable(initialCluster)}\n` +
        `and give it its vote when it has caught up: holdfast etcd promote ${id}\n`,
    );
  }
  return exitCodes.done;
}

export async function promoteMember(context: CliContext, text: string, options: GlobalOptions): Promise<ExitCode> {
  const id = idOf(text);
  await withClient(context, options, (client) => client.promoteEtcdMember({ id }, context));
  say(context, options, 'promoted', id);
  return exitCodes.done;
}

/** What the loss of one vote means. */
function consequence(members: readonly EtcdMember[], id: MemberId): string {
  const plain = members.map((member) => ({ ...member, id: memberId(member.id), problem: member.problem || undefined }));
  const { voters, mayFail } = toleranceWithout(plain, id);
  const stay = voters === 1 ? '1 voting member stays' : `${voters} voting members stay`;
  return mayFail === 0
    ? `${stay}, and none may fail: the cluster would decide nothing.`
    : `${stay}, of which ${mayFail} may fail.`;
}

function say({ console }: CliContext, { output }: GlobalOptions, what: string, id: MemberId): void {
  const text = formatMemberId(id);
  console.out(output === 'table' ? `etcd/${text} ${what}\n` : structured(output, { [what]: text }));
}

function idOf(text: string): MemberId {
  const id = parseMemberId(text);
  if (id === undefined) throw new UsageError(`${text} is no member's id, which is up to 16 hexadecimal digits`);
  return id;
}

function rowOf({ id, name, isLearner, isLeader, peerUrls, clientUrls, problem }: EtcdMember): readonly string[] {
  const role = isLearner ? 'learner' : isLeader ? 'leader' : 'voter';
  return [formatMemberId(memberId(id)), name || '-', role, peerUrls.join(','), clientUrls.join(',') || '-', problem || 'healthy'];
}

/** Ids as text: they are larger than a number of JSON. */
function shownOf({ id, problem, ...member }: EtcdMember) {
  return { id: formatMemberId(memberId(id)), ...member, ...(problem === '' ? {} : { problem }) };
}

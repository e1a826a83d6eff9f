import type { IpAddress } from '../kernel/network.js';
import { addressOf, type EtcdMember, formatMemberId, isAt, type MemberId } from './model.js';

/** Voting members that a cluster of so many cannot do without. */
export function quorumOf(voters: number): number {
  return Math.floor(voters / 2) + 1;
}

export type MemberChoice = { readonly id: MemberId | undefined } | { readonly problem: string };

/** Whom the address means; undefined when nobody has it. */
export function memberAt(members: readonly EtcdMember[], address: IpAddress): MemberChoice {
  const found = members.filter((member) => isAt(member, address));
  if (found.length <= 1) return { id: found[0]?.id };
  return { problem: `${found.map(nameOf).join(' and ')} have the address ${address}: remove one by its id` };
}

export type RemovalPlan =
  | { readonly kind: 'gone' }
  | { readonly kind: 'refused'; readonly problem: string }
  /** One of these leads first, the first that takes it. */
  | { readonly kind: 'hand_over'; readonly to: readonly MemberId[] }
  | { readonly kind: 'remove' };

/**
 * What removing that member takes now. Refused where it would be the end of the cluster: of its last vote, of its quorum, or of its
 * leader without another one to lead.
 */
export function planRemoval(members: readonly EtcdMember[], id: MemberId): RemovalPlan {
  const target = members.find((member) => member.id === id);
  if (target === undefined) return { kind: 'gone' };
  const voters = members.filter(({ isLearner }) => !isLearner);
  const problem = quorumProblem(voters, target);
  if (problem !== undefined) return { kind: 'refused', problem };
  if (!target.isLeader) return { kind: 'remove' };
  const to = voters.filter((member) => member !== target && isHealthy(member)).map((member) => member.id);
  return to.length === 0 ? refused(`${nameOf(target)} leads, and nobody else can`) : { kind: 'hand_over', to };
}

function quorumProblem(voters: readonly EtcdMember[], target: EtcdMember): string | undefined {
  const healthy = voters.filter(isHealthy).length;
  if (healthy < quorumOf(voters.length))
    return `the cluster has no quorum: ${healthy} of ${voters.length} voting members are healthy, ${quorumOf(voters.length)} are needed`;
  if (target.isLearner) return undefined;
  const left = voters.filter((member) => member !== target);
  if (left.length === 0) return `${nameOf(target)} is the last voting member`;
  const healthyLeft = left.filter(isHealthy).length;
  if (healthyLeft >= quorumOf(left.length)) return undefined;
  const sick = left.filter((member) => !isHealthy(member)).map(nameOf);
  return `without ${nameOf(target)} ${healthyLeft} of ${left.length} voting members would be healthy, and ${quorumOf(left.length)} are needed: remove or mend ${sick.join(' and ')} first`;
}

export type AdditionPlan =
  | { readonly kind: 'refused'; readonly problem: string }
  /** It was added before and waits for its start. */
  | { readonly kind: 'added'; readonly id: MemberId }
  | { readonly kind: 'add' };

/**
 * What adding a learner with that peer URL takes now. A dead member is removed first: added beside it, a new one that does not come up
 * is one failure more (etcd refuses that as well).
 */
export function planAddition(members: readonly EtcdMember[], url: string): AdditionPlan {
  const same = members.find(({ peerUrls }) =>
    peerUrls.some((other) => other === url || addressAndPort(other) === addressAndPort(url)),
  );
  if (same?.isLearner === true && same.name === '') return { kind: 'added', id: same.id };
  if (same !== undefined) return refused(`${nameOf(same)} has this peer URL: remove it first, if it is dead`);
  const sick = members.filter((member) => !member.isLearner && !isHealthy(member));
  if (sick.length > 0) return refused(`${sick.map(nameOf).join(' and ')} is not healthy: remove it first, then add the new one`);
  const learner = members.find(({ isLearner }) => isLearner);
  if (learner !== undefined) return refused(`${nameOf(learner)} is a learner already: promote or remove it first`);
  return { kind: 'add' };
}

/** How many voting members there are when this one is gone, and how many of them may fail. */
export function toleranceWithout(
  members: readonly EtcdMember[],
  id: MemberId,
): { readonly voters: number; readonly mayFail: number } {
  const voters = members.filter((member) => !member.isLearner && member.id !== id).length;
  return { voters, mayFail: Math.max(0, voters - quorumOf(voters)) };
}

export function nameOf({ name, id, peerUrls }: EtcdMember): string {
  return `${name === '' ? 'the unstarted member' : name} (${formatMemberId(id)}, ${peerUrls.join(', ')})`;
}

/** One that has never started answers nobody. */
function isHealthy({ problem, name }: EtcdMember): boolean {
  return problem === undefined && name !== '';
}

function addressAndPort(url: string): string {
  return `${addressOf(url) ?? url} ${/:(\d+)\/?$/.exec(url)?.[1] ?? ''}`;
}

function refused(problem: string): { readonly kind: 'refused'; readonly problem: string } {
  return { kind: 'refused', problem };
}

import { type EtcdMember, formatMemberId, type MemberId } from '../../domain/etcd/model.js';
import { planAddition, planRemoval } from '../../domain/etcd/plan.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { AddedMember, EtcdMembership } from '../../ports/driving/etcd-membership.js';
import type { EtcdMembers } from '../../ports/etcd/etcd-members.js';

/** For each member that may lead next. */
const HAND_OVER_MS = 10_000;
/** From the removal on. */
const GONE_MS = 30_000;
/** etcd itself takes 5 s of connections for proof of a quorum, and 1 s between two looks is enough. */
const LOOK_MS = 1_000;

/** Changes of membership that leave a cluster which still decides. */
export class EtcdMembershipService implements EtcdMembership {
  readonly #members: EtcdMembers;
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();

  constructor({ members, clock }: { readonly members: EtcdMembers; readonly clock: Clock }) {
    this.#members = members;
    this.#clock = clock;
  }

  list(options: CallOptions): Promise<readonly EtcdMember[]> {
    return this.#members.list(false, options);
  }

  remove(id: MemberId, options: CallOptions): Promise<void> {
    return this.#alone(async () => {
      this.#known(await this.#members.list(true, options), id);
      await this.#remove(id, options);
    });
  }

  /** Like `remove`; one that is not there is no error. */
  removeIfThere(id: MemberId, options: CallOptions): Promise<void> {
    return this.#alone(() => this.#remove(id, options));
  }

  /** As a quorum knows them. @throws AgentError `etcd.unavailable` */
  agreed(options: CallOptions): Promise<readonly EtcdMember[]> {
    return this.#members.list(true, options);
  }

  add(peerUrl: string, options: CallOptions): Promise<AddedMember> {
    return this.#alone(async () => {
      const members = await this.#members.list(true, options);
      const plan = planAddition(members, peerUrl);
      if (plan.kind === 'refused') throw new AgentError('etcd.refused', { problem: plan.problem });
      const id = plan.kind === 'added' ? plan.id : await this.#members.add(peerUrl, options);
      const started = members.filter((member) => member.name !== '');
      return { id, initialCluster: started.flatMap(({ name, peerUrls }) => peerUrls.map((url) => `${name}=${url}`)).join(',') };
    });
  }

  promote(id: MemberId, options: CallOptions): Promise<void> {
    return this.#alone(async () => {
      this.#known(await this.#members.list(true, options), id);
      await this.#members.promote(id, options);
    });
  }

  #known(members: readonly EtcdMember[], id: MemberId): void {
    if (!members.some((member) => member.id === id))
      throw new AgentError('etcd.unknown_member', { problem: `the cluster has no member ${formatMemberId(id)}` });
  }

  async #remove(id: MemberId, options: CallOptions): Promise<void> {
    const before = planRemoval(await this.#members.list(true, options), id);
    if (before.kind === 'hand_over') await this.#handOver(before.to, options);
    // Once more: whoever leads now, and how the others are, is seen after the hand-over.
    const plan = planRemoval(await this.#members.list(true, options), id);
    if (plan.kind === 'gone') return;
    if (plan.kind === 'refused') throw new AgentError('etcd.refused', { problem: `${plan.problem}; nothing was removed` });
    if (plan.kind === 'hand_over')
      throw new AgentError('etcd.refused', { problem: `${formatMemberId(id)} leads again; nothing was removed` });
    await this.#untilGone(id, options);
  }

  async #handOver(candidates: readonly MemberId[], options: CallOptions): Promise<void> {
    const problems: string[] = [];
    for (const candidate of candidates) {
      try {
        await this.#within(HAND_OVER_MS, options, (limited) => this.#members.moveLeader(candidate, limited));
        return;
      } catch (error) {
        options.signal.throwIfAborted();
        problems.push(`${formatMemberId(candidate)}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    throw new AgentError('etcd.refused', { problem: `nobody takes over the lead (${problems.join('; ')}); nothing was removed` });
  }

  /** Asked again where the answer was lost, or etcd has not seen its quorum for long enough: removing twice is removing once. */
  async #untilGone(id: MemberId, options: CallOptions): Promise<void> {
    const end = this.#clock.monotonic() + GONE_MS;
    for (;;) {
      let problem = 'it is still there';
      try {
        await this.#members.remove(id, options);
        if (!(await this.#members.list(true, options)).some((member) => member.id === id)) return;
      } catch (error) {
        options.signal.throwIfAborted();
        problem = error instanceof Error ? error.message : String(error);
      }
      if (this.#clock.monotonic() + LOOK_MS > end)
        throw new AgentError('etcd.unavailable', {
          problem: `${formatMemberId(id)} is not gone after ${GONE_MS / 1_000} s: ${problem}`,
        });
      await this.#clock.sleep(LOOK_MS, options);
    }
  }

  async #within<T>(ms: number, { signal }: CallOptions, work: (options: CallOptions) => Promise<T>): Promise<T> {
    const over = new AbortController();
    const late = new AbortController();
    this.#clock.sleep(ms, { signal: over.signal }).then(
      () => late.abort(new AgentError('etcd.unavailable', { problem: `it took longer than ${ms / 1_000} s` })),
      () => {},
    );
    try {
      return await work({ signal: AbortSignal.any([signal, late.signal]) });
    } finally {
      over.abort();
    }
  }

  /** Two plans made at once on the same members would each be right, and both together wrong. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => {});
    return result;
  }
}

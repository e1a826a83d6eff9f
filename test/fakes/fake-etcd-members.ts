import { type EtcdMember, type MemberId, memberId } from '../../src/domain/etcd/model.js';
import { quorumOf } from '../../src/domain/etcd/plan.js';
import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { EtcdMembers } from '../../src/ports/etcd/etcd-members.js';

type Change = 'moveLeader' | 'remove' | 'add' | 'promote';

/** A cluster in memory. It decides while a quorum of its voting members is healthy. */
export class FakeEtcdMembers implements EtcdMembers {
  members: readonly EtcdMember[] = [];
  /** Every change that was carried out, in order. */
  readonly changes: string[] = [];
  readonly #failures = new Map<Change, unknown>();
  #last = 0n;

  /** A started, voting member at `https://address:2380`; the first one leads. */
  join(address: string, more: Partial<EtcdMember> = {}): MemberId {
    this.#last += 1n;
    const id = memberId(this.#last);
    const host = address.includes(':') ? `[${address}]` : address;
    const name = more.name ?? `m${id}`;
    const member = {
      ...{ id, name, peerUrls: [`https://${host}:2380`], clientUrls: [`https://${host}:2379`], isLearner: false },
      ...{ isLeader: this.members.length === 0, problem: undefined },
    };
    this.members = [...this.members, { ...member, ...more }];
    return id;
  }

  /** It answers nobody any more; another one leads. */
  kill(id: MemberId): void {
    this.#update(id, { problem: 'connection refused', isLeader: false });
    const next = this.members.find(({ problem, isLearner }) => problem === undefined && !isLearner);
    if (next !== undefined && !this.members.some(({ isLeader }) => isLeader)) this.#update(next.id, { isLeader: true });
  }

  /** The next such change fails with that; `hang`: it ends by an abort alone. */
  failNext(change: Change, failure: unknown): void {
    this.#failures.set(change, failure);
  }

  async list(agreed: boolean, { signal }: CallOptions): Promise<readonly EtcdMember[]> {
    signal.throwIfAborted();
    if (agreed) this.#quorum();
    return this.members;
  }

  async moveLeader(target: MemberId, options: CallOptions): Promise<void> {
    await this.#enter('moveLeader', options);
    this.members = this.members.map((member) => ({ ...member, isLeader: member.id === target }));
    this.changes.push(`lead ${target}`);
  }

  async remove(id: MemberId, options: CallOptions): Promise<void> {
    await this.#enter('remove', options);
    if (!this.members.some((member) => member.id === id)) return;
    this.members = this.members.filter((member) => member.id !== id);
    this.changes.push(`remove ${id}`);
  }

  async add(peerUrl: string, options: CallOptions): Promise<MemberId> {
    await this.#enter('add', options);
    const id = this.join('0.0.0.0', {
      name: '',
      peerUrls: [peerUrl],
      clientUrls: [],
      isLearner: true,
      problem: 'it has never started',
    });
    this.changes.push(`add ${id}`);
    return id;
  }

  async promote(id: MemberId, options: CallOptions): Promise<void> {
    await this.#enter('promote', options);
    if (this.members.find((member) => member.id === id)?.problem !== undefined)
      throw new AgentError('etcd.refused', { problem: 'etcd: it is not in sync with the leader' });
    this.#update(id, { isLearner: false });
    this.changes.push(`promote ${id}`);
  }

  #update(id: MemberId, facts: Partial<EtcdMember>): void {
    this.members = this.members.map((member) => (member.id === id ? { ...member, ...facts } : member));
  }

  #quorum(): void {
    const voters = this.members.filter(({ isLearner }) => !isLearner);
    const healthy = voters.filter(({ problem }) => problem === undefined).length;
    if (healthy < quorumOf(voters.length)) throw new AgentError('etcd.unavailable', { problem: 'etcd: no leader' });
  }

  async #enter(change: Change, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    const failure = this.#failures.get(change);
    this.#failures.delete(change);
    if (failure === 'hang') await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    if (failure !== undefined) throw failure;
    this.#quorum();
  }
}

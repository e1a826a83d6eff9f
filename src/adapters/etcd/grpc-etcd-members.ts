import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { Metadata, type ServiceError } from '@grpc/grpc-js';
import { type EtcdMember, type MemberId, memberId } from '../../domain/etcd/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { EtcdMembers } from '../../ports/etcd/etcd-members.js';
import { errnoOf } from '../files/errno.js';
import type { Member, MemberAddResponse, MemberListResponse, StatusResponse } from '../generated/etcd/etcdserverpb/rpc.js';
import { etcdCall, type Send } from './etcd-call.js';
import { EtcdEndpoint, type EtcdTls } from './etcd-endpoint.js';
import { failureOf } from './etcd-errors.js';
import { range } from './etcd-messages.js';

/** A change is agreed on by a quorum, which may have to find its leader first. */
const CALL_MS = 5_000;
/** Longer than an election. */
const MOVE_MS = 10_000;
/** A member that is well answers in milliseconds. */
const STATUS_MS = 2_000;
const AGAIN_MS = 200;

export interface GrpcEtcdMembersOptions {
  /** The member of this machine, `https://host:port`. */
  readonly url: string;
  /** Paths, read for each call: they are renewed. */
  readonly files?: { readonly ca: string; readonly certificate: string; readonly key: string };
}

/** Asks the member of this machine, and those that it has named when it does not answer: it may be the one that was removed. */
export class GrpcEtcdMembers implements EtcdMembers {
  readonly #url: string;
  readonly #files: GrpcEtcdMembersOptions['files'];
  #others: readonly string[] = [];

  constructor({ url, files }: GrpcEtcdMembersOptions) {
    this.#url = url;
    this.#files = files;
  }

  list(agreed: boolean, options: CallOptions): Promise<readonly EtcdMember[]> {
    return this.#session(options, (session) => this.#list(session, agreed, options));
  }

  moveLeader(target: MemberId, options: CallOptions): Promise<void> {
    return this.#session(options, async (session) => {
      const leader = (await this.#list(session, true, options)).find(({ isLeader }) => isLeader);
      if (leader?.id === target) return;
      if (leader === undefined) throw new AgentError('etcd.unavailable', { problem: 'no member leads' });
      // Only the leader takes it.
      await session.first(leader.clientUrls, options, MOVE_MS, ({ maintenance }, metadata, deadline, callback) =>
        maintenance.moveLeader({ targetID: target }, metadata, { deadline }, callback),
      );
    });
  }

  remove(id: MemberId, options: CallOptions): Promise<void> {
    return this.#session(options, async (session) => {
      try {
        await session.untilAnswered(this.#urls, options, ({ cluster }, metadata, deadline, callback) =>
          cluster.memberRemove({ ID: id }, metadata, { deadline }, callback),
        );
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    });
  }

  add(peerUrl: string, options: CallOptions): Promise<MemberId> {
    const request = { peerURLs: [peerUrl], isLearner: true };
    return this.#session(options, async (session) => {
      const { member } = await session.first<MemberAddResponse>(
        this.#urls,
        options,
        CALL_MS,
        ({ cluster }, metadata, deadline, callback) => cluster.memberAdd(request, metadata, { deadline }, callback),
      );
      if (member === undefined) throw new AgentError('etcd.unavailable', { problem: 'etcd did not say which member it added' });
      return memberId(member.ID);
    });
  }

  promote(id: MemberId, options: CallOptions): Promise<void> {
    return this.#session(options, async (session) => {
      await session.untilAnswered(this.#urls, options, ({ cluster }, metadata, deadline, callback) =>
        cluster.memberPromote({ ID: id }, metadata, { deadline }, callback),
      );
    });
  }

  get #urls(): readonly string[] {
    return [this.#url, ...this.#others];
  }

  async #list(session: Session, agreed: boolean, options: CallOptions): Promise<readonly EtcdMember[]> {
    const { members } = await session.untilAnswered<MemberListResponse>(
      this.#urls,
      options,
      (endpoint, metadata, deadline, callback) => {
        const list = () => endpoint.cluster.memberList({ linearizable: agreed }, metadata, { deadline }, callback);
        if (!agreed) return list();
        // Before 3.5 a member answers what it knows. A read that a quorum agrees to brings it up to date first.
        return endpoint.kv.range(range('holdfast'), metadata, { deadline }, (error) => {
          if (error === null) list();
          else callback(error, { header: undefined, members: [] });
        });
      },
    );
    this.#others = members.flatMap(({ clientURLs }) => clientURLs).filter((url) => url !== this.#url);
    const states = await Promise.all(members.map((member) => statusOf(session, member, options)));
    const leader = leaderOf(states);
    return members.map((member, at) => ({
      ...{ id: memberId(member.ID), name: member.name, isLearner: member.isLearner },
      ...{ peerUrls: member.peerURLs, clientUrls: member.clientURLs },
      isLeader: member.ID === leader,
      problem: problemOf(member, states[at]),
    }));
  }

  async #session<T>(options: CallOptions, work: (session: Session) => Promise<T>): Promise<T> {
    options.signal.throwIfAborted();
    const session = new Session(await this.#readTls());
    try {
      return await work(session);
    } finally {
      session.close();
    }
  }

  async #readTls(): Promise<EtcdTls> {
    if (this.#files === undefined) return {};
    const { ca, certificate, key } = this.#files;
    return { ca: await readPem(ca), certificate: await readPem(certificate), key: await readPem(key) };
  }
}

type MemberStatus = StatusResponse | string;

/** What it says of itself, or why it does not. */
async function statusOf(session: Session, { clientURLs }: Member, options: CallOptions): Promise<MemberStatus> {
  if (clientURLs.length === 0) return 'it has never started';
  try {
    return await session.first<StatusResponse>(clientURLs, options, STATUS_MS, ({ maintenance }, metadata, deadline, callback) =>
      maintenance.status({}, metadata, { deadline }, callback),
    );
  } catch (error) {
    options.signal.throwIfAborted();
    return error instanceof AgentError ? String(error.facts.problem ?? error.message) : String(error);
  }
}

function problemOf({ ID }: Member, state: MemberStatus | undefined): string | undefined {
  if (state === undefined || typeof state === 'string') return state ?? 'it was not asked';
  // A former membership on an address that another one has now.
  if (state.header?.memberId !== ID) return 'another member answers at its address';
  return state.leader === 0n ? 'it knows no leader' : undefined;
}

/** Of the newest term that anybody knows. */
function leaderOf(states: readonly MemberStatus[]): bigint | undefined {
  const said = states.flatMap((state) => (typeof state === 'string' || state.leader === 0n ? [] : [state]));
  const termOf = ({ header }: StatusResponse) => header?.raftTerm ?? 0n;
  return said.toSorted((a, b) => Number(termOf(b) - termOf(a)))[0]?.leader;
}

/** Connections of one call, all closed with it. */
class Session {
  readonly #tls: EtcdTls;
  readonly #endpoints = new Map<string, EtcdEndpoint>();

  constructor(tls: EtcdTls) {
    this.#tls = tls;
  }

  /** The answer of the first that gives one, of any of them once more until the time is over: leaders change. */
  async untilAnswered<Response>(urls: readonly string[], options: CallOptions, send: Send<Response>): Promise<Response> {
    const end = performance.now() + CALL_MS;
    for (;;) {
      try {
        return await this.first(urls, options, STATUS_MS, send);
      } catch (error) {
        const isOver = performance.now() + AGAIN_MS > end;
        if (isOver || !(error instanceof AgentError) || error.code !== 'etcd.unavailable') throw error;
      }
      await pause(AGAIN_MS, undefined, options).catch(() => options.signal.throwIfAborted());
    }
  }

  /** The answer of the first that gives one. */
  async first<Response>(urls: readonly string[], options: CallOptions, ms: number, send: Send<Response>): Promise<Response> {
    let last: AgentError | undefined;
    for (const url of urls) {
      const answer = await etcdCall(send, { endpoint: this.#endpoint(url), metadata: new Metadata(), ms }, options.signal);
      if ('response' in answer) return answer.response;
      last = translated(answer.error);
      if (last.code === 'etcd.refused') break;
    }
    throw last ?? new AgentError('etcd.unavailable', { problem: 'there is nobody to ask' });
  }

  close(): void {
    for (const endpoint of this.#endpoints.values()) endpoint.close();
  }

  #endpoint(url: string): EtcdEndpoint {
    const known = this.#endpoints.get(url) ?? new EtcdEndpoint(url, this.#tls);
    this.#endpoints.set(url, known);
    return known;
  }
}

const UNHEALTHY = 'etcdserver: unhealthy cluster';
const NOT_FOUND = 'etcdserver: member not found';

function translated(error: ServiceError): AgentError {
  const isRefusal = failureOf(error) === 'refused' || error.details === UNHEALTHY;
  return new AgentError(isRefusal ? 'etcd.refused' : 'etcd.unavailable', { problem: `etcd: ${error.details}` }, { cause: error });
}

function isNotFound(error: unknown): boolean {
  return error instanceof AgentError && error.facts.problem === `etcd: ${NOT_FOUND}`;
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const problem = `this machine has no etcd that can be asked: ${path} cannot be read: ${errnoOf(cause) ?? String(cause)}`;
    throw new AgentError('etcd.unavailable', { problem }, { cause });
  }
}

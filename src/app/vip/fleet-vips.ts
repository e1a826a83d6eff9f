import { tag as asTag, type Tag } from '../../domain/instruction/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { encodeBase64 } from '../../domain/link/base64.js';
import type { VipWord } from '../../domain/link/heartbeat.js';
import type { Aid, LinkMessage, Nid } from '../../domain/link/model.js';
import { readPayload, SMALL_PAYLOAD_BYTES } from '../../domain/link/payload.js';
import { encodeUtf8 } from '../../domain/link/utf8.js';
import {
  ASSIGN_WAIT_MS,
  accountOfKey,
  decodeVipRecord,
  encodeVipRecord,
  holderAnswerFor,
  NO_RECORD,
  planVip,
  type VipRecord,
  vipKey,
  vipPrefix,
  vipWordFor,
} from '../../domain/vip/fleet.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Instructions } from '../../ports/driving/fleet.js';
import type { NodeIdentity } from '../../ports/driving/node-streams.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { FleetVip, Vips } from '../../ports/driving/vips.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import type { ControlStore, StoredValue } from '../../ports/store/control-store.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';
import type { InstructionBook } from '../dispatch/instruction-book.js';
import type { NodeEvents } from '../fleet/node-events.js';
import type { NodeSession, NodeUser } from '../link/node-session.js';
import type { VipCandidates } from './vip-candidates.js';

/** Of the reading by which holders go on: twice within the 5 s that it is good for. */
const LOOK_MS = 2_000;
/** Several answers are one look. */
const LEAST_GAP_MS = 50;
/** Released in 30 s, assigned in 5. */
const LONGEST_CHANGE_MS = 40_000;
const NOBODY = 'look at `holdfast vip list`: is a candidate online, ready, not cordoned, and has it `vip.address`?';
/** An instruction that has not reached its node by then is not sent any more. */
const EXPIRES_MS = 5_000;
/** Several servers and operators write the same record: the loser looks again. */
const TRIES = 10;
/** Steps that follow each other at once: given up, free, given to the next. */
const MOST_STEPS = 3;

export interface FleetVipsParts {
  readonly store: ControlStore;
  readonly candidates: VipCandidates;
  readonly instructions: Pick<Instructions, 'send' | 'get'>;
  readonly book: Pick<InstructionBook, 'get' | 'onChange'>;
  readonly events: Pick<NodeEvents, 'tell'>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
}

interface Known {
  readonly record: VipRecord;
  /** 0: there is none in the store. */
  readonly version: bigint;
  /** Since when it is seen as it is, on the clock that never goes back. */
  readonly seenAt: number;
}

/**
 * Decides which node of each account has its virtual IP. Every replica decides, on the same record, and a comparison lets one of them write:
 * no clock is compared with another.
 */
export class FleetVips implements NodeUser, Vips, ProblemSource {
  readonly #parts: FleetVipsParts;
  readonly #loop: ReconcileLoop;
  readonly #known = new Map<Aid, Known>();
  readonly #asking = new Set<NodeSession>();
  /** When the newest reading of all records began. */
  #readAt: number | undefined;
  readonly #stop = new AbortController();
  #unsubscribe: () => void = () => {};

  constructor(parts: FleetVipsParts) {
    const { clock, random, logger } = parts;
    this.#parts = parts;
    const run = (signal: AbortSignal) => this.#look({ signal });
    const gaps = { leastGapMs: LEAST_GAP_MS, greatestGapMs: LOOK_MS, firstBackoffMs: 500, greatestBackoffMs: LOOK_MS };
    this.#loop = new ReconcileLoop({ name: 'vip', run, clock, random, logger, ...gaps });
  }

  start(): void {
    const { candidates, book } = this.#parts;
    if (!candidates.isOn) return;
    this.#unsubscribe = book.onChange((_nid, _tag, kept) => {
      if (kept?.row.type === 'VIP_ASSIGN' || kept?.row.type === 'VIP_RELEASE') this.#loop.markDirty();
    });
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#stop.abort();
    await this.#loop.stop();
  }

  opened(): void {}

  closed(): void {}

  received(session: NodeSession, { type, tag }: LinkMessage): boolean {
    if (type !== 'AmIVIPHolder') return false;
    // A node asks once at a time.
    if (!this.#asking.has(session)) {
      this.#asking.add(session);
      void this.#answer(session, tag).finally(() => this.#asking.delete(session));
    }
    return true;
  }

  /** What a heartbeat is answered with; undefined where nothing is decided here. At once, from memory. */
  word({ nid, aid }: NodeIdentity): VipWord | undefined {
    const { candidates, clock } = this.#parts;
    if (!candidates.isOn) return undefined;
    const ageMs = this.#readAt === undefined ? undefined : clock.monotonic() - this.#readAt;
    return vipWordFor(this.#known.get(aid)?.record ?? NO_RECORD, nid, ageMs);
  }

  /** Of accounts whose nodes were asked in vain, or among whose nodes nobody has it for longer than any change takes. */
  problems(): readonly StatusProblem[] {
    const now = this.#parts.clock.monotonic();
    return [...this.#known].flatMap(
      ([
        aid,
        {
          record: { phase, failures, since },
          seenAt,
        },
      ]) => {
        if (phase === 'held' || (failures === 0 && now - seenAt < LONGEST_CHANGE_MS)) return [];
        const asked = failures === 0 ? '' : `; it was offered ${failures} times in a row in vain`;
        return [{ subject: `virtual IP of ${aid}`, reason: `no node has it${asked}`, since, remedy: NOBODY }];
      },
    );
  }

  async list(options: CallOptions): Promise<readonly FleetVip[]> {
    const { store, candidates } = this.#parts;
    if (!candidates.isOn) return [];
    const kept = await store.list(vipPrefix, options);
    const fit = await candidates.byAccount(options);
    const records = new Map(kept.map(({ key, value }) => [accountOfKey(key), decodeVipRecord(value)]));
    const accounts = [...new Set([...records.keys(), ...fit.keys()])].sort();
    return accounts.map((aid) => shownOf(aid, records.get(aid) ?? NO_RECORD, fit.get(aid) ?? []));
  }

  async move(nid: Nid, options: CallOptions): Promise<FleetVip> {
    const { store, candidates } = this.#parts;
    if (!candidates.isOn) throw new AgentError('vip.off', { problem: 'no node of this control plane may have a virtual IP' });
    const aid = await candidates.accountOf(nid, options);
    if (aid === undefined) throw new AgentError('fleet.unknown_node', { problem: `there is no node ${nid}` });
    const fit = (await candidates.byAccount(options)).get(aid) ?? [];
    if (!fit.includes(nid)) throw new AgentError('vip.no_candidate', { problem: `${nid} cannot have the virtual IP at present` });
    for (let tries = 0; tries < TRIES; tries++) {
      const kept = await store.get(vipKey(aid), options);
      const record = kept === undefined ? NO_RECORD : decodeVipRecord(kept.value);
      const next: VipRecord = { ...record, wanted: record.phase === 'held' && record.node === nid ? '' : nid, failures: 0 };
      if (await this.#commit(aid, kept?.version ?? 0n, next, options)) return shownOf(aid, next, fit);
    }
    throw new AgentError('vip.conflict', { problem: `others keep changing the virtual IP of ${aid}` });
  }

  async #look(options: CallOptions): Promise<void> {
    const { store, candidates, clock } = this.#parts;
    const startedAt = clock.monotonic();
    this.#learn(await store.list(vipPrefix, options), clock.monotonic());
    this.#readAt = startedAt;
    const fit = await candidates.byAccount(options);
    for (const aid of new Set([...this.#known.keys(), ...fit.keys()])) await this.#bring(aid, fit.get(aid) ?? [], options);
  }

  #learn(kept: readonly StoredValue[], now: number): void {
    const present = new Set(kept.map(({ key }) => accountOfKey(key)));
    for (const aid of this.#known.keys()) if (!present.has(aid)) this.#known.delete(aid);
    for (const { key, value, version } of kept) this.#note(accountOfKey(key), decodeVipRecord(value), version, now);
  }

  /** A record that only says otherwise whom an operator wants is as old as before. */
  #note(aid: Aid, record: VipRecord, version: bigint, now: number): void {
    const before = this.#known.get(aid);
    if (before !== undefined && before.version > version) return;
    const isSame = before?.record.generation === record.generation && before.record.phase === record.phase;
    this.#known.set(aid, { record, version, seenAt: isSame ? before.seenAt : now });
  }

  /** As many steps as can be made now. */
  async #bring(aid: Aid, candidates: readonly Nid[], options: CallOptions): Promise<void> {
    const { clock } = this.#parts;
    for (let steps = 0; steps < MOST_STEPS; steps++) {
      const { record, version, seenAt } = this.#known.get(aid) ?? { record: NO_RECORD, version: 0n, seenAt: clock.monotonic() };
      const { node } = record;
      const next = planVip(record, {
        ageMs: clock.monotonic() - seenAt,
        answer: await this.#answerOf(aid, record, options),
        candidates,
        nodeState: node === '' ? undefined : this.#parts.candidates.stateOf(node),
        now: clock.now(),
      });
      if (next === undefined) return this.#sendAgain(aid, record, options);
      if (!(await this.#commit(aid, version, next, options))) return this.#loop.markDirty();
      this.#tell(aid, record, next);
      await this.#send(aid, next, options);
    }
  }

  /** False: another was there first. Known here when it resolves. */
  async #commit(aid: Aid, version: bigint, next: VipRecord, options: CallOptions): Promise<boolean> {
    const { store, clock } = this.#parts;
    const key = vipKey(aid);
    const written = await store.commit([{ key, version }], [{ key, value: encodeVipRecord(next) }], options);
    if (written === undefined) return false;
    this.#note(aid, next, written, clock.monotonic());
    this.#loop.markDirty();
    return true;
  }

  /** The server that had decided it may have died before it said so. An assignment is left to its time-out. */
  async #sendAgain(aid: Aid, record: VipRecord, options: CallOptions): Promise<void> {
    if (record.phase !== 'releasing' || record.node === '') return;
    if (this.#parts.book.get(record.node, tagOf(aid, record)) === undefined) await this.#send(aid, record, options);
  }

  async #send(aid: Aid, { phase, node, generation }: VipRecord, options: CallOptions): Promise<void> {
    if (node === '' || (phase !== 'assigning' && phase !== 'releasing')) return;
    const type = phase === 'assigning' ? 'VIP_ASSIGN' : 'VIP_RELEASE';
    if (phase === 'assigning') this.#lookIn(ASSIGN_WAIT_MS);
    const call = { nid: node, type, json: `{"generation":${generation}}`, expiresMs: EXPIRES_MS, by: 'vip' };
    try {
      await this.#parts.instructions.send({ ...call, tag: tagOf(aid, { generation }) }, options);
    } catch (error) {
      options.signal.throwIfAborted();
      // As good as one that is not answered.
      this.#parts.logger.warn('a node could not be told of the virtual IP', { nid: node, type, error });
    }
  }

  #lookIn(ms: number): void {
    this.#parts.clock.sleep(ms, this.#stop).then(
      () => this.#loop.markDirty(),
      () => {},
    );
  }

  /** Of the instruction that the record speaks of. @throws AgentError `store.unavailable` */
  async #answerOf(aid: Aid, record: VipRecord, options: CallOptions): Promise<'ok' | 'refused' | undefined> {
    const { node, phase } = record;
    if (node === '' || (phase !== 'assigning' && phase !== 'releasing')) return undefined;
    const tag = tagOf(aid, record);
    if (this.#parts.book.get(node, tag)?.row.state !== 'done') return undefined;
    const { reply } = await this.#parts.instructions.get(node, tag, options);
    if (reply === undefined) return undefined;
    const said = reply.type === 'ERROR' ? undefined : readPayload(reply.jsonB64, SMALL_PAYLOAD_BYTES);
    const value = said?.ok === true ? said.value : undefined;
    return typeof value === 'object' && value !== null && 'ok' in value && value.ok === true ? 'ok' : 'refused';
  }

  /** From the store as it is now, or not at all: the node asks again. */
  async #answer(session: NodeSession, tag: string): Promise<void> {
    const { store, candidates, logger } = this.#parts;
    const { nid, aid } = session.identity;
    try {
      const kept = candidates.isOn ? await store.get(vipKey(aid), { signal: session.signal }) : undefined;
      const { isHolder, generation } = holderAnswerFor(kept === undefined ? NO_RECORD : decodeVipRecord(kept.value), nid);
      const jsonB64 = encodeBase64(encodeUtf8(`{"isHolder":${isHolder},"generation":${generation}}`));
      await session.send({ type: 'AmIVIPHolderResponse', tag, jsonB64, epoch: session.epoch });
    } catch (error) {
      logger.warn('a node is not told whether it has the virtual IP', { nid, error });
    }
  }

  #tell(aid: Aid, before: VipRecord, { phase, node, generation }: VipRecord): void {
    const { events, logger } = this.#parts;
    logger.info('the virtual IP has moved on', { aid, phase, node, generation: String(generation) });
    if (phase === 'held') events.tell('info', `node ${node}`, `has the virtual IP of ${aid} now (generation ${generation})`);
    if (before.phase === 'held') events.tell('warning', `node ${node}`, `has the virtual IP of ${aid} no more`);
  }
}

function shownOf(aid: Aid, { failures: _, ...record }: VipRecord, candidates: readonly Nid[]): FleetVip {
  return { aid, ...record, candidates };
}

function tagOf(aid: Aid, { generation }: Pick<VipRecord, 'generation'>): Tag {
  const tag = asTag(`vip-${aid}-${generation}`);
  if (tag === undefined) throw new RangeError('an account id has at most 63 characters');
  return tag;
}

import type { AuditHead } from '../../domain/audit/model.js';
import type { Heartbeat } from '../../domain/link/heartbeat.js';
import type { JournalFacts, Nid } from '../../domain/link/model.js';
import {
  decodePresence,
  decodeServerClock,
  encodePresence,
  encodeServerClock,
  judgeHead,
  type NodeState,
  nodeState,
  type Presence,
  presenceKey,
  presencePrefix,
  serverKey,
  serverPrefix,
} from '../../domain/link/presence.js';
import { isOlder } from '../../domain/link/stream-record.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import { type ControlStore, MAX_OPERATIONS, type StoreChange, type Write } from '../../ports/store/control-store.js';
import { PrefixView } from '../store/prefix-view.js';
import type { NodeSession } from './node-session.js';
import type { ServerClocks } from './server-clocks.js';

/** How often a server says that it lives, and writes what its nodes have said. */
export const FLUSH_MS = 5_000;
/** How old the time may be that a node was last seen, as others read it: 10,000 nodes are 300 values a second. */
const SEEN_MS = 30_000;
const TWO_MACHINES =
  'stop the machine that is a copy, remove its certificates and register it as another node with `holdfast token create`';

export interface PresenceBoardParts {
  readonly store: ControlStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Id of this replica. */
  readonly server: string;
  /** Are told what the other servers' clocks say. */
  readonly clocks: ServerClocks;
}

export interface SeenNode extends Presence {
  readonly state: NodeState;
}

/** What a node had said to have, and has no more. */
export interface LostOnNode {
  /** Of its audit log. */
  readonly auditEnd: boolean;
  /** Or what is there is an older copy of it. */
  readonly journal: boolean;
}

/** A node whose stream is at this server, or was last. */
interface Local {
  presence: Presence;
  /** On the clock that never goes back. */
  seenAt: number;
  writtenSeen: number;
  dirty: boolean;
}

/** Which nodes are there: those of this server from memory, all others as their servers have written it. */
export class PresenceBoard implements ProblemSource {
  readonly #parts: PresenceBoardParts;
  readonly #view: PrefixView;
  readonly #mine = new Map<Nid, Local>();
  readonly #kept = new Map<Nid, { readonly presence: Presence; readonly changedAt: number }>();
  readonly #servers = new Map<string, number>();
  #startedAt = 0;
  #running: { readonly stop: AbortController; readonly done: Promise<void> } | undefined;

  constructor(parts: PresenceBoardParts) {
    this.#parts = parts;
    const changed = (changes: readonly StoreChange[]) => this.#changed(changes);
    this.#view = new PrefixView({ ...parts, prefix: 'presence/', changed });
  }

  start(): void {
    this.#startedAt = this.#parts.clock.monotonic();
    this.#view.start();
    const stop = new AbortController();
    this.#running ??= { stop, done: this.#flushForEver(stop.signal) };
  }

  /** What is not written yet is written, if the store takes it. */
  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.stop.abort();
    await running?.done;
    await this.#view.stop();
  }

  opened({ identity, node, agent }: NodeSession): void {
    const { clock, server } = this.#parts;
    const { nid, registration } = identity;
    const former = this.#mine.get(nid)?.presence ?? this.#kept.get(nid)?.presence;
    const same = former?.registration === registration ? former : undefined;
    const now = clock.now();
    const { status = '', version = '', auditHead } = same ?? {};
    const said = { status, version, auditHead, problem: former?.problem ?? '' };
    const journal = agent?.capabilities.has('journal') === true ? agent.journal : undefined;
    const stream = { server, connected: true, since: now, lastSeen: now, address: node.address, journal };
    this.#set(nid, { nid, registration, ...stream, ...said });
  }

  /** Says what the beat shows to be lost. */
  beat(nid: Nid, beat: Heartbeat | undefined): LostOnNode {
    const local = this.#mine.get(nid);
    if (local === undefined) return { auditEnd: false, journal: false };
    const { clock } = this.#parts;
    local.seenAt = clock.monotonic();
    const { presence } = local;
    const { head, isCut } = headOf(presence.auditHead, beat?.auditHead);
    const { status = presence.status, version = presence.version } = beat ?? {};
    const lost = beat?.journal !== undefined && isOlder(beat.journal, presence.journal);
    const journal = lost ? presence.journal : (beat?.journal ?? presence.journal);
    local.presence = { ...presence, lastSeen: clock.now(), status, version, auditHead: head, journal };
    // Another replica is to know it when the node comes to it next.
    local.dirty ||= journal?.counter !== presence.journal?.counter;
    local.dirty ||= status !== presence.status || version !== presence.version;
    local.dirty ||= local.presence.lastSeen - local.writtenSeen >= SEEN_MS;
    return { auditEnd: isCut, journal: lost };
  }

  /** The newest journal that the registration has said at any replica, as far as this one knows. */
  journalOf({ nid, registration }: NodeSession['identity']): JournalFacts | undefined {
    const seen = this.get(nid);
    return seen?.registration === registration ? seen.journal : undefined;
  }

  /** Empty: what was wrong is not any more. */
  problem(nid: Nid, problem: string): void {
    const local = this.#mine.get(nid);
    if (local === undefined || local.presence.problem === problem) return;
    local.presence = { ...local.presence, problem };
    local.dirty = true;
  }

  closed({ identity: { nid } }: NodeSession): void {
    const local = this.#mine.get(nid);
    if (local === undefined) return;
    local.presence = { ...local.presence, connected: false, since: this.#parts.clock.now() };
    local.dirty = true;
  }

  /** The node is no more: nothing is known of it. */
  forget(nid: Nid): void {
    this.#mine.delete(nid);
    this.#kept.delete(nid);
  }

  get(nid: Nid): SeenNode | undefined {
    const now = this.#parts.clock.monotonic();
    const local = this.#mine.get(nid);
    const kept = this.#kept.get(nid);
    // Another server that has it now has written so after this one did.
    if (local !== undefined && (local.presence.connected || kept === undefined || kept.presence.server === this.#parts.server)) {
      return { ...local.presence, state: nodeState({ nodeMs: now - local.seenAt, serverMs: 0 }) };
    }
    if (kept === undefined) return undefined;
    const { presence, changedAt } = kept;
    const nodeMs = presence.connected ? 0 : now - changedAt;
    return { ...presence, state: nodeState({ nodeMs, serverMs: this.#serverSilence(presence.server, now) }) };
  }

  /** What is wrong with nodes as a whole. */
  problems(): readonly StatusProblem[] {
    return this.nodes()
      .filter(({ problem }) => problem !== '')
      .map(({ nid, problem }) => ({ subject: `node ${nid}`, reason: problem, since: undefined, remedy: TWO_MACHINES }));
  }

  /** Sorted by id. */
  nodes(): readonly SeenNode[] {
    const ids = [...new Set([...this.#mine.keys(), ...this.#kept.keys()])].sort();
    return ids.flatMap((nid) => this.get(nid) ?? []);
  }

  /** A server that has written nothing since this one started may be dead for long, or is about to write. */
  #serverSilence(server: string, now: number): number {
    return now - (this.#servers.get(server) ?? this.#startedAt);
  }

  #set(nid: Nid, presence: Presence): void {
    this.#mine.set(nid, { presence, seenAt: this.#parts.clock.monotonic(), writtenSeen: presence.lastSeen, dirty: true });
  }

  #changed(changes: readonly StoreChange[]): void {
    const now = this.#parts.clock.monotonic();
    for (const { key, value } of changes) {
      if (key.startsWith(serverPrefix)) this.#serverSaid(key.slice(serverPrefix.length), value, now);
      else if (value === undefined) this.#kept.delete(key.slice(presencePrefix.length) as Nid);
      else {
        const presence = decodePresence(value);
        this.#kept.set(presence.nid, { presence, changedAt: now });
      }
    }
  }

  /** What this server wrote before it was started is no sign of life of its nodes: they come back, or are lost. */
  #serverSaid(server: string, value: string | undefined, now: number): void {
    if (value !== undefined) this.#parts.clocks.heard(server, decodeServerClock(value));
    if (server !== this.#parts.server) this.#servers.set(server, now);
  }

  async #flushForEver(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#flush();
      await this.#parts.clock.sleep(FLUSH_MS, { signal }).catch(() => {});
    }
    await this.#flush();
  }

  /** Others need the sign of life more than what the nodes have said, so that it is in the first commit. */
  async #flush(): Promise<void> {
    const { store, clock, logger, server } = this.#parts;
    const dirty = [...this.#mine.values()].filter((local) => local.dirty);
    const alive: Write = { key: serverKey(server), value: encodeServerClock(clock.now()) };
    const limit = MAX_OPERATIONS - 1;
    for (let start = 0; start === 0 || start < dirty.length; start += limit) {
      const part = dirty.slice(start, start + limit);
      for (const local of part) {
        local.dirty = false;
        local.writtenSeen = local.presence.lastSeen;
      }
      const writes = part.map(({ presence }) => ({ key: presenceKey(presence.nid), value: encodePresence(presence) }));
      try {
        await store.commit([], start === 0 ? [alive, ...writes] : writes, { signal: new AbortController().signal });
      } catch (error) {
        for (const local of part) local.dirty = true;
        logger.warn('the presence of nodes could not be written', { error, nodes: part.length });
        return;
      }
    }
  }
}

function headOf(kept: AuditHead | undefined, said: AuditHead | undefined) {
  return said === undefined ? { head: kept, isCut: false } : judgeHead(kept, said);
}

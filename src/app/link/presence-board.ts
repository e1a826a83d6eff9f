import type { AuditHead } from '../../domain/audit/model.js';
import { addressPort, ipAddress } from '../../domain/kernel/network.js';
import type { Heartbeat } from '../../domain/link/heartbeat.js';
import type { Aid, Nid } from '../../domain/link/model.js';
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
  SERVER_END_MS,
  serverKey,
  serverPrefix,
  unheardState,
} from '../../domain/link/presence.js';
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
/** Every 5 s: of a control plane whose servers were killed a thousand times they are gone after some minutes. */
const ENDED_AT_ONCE = 20;
const NEVER = new AbortController().signal;
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

export interface SeenServer {
  readonly id: string;
  /** Since it last said that it lives. */
  readonly silentMs: number;
}

export interface SeenNode extends Presence {
  readonly state: NodeState;
}

/** A node whose stream is at this server, or was last. */
interface Local {
  readonly aid: Aid;
  presence: Presence;
  /** On the clock that never goes back. */
  seenAt: number;
  writtenSeen: number;
  dirty: boolean;
}

/** As another server has written it, or this machine's former one. */
interface Kept {
  readonly text: string;
  readonly presence: Presence;
  /** On the clock that never goes back; undefined: it was there when this server began. */
  readonly changedAt: number | undefined;
}

interface OtherServer {
  readonly text: string;
  readonly version: bigint;
  /** Undefined: it has written nothing since this server began. */
  readonly heardAt: number | undefined;
}

/** Which nodes are there: those of this server from memory, all others as their servers have written it. */
export class PresenceBoard implements ProblemSource {
  readonly #parts: PresenceBoardParts;
  readonly #view: PrefixView;
  readonly #mine = new Map<Nid, Local>();
  readonly #kept = new Map<Nid, Kept>();
  readonly #servers = new Map<string, OtherServer>();
  /** When it was known for the first time what others have written, on the clock that never goes back. */
  #loadedAt: number | undefined;
  #running: { readonly stop: AbortController; readonly done: Promise<unknown> } | undefined;

  constructor(parts: PresenceBoardParts) {
    this.#parts = parts;
    const changed = (changes: readonly StoreChange[]) => this.#changed(changes);
    this.#view = new PrefixView({ ...parts, prefix: 'presence/', changed });
  }

  start(): void {
    this.#view.start();
    const stop = new AbortController();
    this.#running ??= { stop, done: Promise.all([this.#flushForEver(stop.signal), this.#load(stop.signal)]) };
  }

  /** What is not written yet is written, if the store takes it. */
  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.stop.abort();
    await running?.done;
    await this.#view.stop();
  }

  opened({ identity, node }: NodeSession): void {
    const { clock, server } = this.#parts;
    const { nid, aid, registration } = identity;
    const former = this.#mine.get(nid)?.presence ?? this.#kept.get(nid)?.presence;
    const same = former?.registration === registration ? former : undefined;
    const now = clock.now();
    const { status = '', version = '', auditHead, controlPlane } = same ?? {};
    const said = { status, version, auditHead, controlPlane, problem: former?.problem ?? '' };
    this.#set(aid, { nid, registration, server, connected: true, since: now, lastSeen: now, address: node.address, ...said });
  }

  /** Whether the beat's audit log has lost its end. */
  beat(nid: Nid, beat: Heartbeat | undefined): boolean {
    const local = this.#mine.get(nid);
    if (local === undefined) return false;
    const { clock } = this.#parts;
    local.seenAt = clock.monotonic();
    const { presence } = local;
    const { head, isCut } = headOf(presence.auditHead, beat?.auditHead);
    const { status = presence.status, version = presence.version } = beat ?? {};
    const controlPlane = beat === undefined ? presence.controlPlane : controlPlaneOf(local, beat);
    local.presence = { ...presence, lastSeen: clock.now(), status, version, auditHead: head, controlPlane };
    local.dirty ||= status !== presence.status || version !== presence.version;
    local.dirty ||= controlPlane?.address !== presence.controlPlane?.address;
    local.dirty ||= local.presence.lastSeen - local.writtenSeen >= SEEN_MS;
    return isCut;
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
    return kept === undefined ? undefined : { ...kept.presence, state: this.#keptState(kept, now) };
  }

  /** Also of one that was never seen. */
  stateOf(nid: Nid): NodeState {
    return this.get(nid)?.state ?? unheardState(this.#sinceLoaded(this.#parts.clock.monotonic()));
  }

  /** The servers that are there: this one, and those that were heard of not long ago. Sorted by id. */
  servers(): readonly SeenServer[] {
    const now = this.#parts.clock.monotonic();
    const others = [...this.#servers].flatMap(([id, { heardAt }]) =>
      heardAt === undefined || now - heardAt > SERVER_END_MS ? [] : [{ id, silentMs: now - heardAt }],
    );
    return [{ id: this.#parts.server, silentMs: 0 }, ...others].sort((a, b) => (a.id < b.id ? -1 : 1));
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

  /** What was there when this server began says nothing of now, but for a stream of a server that lives. */
  #keptState({ presence, changedAt }: Kept, now: number): NodeState {
    const heardAt = this.#servers.get(presence.server)?.heardAt;
    const spokenAt = presence.connected ? (heardAt ?? changedAt) : changedAt;
    if (spokenAt === undefined) return unheardState(this.#sinceLoaded(now));
    const nodeMs = presence.connected ? 0 : now - spokenAt;
    return nodeState({ nodeMs, serverMs: now - Math.max(heardAt ?? spokenAt, spokenAt) });
  }

  async #load(signal: AbortSignal): Promise<void> {
    await this.#view.loaded({ signal }).catch(() => {});
    this.#loadedAt ??= this.#parts.clock.monotonic();
  }

  /** Nobody can come back while the store cannot be read: until then, no time has passed. */
  #sinceLoaded(now: number): number {
    return this.#loadedAt === undefined ? 0 : now - this.#loadedAt;
  }

  #set(aid: Aid, presence: Presence): void {
    this.#mine.set(presence.nid, {
      aid,
      presence,
      seenAt: this.#parts.clock.monotonic(),
      writtenSeen: presence.lastSeen,
      dirty: true,
    });
  }

  #changed(changes: readonly StoreChange[]): void {
    const now = this.#parts.clock.monotonic();
    for (const change of changes) {
      const { key, value } = change;
      if (key.startsWith(serverPrefix)) this.#serverSaid(key.slice(serverPrefix.length), change, now);
      else if (value === undefined) this.#kept.delete(key.slice(presencePrefix.length) as Nid);
      else this.#nodeSaid(value, now);
    }
  }

  /** The same again is what a watch that began anew tells of everything. */
  #nodeSaid(text: string, now: number): void {
    const presence = decodePresence(text);
    const { nid } = presence;
    if (this.#kept.get(nid)?.text === text) return;
    this.#kept.set(nid, { text, presence, changedAt: this.#view.hasLoaded ? now : undefined });
  }

  #serverSaid(server: string, { value: text, version }: StoreChange, now: number): void {
    if (server === this.#parts.server) return;
    if (text === undefined) return void this.#servers.delete(server);
    this.#parts.clocks.heard(server, decodeServerClock(text));
    const known = this.#servers.get(server);
    const news = this.#view.hasLoaded ? now : undefined;
    this.#servers.set(server, { text, version, heardAt: known?.text === text ? known.heardAt : news });
  }

  async #flushForEver(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#flush(encodeServerClock(this.#parts.clock.now()));
      await this.#removeEnded();
      await this.#parts.clock.sleep(FLUSH_MS, { signal }).catch(() => {});
    }
    await this.#flush(null);
  }

  /** Servers that were killed could not take their records away. One that speaks in this moment keeps its own. */
  async #removeEnded(): Promise<void> {
    const { clock, store, logger } = this.#parts;
    const now = clock.monotonic();
    const silentMs = ({ heardAt }: OtherServer) => (heardAt === undefined ? this.#sinceLoaded(now) : now - heardAt);
    const ended = [...this.#servers].filter(([, server]) => silentMs(server) > SERVER_END_MS);
    for (const [id, { version }] of ended.slice(0, ENDED_AT_ONCE)) {
      const key = serverKey(id);
      try {
        await store.commit([{ key, version }], [{ key, value: null }], { signal: NEVER });
      } catch (error) {
        logger.warn('the record of a server that has ended could not be removed', { error, server: id });
        return;
      }
    }
  }

  /** Others need the sign of life more than what the nodes have said, so that it is in the first commit. `null`: this server ends. */
  async #flush(alive: string | null): Promise<void> {
    const { store, logger, server } = this.#parts;
    const dirty = [...this.#mine.values()].filter((local) => local.dirty);
    const limit = MAX_OPERATIONS - 1;
    for (let start = 0; start === 0 || start < dirty.length; start += limit) {
      const part = dirty.slice(start, start + limit);
      for (const local of part) {
        local.dirty = false;
        local.writtenSeen = local.presence.lastSeen;
      }
      const writes = part.map(({ presence }) => ({ key: presenceKey(presence.nid), value: encodePresence(presence) }));
      try {
        const sign: readonly Write[] = start === 0 ? [{ key: serverKey(server), value: alive }] : [];
        await store.commit([], [...sign, ...writes], { signal: NEVER });
      } catch (error) {
        for (const local of part) local.dirty = true;
        logger.warn('the presence of nodes could not be written', { error, nodes: part.length });
        return;
      }
    }
  }
}

/** At the address that it says, or else where it calls from. One that could not read its roles is what it was. */
function controlPlaneOf({ aid, presence }: Local, { isCp, rolesKnown, externalIpAddress }: Heartbeat): Presence['controlPlane'] {
  if (!isCp && !rolesKnown) return presence.controlPlane;
  return isCp ? { aid, address: ipAddress(externalIpAddress) ?? addressPort(presence.address)?.address ?? '' } : undefined;
}

function headOf(kept: AuditHead | undefined, said: AuditHead | undefined) {
  return said === undefined ? { head: kept, isCut: false } : judgeHead(kept, said);
}

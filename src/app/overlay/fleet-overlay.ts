import { AgentError } from '../../domain/kernel/errors.js';
import { type Ipv4Range, ipv4Range } from '../../domain/kernel/network.js';
import type { OverlayPeer, OverlaySet } from '../../domain/link/calls.js';
import type { Aid, Nid } from '../../domain/link/model.js';
import {
  acceptSelf,
  decodeOverlayRecord,
  encodeOverlayRecord,
  freeAddress,
  isInRange,
  nodeOfKey,
  type OverlayRecord,
  overlayAddressKey,
  overlayNodeKey,
  overlayPrefix,
  overlaySetOf,
} from '../../domain/overlay/fleet.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore, StoreChange } from '../../ports/store/control-store.js';
import { PrefixView } from '../store/prefix-view.js';

/** Several replicas give addresses at the same time: the loser looks again. */
const TRIES = 20;

export interface FleetOverlayParts {
  readonly store: ControlStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Of the overlay; undefined: there is none. */
  readonly range: Ipv4Range | undefined;
}

/** Who is in the overlay of a control plane, under which address, key and endpoint. */
export class FleetOverlay {
  readonly #parts: FleetOverlayParts;
  readonly #view: PrefixView;
  readonly #records = new Map<Nid, OverlayRecord & { readonly version: bigint }>();
  readonly #listeners = new Set<(aid: Aid) => void>();

  constructor(parts: FleetOverlayParts) {
    this.#parts = parts;
    this.#view = new PrefixView({ ...parts, prefix: overlayPrefix, changed: (changes) => this.#changed(changes) });
  }

  /** Where there is no overlay, nobody is in it. */
  start(): void {
    if (this.#parts.range !== undefined) this.#view.start();
  }

  stop(): Promise<void> {
    return this.#view.stop();
  }

  /** The nodes of an account have other peers than before. */
  onChange(listener: (aid: Aid) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The nodes of an account that have said their key. */
  nodes(aid: Aid): readonly Nid[] {
    return [...this.#records].filter(([, record]) => record.aid === aid && record.pubKey !== '').map(([nid]) => nid);
  }

  /** As it is known here. Without an overlay, or without an address, it has no peers and no address. */
  setOf(nid: Nid): OverlaySet {
    const { range } = this.#parts;
    return range === undefined ? { peers: [], address: '' } : overlaySetOf(nid, this.#records, range);
  }

  /**
   * Gives a node its address, unless it has one. It keeps it until it is removed, or the range has become another one.
   * @throws AgentError `overlay.no_address_left`, `store.*`
   */
  async admit(nid: Nid, aid: Aid, options: CallOptions): Promise<void> {
    const { range, store } = this.#parts;
    if (range === undefined) return;
    await this.#view.reached(0n, options);
    for (let tries = 0; tries < TRIES; tries++) {
      const known = this.#records.get(nid);
      if (known !== undefined && known.aid === aid && isInRange(range, known.address)) return;
      const address = freeAddress(range, new Set([...this.#records.values()].map((record) => record.address)));
      if (address === undefined)
        throw new AgentError('overlay.no_address_left', { problem: 'every address of overlay.cidr is given' });
      const { pubKey = '', endpoint = '', networks = [] } = known ?? {};
      const record = { aid, address, pubKey, endpoint, networks };
      const conditions = [
        { key: overlayAddressKey(address), version: 0n },
        { key: overlayNodeKey(nid), version: known?.version ?? 0n },
      ];
      const writes = [
        { key: overlayAddressKey(address), value: nid },
        { key: overlayNodeKey(nid), value: encodeOverlayRecord(record) },
        ...(known === undefined ? [] : [{ key: overlayAddressKey(known.address), value: null }]),
      ];
      await this.#settled(overlayAddressKey(address), await store.commit(conditions, writes, options), options);
    }
    throw new AgentError('store.unavailable', { problem: 'others keep taking the same addresses' });
  }

  /** A node says what it is, and gets its peers. @throws AgentError `overlay.no_address_left`, `store.*` */
  async sync(
    { identity: { nid, aid }, address }: PeerNode,
    self: OverlayPeer | undefined,
    options: CallOptions,
  ): Promise<OverlaySet> {
    const { range, store } = this.#parts;
    if (range === undefined) return { peers: [], address: '' };
    await this.admit(nid, aid, options);
    for (let tries = 0; self !== undefined && tries < TRIES; tries++) {
      const known = this.#records.get(nid);
      if (known === undefined) break;
      const { version, ...record } = known;
      const next = { ...record, ...acceptSelf(self, address, [range, ...this.#networksBeside(nid, aid)]) };
      if (encodeOverlayRecord(next) === encodeOverlayRecord(record)) break;
      const key = overlayNodeKey(nid);
      const done = await store.commit([{ key, version }], [{ key, value: encodeOverlayRecord(next) }], options);
      await this.#settled(key, done, options);
    }
    return this.setOf(nid);
  }

  /** A node that was removed is nobody's peer any more, and its address is free. @throws AgentError `store.*` */
  async forget(nid: Nid, options: CallOptions): Promise<void> {
    const key = overlayNodeKey(nid);
    const stored = await this.#parts.store.get(key, options);
    const record = stored === undefined ? undefined : decodeOverlayRecord(stored.value);
    if (record === undefined) return;
    const writes = [key, overlayAddressKey(record.address)].map((one) => ({ key: one, value: null }));
    await this.#parts.store.commit([], writes, options);
  }

  /** Known here when it resolves. A commit that lost to another one is looked at again like it. */
  async #settled(key: string, version: bigint | undefined, options: CallOptions): Promise<void> {
    const newest = version ?? (await this.#parts.store.get(key, options))?.version ?? 0n;
    await this.#view.reached(newest, options);
  }

  #networksBeside(nid: Nid, aid: Aid): readonly Ipv4Range[] {
    const others = [...this.#records].filter(([other, record]) => other !== nid && record.aid === aid);
    return others.flatMap(([, { networks }]) => networks.flatMap((text) => ipv4Range(text) ?? []));
  }

  #changed(changes: readonly StoreChange[]): void {
    const accounts = new Set<Aid>();
    for (const { key, value, version } of changes) {
      const nid = nodeOfKey(key);
      if (nid === undefined) continue;
      const before = this.#records.get(nid);
      const record = value === undefined ? undefined : decodeOverlayRecord(value);
      if (record === undefined) this.#records.delete(nid);
      else this.#records.set(nid, { ...record, version });
      for (const aid of [before?.aid, record?.aid]) if (aid !== undefined) accounts.add(aid);
    }
    for (const aid of accounts) for (const listener of this.#listeners) listener(aid);
  }
}

import type { NodeRecord } from '../../domain/certificate/records.js';
import { nodeKey, nodePrefix, revocationKey, revocationPrefix, tokenPrefix } from '../../domain/certificate/records.js';
import type { Revocation, Revocations, RevocationTarget } from '../../domain/certificate/revocation.js';
import { decodeNode, decodeRevocation, decodeToken } from '../../domain/certificate/schema.js';
import { type TokenRecord, type TokenState, tokenState } from '../../domain/certificate/token.js';
import type { Nid } from '../../domain/link/model.js';
import type { Clock } from '../../ports/clock.js';
import type { RevocationFeed } from '../../ports/driving/revocations.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import { WatchedMap } from './watched-map.js';

export interface EnrolmentViewConfig {
  readonly store: ControlStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From 0 up to, not with, 1. */
  readonly random: () => number;
}

/** The nodes, what is revoked and the tokens, as this replica knows them: each call of a node is judged without asking the store. */
export class EnrolmentView implements Revocations, RevocationFeed {
  readonly #nodes: WatchedMap<NodeRecord>;
  readonly #revocations: WatchedMap<Revocation>;
  readonly #tokens: WatchedMap<TokenRecord>;
  readonly #clock: Clock;
  readonly #listeners = new Set<(revocation: Revocation) => void>();

  constructor(config: EnrolmentViewConfig) {
    this.#clock = config.clock;
    this.#tokens = new WatchedMap({ ...config, prefix: tokenPrefix, decode: decodeToken });
    this.#nodes = new WatchedMap({ ...config, prefix: nodePrefix, decode: decodeNode });
    this.#revocations = new WatchedMap({
      ...config,
      prefix: revocationPrefix,
      decode: decodeRevocation,
      changed: (_, revocation) => this.#tell(revocation),
    });
  }

  /** Whether nodes and revocations were known once. */
  get isLoaded(): boolean {
    return this.#nodes.isLoaded && this.#revocations.isLoaded;
  }

  /** Resolves when both are known for the first time. */
  async loaded(): Promise<void> {
    await Promise.all([this.#nodes.loaded(), this.#revocations.loaded()]);
  }

  /** Until `signal` ends. */
  async follow(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#nodes.follow(signal), this.#revocations.follow(signal), this.#tokens.follow(signal)]);
  }

  find(of: RevocationTarget, id: string): Revocation | undefined {
    return this.#revocations.get(revocationKey(of, id));
  }

  node(nid: Nid): NodeRecord | undefined {
    return this.#nodes.get(nodeKey(nid));
  }

  /** Sorted by id. */
  nodeIds(): readonly Nid[] {
    return [...this.#nodes.values()].map(({ nid }) => nid).sort();
  }

  /** How many tokens are in which state. */
  tokens(): Readonly<Record<TokenState, number>> {
    const counts = { open: 0, used: 0, expired: 0 };
    const now = this.#clock.now();
    for (const token of this.#tokens.values()) counts[tokenState(token, now)]++;
    return counts;
  }

  onRevoked(listener: (revocation: Revocation) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(revocation: Revocation | undefined): void {
    if (revocation?.kind !== 'revoked') return;
    for (const listener of this.#listeners) listener(revocation);
  }
}

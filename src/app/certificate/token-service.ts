import { nodeKey, tokenKey, tokenPrefix } from '../../domain/certificate/records.js';
import { decodeToken } from '../../domain/certificate/schema.js';
import {
  formatToken,
  MAX_TOKEN_TTL_MS,
  TOKEN_BYTES,
  type TokenPurpose,
  type TokenRecord,
  tokenOf,
} from '../../domain/certificate/token.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { roughly } from '../../domain/kernel/instant.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { TokenCall, TokenFacts, Tokens } from '../../ports/driving/tokens.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import { RecordStore, writeToken } from './record-store.js';

export interface TokenServiceConfig {
  readonly store: ControlStore;
  readonly clock: Clock;
  /** Hex. */
  readonly sha256: (text: string) => string;
  readonly randomBytes: (count: number) => Uint8Array;
}

const TRIES = 5;

export class TokenService implements Tokens {
  readonly #config: TokenServiceConfig;
  readonly #records: RecordStore;

  constructor(config: TokenServiceConfig) {
    this.#config = config;
    this.#records = new RecordStore(config.store);
  }

  /** @throws AgentError also `certificate.token_invalid` when the time is none, or longer than a week */
  async create(
    { aid, ttlMs, replace }: TokenCall,
    options: CallOptions,
  ): Promise<{ readonly token: string; readonly facts: TokenFacts }> {
    const { clock, randomBytes, sha256, store } = this.#config;
    if (!(ttlMs >= 1_000 && ttlMs <= MAX_TOKEN_TTL_MS)) {
      throw new AgentError('certificate.token_invalid', { problem: `a token lives 1 s to ${roughly(MAX_TOKEN_TTL_MS)}` });
    }
    const replaced = replace === undefined ? undefined : await this.#records.node(replace, options);
    if (replace !== undefined && replaced?.record.aid !== aid) {
      throw new AgentError('certificate.unknown_node', { problem: `account ${aid} has no node ${replace}` });
    }
    const parts = tokenOf(randomBytes(TOKEN_BYTES));
    const purpose: TokenPurpose = replace === undefined ? { kind: 'join' } : { kind: 'replace', nid: replace };
    const created = clock.now();
    const record = { id: parts.id, digest: sha256(parts.secret), aid, purpose, created, expires: created + ttlMs };
    const conditions = [
      { key: tokenKey(record.id), version: 0n },
      ...(replace === undefined || replaced === undefined ? [] : [{ key: nodeKey(replace), version: replaced.version }]),
    ];
    const done = await store.commit(conditions, [writeToken(record)], options);
    // 48 bits of id: it is the node that has changed meanwhile.
    if (done === undefined) throw new AgentError('certificate.unknown_node', { problem: `node ${replace} has just changed` });
    return { token: formatToken(parts), facts: factsOf(record) };
  }

  async list(options: CallOptions): Promise<readonly TokenFacts[]> {
    const stored = await this.#config.store.list(tokenPrefix, options);
    return stored
      .map(({ key, value }) => factsOf(decodeToken(key, value)))
      .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  }

  async revoke(id: string, options: CallOptions): Promise<boolean> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const stored = await this.#records.token(id, options);
      if (stored === undefined) return false;
      const condition = { key: tokenKey(id), version: stored.version };
      const done = await this.#config.store.commit([condition], [{ key: condition.key, value: null }], options);
      if (done !== undefined) return true;
    }
    throw new AgentError('store.unavailable', { problem: 'others keep changing the same token' });
  }
}

function factsOf({ id, aid, purpose, created, expires, used }: TokenRecord): TokenFacts {
  return {
    id,
    aid,
    replace: purpose.kind === 'replace' ? purpose.nid : undefined,
    createdAt: created,
    expiresAt: expires,
    usedBy: used?.nid,
  };
}

import { certificateKey, type NodeRecord, nodeKey, revocationKey, tokenKey } from '../../domain/certificate/records.js';
import { afterReissue, registrationEnd } from '../../domain/certificate/succession.js';
import { judgeToken, parseToken, type TokenRecord, type TokenUse } from '../../domain/certificate/token.js';
import { hex } from '../../domain/kernel/base64-url.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { formatIpv4Range, ipv4Range } from '../../domain/kernel/network.js';
import { type Nid, nid, registrationId } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ProvenKey } from '../../ports/certificate/certificate-authority.js';
import type { Clock } from '../../ports/clock.js';
import type { IssuedPair, RegisterCall } from '../../ports/driving/enrolment.js';
import type { NodeIdentity } from '../../ports/driving/node-streams.js';
import type { ControlStore, Write } from '../../ports/store/control-store.js';
import type { IssuedNode, NodeIssuer } from './node-issuer.js';
import { RecordStore, type Stored, writeCertificate, writeNode, writeRevocation, writeToken } from './record-store.js';

export type Registered = IssuedPair & { readonly nid: string };

/** Why a token was refused; whoever tried is told one text for all. */
export class TokenRefusal {
  readonly reason: string;
  /** Another machine has tried a token that was used: somebody else has seen it. */
  readonly foreign: boolean;
  readonly error: AgentError;

  constructor(reason: string, foreign = false) {
    this.reason = reason;
    this.foreign = foreign;
    this.error = new AgentError('certificate.token_refused', { problem: 'the token is wrong, has expired, or was used' });
  }
}

export interface RegisteringConfig {
  readonly store: ControlStore;
  readonly issuer: NodeIssuer;
  readonly clock: Clock;
  /** Hex. */
  readonly sha256: (text: string) => string;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Called before anything of a registration is written; what it throws ends it. */
  readonly allowed: (call: RegisterCall, tokenId: string, options: CallOptions) => Promise<void>;
}

/** Two machines, or a machine and its own repetition, use one token at the same time: the loser looks again. */
const TRIES = 5;
const MAX_CIDRS = 256;
const MAX_TEXT = 128;

/** How a machine becomes a node, with a token whose use, the node and its certificate are one step of the store. */
export class Registering {
  readonly #config: RegisteringConfig;
  readonly #records: RecordStore;

  constructor(config: RegisteringConfig) {
    this.#config = config;
    this.#records = new RecordStore(config.store);
  }

  /**
   * @returns a refusal for whatever is wrong with the token
   * @throws AgentError `certificate.csr_invalid`, `certificate.unknown_account`, `certificate.incomplete`, `store.unavailable`
   */
  async register(call: RegisterCall, options: CallOptions): Promise<Registered | TokenRefusal> {
    if (!isText(call.machineId)) throw new AgentError('certificate.incomplete', { problem: 'missing: the machine id' });
    let proven: ProvenKey | undefined;
    for (let tries = 0; tries < TRIES; tries += 1) {
      const presented = await this.#presented(call.token, options);
      if (presented instanceof TokenRefusal) return presented;
      // Only for a token that is known: parsing what anyone sends costs more than looking it up.
      proven ??= await this.#config.issuer.prove(call.csr, options);
      const answer = await this.#once(call, presented, proven, options);
      if (answer !== undefined) return answer;
    }
    throw new AgentError('store.unavailable', { problem: 'others keep changing the same records' });
  }

  /** The record of a token with the right secret. */
  async #presented(text: string, options: CallOptions): Promise<Stored<TokenRecord> | TokenRefusal> {
    const parts = parseToken(text);
    if (parts === undefined) return new TokenRefusal('it is no token');
    const stored = await this.#records.token(parts.id, options);
    if (stored === undefined) return new TokenRefusal('there is none with this id');
    return this.#config.sha256(parts.secret) === stored.record.digest ? stored : new TokenRefusal('its secret is wrong');
  }

  /** `undefined`: somebody else has changed a record meanwhile. */
  async #once(
    call: RegisterCall,
    token: Stored<TokenRecord>,
    proven: ProvenKey | undefined,
    options: CallOptions,
  ): Promise<Registered | TokenRefusal | undefined> {
    const attempt = { aid: call.aid.trim(), machineId: call.machineId, fingerprint: proven?.fingerprint };
    const verdict = judgeToken(token.record, attempt, this.#config.clock.now());
    switch (verdict.verdict) {
      case 'wrong_account':
        throw new AgentError('certificate.unknown_account', { problem: 'the token is of another account' });
      case 'refused':
        return new TokenRefusal(verdict.reason, verdict.foreign);
      case 'again':
        return this.#answerAgain(verdict.use, options);
      case 'reissue':
        return this.#reissue(token, verdict.use, options);
      case 'fresh':
        await this.#config.allowed(call, token.record.id, options);
        return this.#join(call, token, proven, options);
    }
  }

  async #join(
    call: RegisterCall,
    { record: token, version }: Stored<TokenRecord>,
    proven: ProvenKey | undefined,
    options: CallOptions,
  ): Promise<Registered | TokenRefusal | undefined> {
    const { clock, issuer } = this.#config;
    const id = token.purpose.kind === 'replace' ? token.purpose.nid : this.#newNid();
    const former = await this.#records.node(id, options);
    if (former !== undefined && token.purpose.kind === 'join') return undefined;
    if (former !== undefined && former.record.aid !== token.aid) return new TokenRefusal('its node is of another account');
    const identity: NodeIdentity = { role: 'node', aid: token.aid, nid: id, registration: this.#newRegistration() };
    const now = clock.now();
    const issued = await issuer.issue(identity, proven, now, options);
    const node = nodeOf(call, identity, issued, now);
    const writes = [
      writeToken({ ...token, used: useOf(node, now) }),
      writeNode(node),
      writeCertificate(issued.record),
      ...(former === undefined ? [] : endOf(former.record, now)),
    ];
    const conditions = [
      { key: tokenKey(token.id), version },
      { key: nodeKey(id), version: former?.version ?? 0n },
    ];
    const done = await this.#commit(conditions, writes, options);
    return done === undefined ? undefined : { ...issued.pair, nid: id };
  }

  /** A commit whose outcome is unknown is looked at again like one that was lost: if it was done, the token shows it. */
  async #commit(
    conditions: Parameters<ControlStore['commit']>[0],
    writes: readonly Write[],
    options: CallOptions,
  ): Promise<bigint | undefined> {
    try {
      return await this.#config.store.commit(conditions, writes, options);
    } catch (error) {
      if (error instanceof AgentError && error.code === 'store.outcome_unknown') return undefined;
      throw error;
    }
  }

  async #answerAgain({ at, nid: id, serial }: TokenUse, options: CallOptions): Promise<Registered | TokenRefusal> {
    const stored = await this.#records.certificate(serial, options);
    if (stored === undefined) return new TokenRefusal(`its node ${id} has another certificate by now`);
    return { privateKey: '', certificate: stored.record.certificate, ca: this.#config.issuer.rootAt(at), nid: id };
  }

  async #reissue(
    { record: token, version }: Stored<TokenRecord>,
    use: TokenUse,
    options: CallOptions,
  ): Promise<Registered | TokenRefusal | undefined> {
    const { clock, issuer } = this.#config;
    const node = await this.#records.node(use.nid, options);
    if (node?.record.current.serial !== use.serial || node.record.current.firstUsed !== undefined) {
      return new TokenRefusal(`its node ${use.nid} is in use`);
    }
    const { aid, nid: id, registration } = node.record;
    const now = clock.now();
    const issued = await issuer.issue({ role: 'node', aid, nid: id, registration }, undefined, now, options);
    const { record, revocations } = afterReissue(node.record, issued.held, now);
    const writes = [
      writeToken({ ...token, used: { ...useOf(record, now), at: use.at } }),
      writeNode(record),
      writeCertificate(issued.record),
      { key: certificateKey(use.serial), value: null },
      ...revocations.map(writeRevocation),
    ];
    const conditions = [
      { key: tokenKey(token.id), version },
      { key: nodeKey(id), version: node.version },
    ];
    const done = await this.#commit(conditions, writes, options);
    return done === undefined ? undefined : { ...issued.pair, nid: id };
  }

  #newNid(): Nid {
    return nid(`n-${hex(this.#config.randomBytes(8))}`);
  }

  #newRegistration(): NodeIdentity['registration'] {
    return registrationId(`r-${hex(this.#config.randomBytes(8))}`);
  }
}

function nodeOf(call: RegisterCall, { aid, nid: id, registration }: NodeIdentity, { held }: IssuedNode, now: number): NodeRecord {
  const ranges = call.hostCidrs.slice(0, MAX_CIDRS).map(ipv4Range);
  return {
    nid: id,
    aid,
    registration,
    machineId: call.machineId,
    os: isText(call.os) ? call.os : '',
    hostCidrs: ranges.flatMap((range) => (range === undefined ? [] : [formatIpv4Range(range)])),
    address: call.address,
    registered: now,
    current: held,
    renewals: [],
  };
}

function useOf({ nid: id, registration, machineId, current }: NodeRecord, at: number): TokenUse {
  return { at, machineId, nid: id, registration, serial: current.serial, fingerprint: current.fingerprint };
}

/** What a registration leaves behind that another one has followed. */
function endOf(former: NodeRecord, now: number): readonly Write[] {
  const serials = [former.current, former.pending].flatMap((each) => (each === undefined ? [] : [each.serial]));
  return [
    writeRevocation(registrationEnd(former, 'the node has registered again', now)),
    { key: revocationKey('node', former.nid), value: null },
    ...serials.map((serial) => ({ key: certificateKey(serial), value: null })),
  ];
}

/** What others send is kept and shown: 1 to 128 printable ASCII characters. */
function isText(text: string): boolean {
  return text.length <= MAX_TEXT && /^[\x20-\x7e]+$/.test(text) && text.trim() !== '';
}

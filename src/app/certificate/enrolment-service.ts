import { certificateKey, nodeKey } from '../../domain/certificate/records.js';
import { RegistrationLimits } from '../../domain/certificate/registration-limits.js';
import { revocationOf } from '../../domain/certificate/revocation.js';
import { afterIssue, afterUse } from '../../domain/certificate/succession.js';
import { nextRenewalAt } from '../../domain/certificate/validity.js';
import { AgentError, type ErrorCode } from '../../domain/kernel/errors.js';
import { formatInstant, roughly } from '../../domain/kernel/instant.js';
import { aid, nid } from '../../domain/link/model.js';
import type { AuditLog } from '../../ports/audit/audit-log.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { CertificateAuthority, ProvenKey } from '../../ports/certificate/certificate-authority.js';
import type { Clock } from '../../ports/clock.js';
import type { Enrolment, IssuedPair, RegisterCall, RenewOptions } from '../../ports/driving/enrolment.js';
import type { NodeIdentity, PeerNode } from '../../ports/driving/node-streams.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import type { EnrolmentView } from './enrolment-view.js';
import { FirstUse } from './first-use.js';
import { NodeIssuer } from './node-issuer.js';
import { RecordStore, writeCertificate, writeNode, writeRevocation } from './record-store.js';
import { type Registered, Registering, TokenRefusal } from './registering.js';
import { type ForeignRenewal, RenewalGuard } from './renewal-guard.js';

/** Something that those who operate the control plane should see. */
export type EnrolmentEvent =
  | { readonly what: 'foreign_token'; readonly tokenId: string; readonly machineId: string; readonly address: string }
  | ForeignRenewal;

export interface EnrolmentConfig {
  readonly store: ControlStore;
  readonly view: EnrolmentView;
  /** That of nodes. */
  readonly authority: CertificateAuthority;
  readonly audit: Pick<AuditLog, 'append'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Hex. */
  readonly sha256: (text: string) => string;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly onEvent: (event: EnrolmentEvent) => void;
  /** Before the answer of a registration that is stored; a failure of it is logged. */
  readonly onRegistered: (node: Pick<NodeIdentity, 'nid' | 'aid'>, options: CallOptions) => Promise<void>;
}

/** Registrations since the start. `refused`: by the caller's fault; `limited`: not looked at; `failed`: by ours. */
export interface EnrolmentCounters {
  readonly registered: number;
  readonly refused: number;
  readonly limited: number;
  readonly failed: number;
}

const TRIES = 5;

/** Failures that count against the address of whoever tries. */
const callersFault: ReadonlySet<ErrorCode> = new Set([
  'certificate.token_refused',
  'certificate.csr_invalid',
  'certificate.unknown_account',
  'certificate.incomplete',
]);

export class EnrolmentService implements Enrolment {
  readonly #config: EnrolmentConfig;
  readonly #limits = new RegistrationLimits();
  readonly #records: RecordStore;
  readonly #issuer: NodeIssuer;
  readonly #registering: Registering;
  readonly #firstUse: FirstUse;
  readonly #guard: RenewalGuard;
  #counters: EnrolmentCounters = { registered: 0, refused: 0, limited: 0, failed: 0 };

  constructor(config: EnrolmentConfig) {
    this.#config = config;
    this.#records = new RecordStore(config.store);
    this.#issuer = new NodeIssuer(config.authority, config.randomBytes);
    this.#firstUse = new FirstUse(config);
    this.#guard = new RenewalGuard(config);
    this.#registering = new Registering({
      ...config,
      issuer: this.#issuer,
      allowed: (call, tokenId, options) => this.#audit(call, tokenId, 'allowed', options),
    });
  }

  get counters(): EnrolmentCounters {
    return this.#counters;
  }

  async register(call: RegisterCall, options: CallOptions): Promise<Registered> {
    this.#admitTry(call.address);
    try {
      const answer = await this.#registering.register(call, options);
      if (answer instanceof TokenRefusal) throw await this.#refused(call, answer, options);
      this.#config.logger.info('a node has registered', { nid: answer.nid, aid: call.aid, address: call.address });
      this.#count('registered');
      await this.#tell(answer.nid, call.aid, options);
      return answer;
    } catch (error) {
      const isCallers = error instanceof AgentError && callersFault.has(error.code);
      if (isCallers) this.#limits.failed(call.address, this.#config.clock.monotonic());
      this.#count(isCallers ? 'refused' : 'failed');
      throw error;
    }
  }

  #count(counter: keyof EnrolmentCounters): void {
    this.#counters = { ...this.#counters, [counter]: this.#counters[counter] + 1 };
  }

  async #tell(id: string, account: string, options: CallOptions): Promise<void> {
    try {
      await this.#config.onRegistered({ nid: nid(id), aid: aid(account.trim()) }, options);
    } catch (error) {
      this.#config.logger.warn('a node that has registered is not known everywhere yet', { nid: id, error });
    }
  }

  async renew(node: PeerNode, csr: Uint8Array | undefined, options: RenewOptions): Promise<IssuedPair> {
    await this.#guard.check(node, options.caller, options);
    const proven = await this.#issuer.prove(csr, options);
    for (let tries = 0; tries < TRIES; tries += 1) {
      const pair = await this.#renewOnce(node, proven, options);
      if (pair !== undefined) return pair;
    }
    throw new AgentError('store.unavailable', { problem: 'others keep changing the same records' });
  }

  admit(node: PeerNode): void {
    const { clock, view } = this.#config;
    if (!view.isLoaded) {
      throw new AgentError('store.unavailable', { problem: 'it is not known yet which certificates are revoked' });
    }
    const revocation = revocationOf(node, view, clock.now());
    if (revocation !== undefined) {
      const problem = `certificate ${node.serial} of node ${node.identity.nid} was revoked: ${revocation.reason}`;
      throw new AgentError('certificate.revoked', { problem });
    }
    this.#firstUse.note(node);
  }

  /** What `admit` has noticed is stored, or could not be. */
  settled(): Promise<void> {
    return this.#firstUse.settled();
  }

  /** Safe twice. */
  stop(): Promise<void> {
    return this.#firstUse.stop();
  }

  #admitTry(address: string): void {
    const verdict = this.#limits.admit(address, this.#config.clock.monotonic());
    if (verdict === 'ok') return;
    this.#count('limited');
    this.#config.logger.warn('a registration was held back', { address, limit: verdict });
    throw new AgentError('certificate.too_many', {
      problem: verdict === 'address' ? 'too many tries from this address have failed' : 'too many register at once',
    });
  }

  async #refused(call: RegisterCall, { reason, foreign, error }: TokenRefusal, options: CallOptions): Promise<AgentError> {
    const { logger, onEvent } = this.#config;
    const { address, aid, machineId } = call;
    const tokenId = tokenIdOf(call.token);
    logger.warn('a registration was refused: the token', { reason, tokenId, address, aid, machineId });
    if (foreign) onEvent({ what: 'foreign_token', tokenId, machineId, address });
    // Nothing has been done that the line would have to precede.
    await this.#audit(call, tokenId, `denied: ${reason}`, options).catch((problem: unknown) => {
      logger.error('a refused registration could not be audited', { error: problem });
    });
    return error;
  }

  async #audit(call: RegisterCall, tokenId: string, result: string, options: CallOptions): Promise<void> {
    const { audit, sha256 } = this.#config;
    const payloadDigest = sha256(JSON.stringify([call.aid, call.machineId, call.os, call.hostCidrs]));
    const who = `address:${call.address}`;
    await audit.append({ who, tag: tokenId, type: 'Register', payloadDigest, rule: 'token', line: 'decision', result }, options);
  }

  /** `undefined`: somebody else has changed the record meanwhile. */
  async #renewOnce(node: PeerNode, proven: ProvenKey | undefined, options: CallOptions): Promise<IssuedPair | undefined> {
    const { clock, store } = this.#config;
    const { identity, serial } = node;
    const now = clock.now();
    const stored = await this.#records.node(identity.nid, options);
    if (stored?.record.registration !== identity.registration) {
      throw new AgentError('certificate.revoked', { problem: `node ${identity.nid} has no such registration any more` });
    }
    // It may ask for the next one before the use of this one was written down.
    const used = afterUse(stored.record, serial, now);
    const record = used?.record ?? stored.record;
    const same = await this.#sameAnswer(record.pending, proven, options);
    if (same !== undefined) return same;
    mustBeDue(record.renewals, now);
    const issued = await this.#issuer.issue(identity, proven, now, options);
    const next = afterIssue(record, issued.held, now);
    const replaced = record.pending === undefined ? [] : [{ key: certificateKey(record.pending.serial), value: null }];
    const writes = [
      writeNode(next.record),
      writeCertificate(issued.record),
      ...replaced,
      ...[...(used?.revocations ?? []), ...next.revocations].map(writeRevocation),
    ];
    const done = await store.commit([{ key: nodeKey(identity.nid), version: stored.version }], writes, options);
    return done === undefined ? undefined : issued.pair;
  }

  /** The answer to the same request was lost. */
  async #sameAnswer(
    pending: { readonly serial: string; readonly fingerprint: string } | undefined,
    proven: ProvenKey | undefined,
    options: CallOptions,
  ): Promise<IssuedPair | undefined> {
    if (pending === undefined || proven === undefined || pending.fingerprint !== proven.fingerprint) return undefined;
    const stored = await this.#records.certificate(pending.serial, options);
    if (stored === undefined) return undefined;
    return { privateKey: '', certificate: stored.record.certificate, ca: this.#issuer.root };
  }
}

function mustBeDue(renewals: readonly number[], now: number): void {
  const next = nextRenewalAt(renewals, now);
  if (next <= now) return;
  const problem = `one certificate a minute and ten a day: the next one at ${formatInstant(next)}, in ${roughly(next - now)}`;
  throw new AgentError('certificate.too_many', { problem });
}

/** For logs: never the secret. */
function tokenIdOf(token: string): string {
  return /^[0-9a-f]{12}(?=\.)/.exec(token.trim())?.[0] ?? '-';
}

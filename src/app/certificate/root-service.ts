import { SERIAL_BYTES, serialOf } from '../../domain/certificate/names.js';
import {
  certificateKey,
  certificatePrefix,
  encodeRecord,
  type Issuer,
  type IssuerRecord,
  issuerKey,
  nodePrefix,
} from '../../domain/certificate/records.js';
import { type Revocations, revocationOf } from '../../domain/certificate/revocation.js';
import { decodeCertificate, decodeIssuer, decodeNode } from '../../domain/certificate/schema.js';
import { validityOf } from '../../domain/certificate/validity.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { AuthorityMaker, RootFacts } from '../../ports/certificate/authority-maker.js';
import type { Clock } from '../../ports/clock.js';
import { type RootName, type RootStatus, type Roots, type RootUser, rootNames } from '../../ports/driving/roots.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import type { Sealer } from '../../ports/store/sealer.js';
import { commonNames } from './control-plane-identity.js';
import { writeRevocation } from './record-store.js';

export interface RootServiceConfig {
  readonly store: ControlStore;
  readonly sealer: Sealer;
  readonly maker: AuthorityMaker;
  readonly revocations: Revocations;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
}

const issuerOf: Readonly<Record<RootName, Extract<Issuer, 'l1' | 'l2'>>> = { registration: 'l1', nodes: 'l2' };
/** Of one commit. */
const BATCH = 50;
/** Named in a refusal; `holdfast ca list` has them all. */
const NAMED = 20;

/** Each step is one commit of one record, so that a crash leaves the state before it or after it (engine.md F1). */
export class RootService implements Roots {
  readonly #config: RootServiceConfig;

  constructor(config: RootServiceConfig) {
    this.#config = config;
  }

  async list(options: CallOptions): Promise<readonly RootStatus[]> {
    return Promise.all(rootNames.map(async (name) => this.#statusOf(name, (await this.#read(name, options)).record, options)));
  }

  async rotate(name: RootName, options: CallOptions): Promise<RootStatus> {
    const { clock, maker, randomBytes } = this.#config;
    const { record: old, version } = await this.#read(name, options);
    if (old.former !== undefined) {
      const problem = `the root of ${name} before the present one is not retired yet`;
      throw new AgentError('certificate.root_rotating', { problem });
    }
    const now = clock.now();
    const serial = () => serialOf(randomBytes(SERIAL_BYTES));
    const own = serial();
    // A name of its own: who has both tells by it which one has signed.
    const commonName = `${commonNames[issuerOf[name]]} ${own.slice(0, 8)}`;
    const made = await maker.makeRoot({ commonName, serial: own, ...validityOf('root', now) }, options);
    const cross = await maker.crossSign(made.certificate, old, { serial: serial(), ...validityOf('root', now) }, options);
    const record: IssuerRecord = { ...made, former: { certificate: old.certificate, cross, replacedAt: now } };
    await this.#write(name, record, version, options);
    return this.#statusOf(name, record, options);
  }

  async retire(name: RootName, force: boolean, options: CallOptions) {
    const { record, version } = await this.#read(name, options);
    const { former, ...current } = record;
    if (former === undefined) throw new AgentError('certificate.no_former_root', { problem: `${name} has one root only` });
    const revoked = await this.#usersOf(name, former.certificate, options);
    if (revoked.length > 0 && !force) throw inUse(name, revoked);
    await this.#revoke(revoked, options);
    await this.#write(name, current, version, options);
    return { retired: this.#config.maker.rootFacts(former.certificate), revoked };
  }

  async #read(name: RootName, options: CallOptions): Promise<{ readonly record: IssuerRecord; readonly version: bigint }> {
    const { sealer, store } = this.#config;
    const key = issuerKey(issuerOf[name]);
    const stored = await store.get(key, options);
    if (stored === undefined) throw new AgentError('store.malformed', { problem: `${key} is not there` });
    return { record: decodeIssuer(key, sealer.open(key, stored.value)), version: stored.version };
  }

  async #write(name: RootName, record: IssuerRecord, version: bigint, options: CallOptions): Promise<void> {
    const key = issuerKey(issuerOf[name]);
    const write = { key, value: this.#config.sealer.seal(key, encodeRecord(record)) };
    if ((await this.#config.store.commit([{ key, version }], [write], options)) !== undefined) return;
    throw new AgentError('store.unavailable', { problem: `somebody else has changed the root of ${name} at the same time` });
  }

  async #statusOf(name: RootName, { certificate, former }: IssuerRecord, options: CallOptions): Promise<RootStatus> {
    const { maker } = this.#config;
    const current: RootFacts = maker.rootFacts(certificate);
    if (former === undefined) return { name, current, former: undefined };
    const inUse = await this.#usersOf(name, former.certificate, options);
    return { name, current, former: { ...maker.rootFacts(former.certificate), replacedAt: former.replacedAt, inUse } };
  }

  /**
   * Nodes whose present certificate is of this root, and is let in. The one before it, good for 5 min after the first use of the next
   * (engine.md F5), is nobody's need. Sorted by node.
   */
  async #usersOf(name: RootName, root: string, options: CallOptions): Promise<readonly RootUser[]> {
    if (name === 'registration') return [];
    const { clock, maker, revocations, store } = this.#config;
    const [nodes, stored] = await Promise.all([store.list(nodePrefix, options), store.list(certificatePrefix, options)]);
    const certificates = new Map(stored.map(({ key, value }) => [key, value]));
    const now = clock.now();
    const users = nodes.flatMap(({ key, value }) => {
      const { aid, nid, registration, current } = decodeNode(key, value);
      const { serial, notAfter } = current;
      const identity = { role: 'node', aid, nid, registration } as const;
      if (notAfter < now || revocationOf({ identity, serial }, revocations, now) !== undefined) return [];
      const text = certificates.get(certificateKey(serial));
      if (text === undefined) return [];
      const { certificate } = decodeCertificate(certificateKey(serial), text);
      return maker.isIssuedBy(certificate, root) ? [{ nid, serial, notAfter }] : [];
    });
    return users.sort((a, b) => (a.nid < b.nid ? -1 : 1));
  }

  async #revoke(users: readonly RootUser[], options: CallOptions): Promise<void> {
    const from = this.#config.clock.now();
    const writes = users.map(({ serial, notAfter }) =>
      writeRevocation({ of: 'serial', id: serial, from, kind: 'revoked', reason: 'its root was retired', until: notAfter }),
    );
    for (let at = 0; at < writes.length; at += BATCH) await this.#config.store.commit([], writes.slice(at, at + BATCH), options);
  }
}

function inUse(name: RootName, users: readonly RootUser[]): AgentError {
  const nodes = [...new Set(users.map(({ nid }) => nid))];
  const named = nodes.slice(0, NAMED).join(', ');
  const more = nodes.length > NAMED ? ` and ${nodes.length - NAMED} more` : '';
  const problem = `valid certificates of the former root of ${name} are those of ${nodes.length} nodes: ${named}${more}`;
  return new AgentError('certificate.root_in_use', { problem });
}

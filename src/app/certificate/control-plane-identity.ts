import { SERIAL_BYTES, serialOf } from '../../domain/certificate/names.js';
import { encodeRecord, type Issuer, type IssuerRecord, issuerKey } from '../../domain/certificate/records.js';
import { decodeIssuer } from '../../domain/certificate/schema.js';
import { validityOf } from '../../domain/certificate/validity.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { AuthorityMaker } from '../../ports/certificate/authority-maker.js';
import type { Clock } from '../../ports/clock.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import type { Sealer } from '../../ports/store/sealer.js';
import { IssuerAuthority } from './issuer-authority.js';

export interface ControlPlaneIdentityConfig {
  readonly store: ControlStore;
  readonly sealer: Sealer;
  readonly maker: AuthorityMaker;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** One for each trust: a server of one port is none at another, and no node is an admin. */
export type Authorities = Readonly<Record<Issuer, IssuerAuthority>>;

export const commonNames: Readonly<Record<Issuer, string>> = {
  l1: 'Holdfast registration root',
  l2: 'Holdfast node root',
  admin: 'Holdfast admin root',
};

/** The control plane's own authorities: made once, the same for all replicas, their keys sealed in the store. */
export class ControlPlaneIdentity {
  readonly #config: ControlPlaneIdentityConfig;

  constructor(config: ControlPlaneIdentityConfig) {
    this.#config = config;
  }

  /** Safe on several replicas at once. @throws AgentError `certificate.failed`, `store.key_wrong`, `store.seal_broken`, `store.unavailable` */
  async open(options: CallOptions): Promise<Authorities> {
    const { maker } = this.#config;
    const [l1, l2, admin] = await Promise.all([
      this.#issuer('l1', options),
      this.#issuer('l2', options),
      this.#issuer('admin', options),
    ]);
    return {
      l1: new IssuerAuthority(l1, await maker.open(l1, options)),
      l2: new IssuerAuthority(l2, await maker.open(l2, options)),
      admin: new IssuerAuthority(admin, await maker.open(admin, options)),
    };
  }

  async #issuer(issuer: Issuer, options: CallOptions): Promise<IssuerRecord> {
    const { clock, maker, randomBytes, sealer, store } = this.#config;
    const found = await this.#stored(issuer, options);
    if (found !== undefined) return found;
    const serial = serialOf(randomBytes(SERIAL_BYTES));
    const made = await maker.makeRoot({ commonName: commonNames[issuer], serial, ...validityOf('root', clock.now()) }, options);
    const key = issuerKey(issuer);
    const write = { key, value: sealer.seal(key, encodeRecord(made)) };
    if ((await store.commit([{ key, version: 0n }], [write], options)) !== undefined) return made;
    const other = await this.#stored(issuer, options);
    if (other === undefined) throw new AgentError('store.unavailable', { problem: `${key} comes and goes` });
    return other;
  }

  async #stored(issuer: Issuer, options: CallOptions): Promise<IssuerRecord | undefined> {
    const key = issuerKey(issuer);
    const stored = await this.#config.store.get(key, options);
    return stored === undefined ? undefined : decodeIssuer(key, this.#config.sealer.open(key, stored.value));
  }
}

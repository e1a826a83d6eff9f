import {
  type AdminRecord,
  adminKey,
  type CertificateRecord,
  certificateKey,
  encodeRecord,
  type NodeRecord,
  nodeKey,
  revocationKey,
  tokenKey,
} from '../../domain/certificate/records.js';
import type { Revocation } from '../../domain/certificate/revocation.js';
import { decodeAdmin, decodeCertificate, decodeNode, decodeToken } from '../../domain/certificate/schema.js';
import type { TokenRecord } from '../../domain/certificate/token.js';
import type { Nid } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ControlStore, Write } from '../../ports/store/control-store.js';

/** A record as it stood in the store at `version`. */
export interface Stored<T> {
  readonly record: T;
  readonly version: bigint;
}

/** Enrolment's records in the control plane's store. */
export class RecordStore {
  readonly #store: ControlStore;

  constructor(store: ControlStore) {
    this.#store = store;
  }

  node(nid: Nid, options: CallOptions): Promise<Stored<NodeRecord> | undefined> {
    return this.#read(nodeKey(nid), decodeNode, options);
  }

  token(id: string, options: CallOptions): Promise<Stored<TokenRecord> | undefined> {
    return this.#read(tokenKey(id), decodeToken, options);
  }

  certificate(serial: string, options: CallOptions): Promise<Stored<CertificateRecord> | undefined> {
    return this.#read(certificateKey(serial), decodeCertificate, options);
  }

  admin(serial: string, options: CallOptions): Promise<Stored<AdminRecord> | undefined> {
    return this.#read(adminKey(serial), decodeAdmin, options);
  }

  async #read<T>(key: string, decode: (key: string, text: string) => T, options: CallOptions): Promise<Stored<T> | undefined> {
    const stored = await this.#store.get(key, options);
    return stored === undefined ? undefined : { record: decode(key, stored.value), version: stored.version };
  }
}

export const writeNode = (record: NodeRecord): Write => ({ key: nodeKey(record.nid), value: encodeRecord(record) });
export const writeToken = (record: TokenRecord): Write => ({ key: tokenKey(record.id), value: encodeRecord(record) });
export const writeCertificate = (record: CertificateRecord): Write => ({
  key: certificateKey(record.serial),
  value: encodeRecord(record),
});
export const writeAdmin = (record: AdminRecord): Write => ({ key: adminKey(record.serial), value: encodeRecord(record) });
export const writeRevocation = (revocation: Revocation): Write => ({
  key: revocationKey(revocation.of, revocation.id),
  value: encodeRecord(revocation),
});

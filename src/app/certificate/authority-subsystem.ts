import { type Issuer, type IssuerRecord, issuerKey, issuerPrefix, issuers } from '../../domain/certificate/records.js';
import { decodeIssuer } from '../../domain/certificate/schema.js';
import type { AuthorityMaker } from '../../ports/certificate/authority-maker.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import type { Sealer } from '../../ports/store/sealer.js';
import type { Subsystem } from '../agent/subsystem.js';
import type { Authorities } from './control-plane-identity.js';
import { WatchedMap } from './watched-map.js';

export interface AuthoritySubsystemConfig {
  readonly store: ControlStore;
  readonly sealer: Sealer;
  readonly maker: AuthorityMaker;
  readonly authorities: Authorities;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From 0 up to, not with, 1. */
  readonly random: () => number;
  /** Certificates of this issuer are judged and made otherwise from now on. */
  readonly onReplaced: (issuer: Issuer) => void;
}

/** Keeps this replica's authorities those of the store: a new root counts at all of them within a second (engine.md F1). */
export class AuthoritySubsystem implements Subsystem {
  readonly name = 'authorities';
  readonly #config: AuthoritySubsystemConfig;
  readonly #records: WatchedMap<IssuerRecord>;
  readonly #stopper = new AbortController();
  #following: Promise<void> = Promise.resolve();
  /** One after the other, in the order of the store. */
  #replacing: Promise<void> = Promise.resolve();

  constructor(config: AuthoritySubsystemConfig) {
    this.#config = config;
    this.#records = new WatchedMap({
      ...config,
      prefix: issuerPrefix,
      decode: (key, text) => decodeIssuer(key, config.sealer.open(key, text)),
      changed: (key, record) => this.#changed(key, record),
    });
  }

  async start(): Promise<void> {
    this.#following = this.#records.follow(this.#stopper.signal);
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    this.#stopper.abort();
    await Promise.all([this.#following, this.#replacing]);
  }

  #changed(key: string, record: IssuerRecord | undefined): void {
    const issuer = issuers.find((each) => issuerKey(each) === key);
    // One that is gone is as bad as a store that is gone: what is known stands.
    if (issuer === undefined || record === undefined) return;
    this.#replacing = this.#replacing.then(() => this.#replace(issuer, record));
  }

  async #replace(issuer: Issuer, record: IssuerRecord): Promise<void> {
    const { authorities, logger, maker, onReplaced } = this.#config;
    const authority = authorities[issuer];
    if (JSON.stringify(authority.record) === JSON.stringify(record)) return;
    try {
      authority.replace(record, await maker.open(record, this.#stopper));
      logger.info(`the root of ${issuer} is another, or its former one was retired`, {
        serial: maker.rootFacts(record.certificate).serial,
      });
      onReplaced(issuer);
    } catch (error) {
      if (!this.#stopper.signal.aborted)
        logger.error(`the new root of ${issuer} cannot be used; the former one stands`, { error });
    }
  }
}

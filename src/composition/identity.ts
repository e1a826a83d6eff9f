import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { FileIdentityStore } from '../adapters/identity/file-identity-store.js';
import type { Config } from '../domain/config/model.js';
import type { Identity } from '../domain/identity/model.js';
import { identityDrift, mintIdentity } from '../domain/identity/plan.js';
import type { Paths } from '../domain/kernel/paths.js';
import type { CallOptions } from '../ports/call-options.js';
import type { Logger } from '../ports/logger.js';

/** The identity that this node has, or the one that it gets now and keeps. */
export async function loadIdentity(paths: Paths, config: Config, logger: Logger, options: CallOptions): Promise<Identity> {
  const store = new FileIdentityStore(paths.identity);
  const existing = await store.load(options);
  if (existing === undefined) {
    const facts = { explicitName: config.nodeName, hostname: hostname(), labels: config.labels, randomBytes: randomBytes(8) };
    return store.create(mintIdentity(facts), options);
  }
  for (const warning of identityDrift(existing, config)) logger.warn(warning);
  return existing;
}

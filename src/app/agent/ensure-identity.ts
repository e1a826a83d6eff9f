import type { Identity } from '../../domain/identity/model.js';
import { type MintFacts, mintIdentity } from '../../domain/identity/plan.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { IdentityStore } from '../../ports/identity/identity-store.js';

/**
 * The node's identity as it is; one that has none gets one.
 * @throws AgentError `identity.malformed`, `identity.unreadable`, `identity.invalid_name`, `identity.not_written`
 */
export async function ensureIdentity(store: IdentityStore, facts: MintFacts, options: CallOptions): Promise<Identity> {
  return (await store.load(options)) ?? (await store.create(mintIdentity(facts), options));
}

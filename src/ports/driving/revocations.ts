import type { Revocation } from '../../domain/certificate/revocation.js';

/** Which certificates are refused, as far as this replica knows: the last known set while the store is out of reach. */
export interface RevocationFeed {
  /**
   * Calls `listener`, synchronously, for each revocation of kind `revoked` that this replica learns of from now on; what matches it by
   * `concerns` is to be ended within 1 s. Returns what ends it.
   */
  onRevoked(listener: (revocation: Revocation) => void): () => void;
}

import { adminPrefix, certificatePrefix, revocationPrefix, tokenPrefix } from '../../domain/certificate/records.js';
import { decodeAdmin, decodeCertificate, decodeRevocation, decodeToken } from '../../domain/certificate/schema.js';
import { TOKEN_KEPT_MS } from '../../domain/certificate/token.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ControlStore, StoredValue } from '../../ports/store/control-store.js';

/** A clock that is a day ahead must not make a revocation be forgotten while it still refuses something. */
const MARGIN_MS = 24 * 60 * 60_000;
/** Of one commit. */
const BATCH = 50;

/**
 * Removes what means nothing any more: tokens a week after their end, certificates and revocations a day after theirs. Each only if it
 * has not changed meanwhile. Returns how many. @param now wall clock, milliseconds @throws AgentError `store.unavailable`
 */
export async function sweepEnrolment(store: ControlStore, now: number, options: CallOptions): Promise<number> {
  const ended = [
    ...(await endedBelow(store, tokenPrefix, (key, text) => decodeToken(key, text).expires + TOKEN_KEPT_MS, now, options)),
    ...(await endedBelow(
      store,
      certificatePrefix,
      (key, text) => decodeCertificate(key, text).notAfter + MARGIN_MS,
      now,
      options,
    )),
    ...(await endedBelow(store, adminPrefix, (key, text) => decodeAdmin(key, text).notAfter + MARGIN_MS, now, options)),
    ...(await endedBelow(store, revocationPrefix, (key, text) => decodeRevocation(key, text).until + MARGIN_MS, now, options)),
  ];
  let removed = 0;
  for (let at = 0; at < ended.length; at += BATCH) {
    const batch = ended.slice(at, at + BATCH);
    const conditions = batch.map(({ key, version }) => ({ key, version }));
    const writes = batch.map(({ key }) => ({ key, value: null }));
    if ((await store.commit(conditions, writes, options)) !== undefined) removed += batch.length;
  }
  return removed;
}

async function endedBelow(
  store: ControlStore,
  prefix: string,
  endOf: (key: string, text: string) => number,
  now: number,
  options: CallOptions,
): Promise<readonly StoredValue[]> {
  const all = await store.list(prefix, options);
  return all.filter(({ key, value }) => {
    try {
      return endOf(key, value) < now;
    } catch {
      // A newer version's: it is for that to remove.
      return false;
    }
  });
}

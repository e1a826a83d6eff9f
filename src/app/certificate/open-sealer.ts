import { SEAL_CHECK_KEY } from '../../domain/certificate/records.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ControlStore, StoredValue } from '../../ports/store/control-store.js';
import type { Sealer, SealerKeys } from '../../ports/store/sealer.js';

/** Sealed under its own name; that it opens is all that it says. */
const CHECK = 'holdfast';

/**
 * The keys, if they are those of the store: another replica's file, an older one or none must not begin to write what the others cannot
 * read. The first key is made only for a store that has never been sealed. When the newest key is a new one the record is sealed anew,
 * so that a replica without that key is refused from then on.
 * @throws AgentError `store.key_missing`, `store.key_wrong`, `store.key_unreadable`, `store.unavailable`
 */
export async function openSealer(store: ControlStore, keys: SealerKeys, options: CallOptions): Promise<Sealer> {
  const sealer = await keys.load(options);
  const check = await store.get(SEAL_CHECK_KEY, options);
  if (check === undefined) return begin(store, sealer ?? (await keys.create(options)), options);
  if (sealer === undefined) {
    throw new AgentError('store.key_missing', { problem: 'this control plane is sealed with a key that is not here' });
  }
  const keyId = verify(sealer, check);
  if (keyId !== sealer.keyId) await writeCheck(store, sealer, check.version, options);
  return sealer;
}

async function begin(store: ControlStore, sealer: Sealer, options: CallOptions): Promise<Sealer> {
  if (await writeCheck(store, sealer, 0n, options)) return sealer;
  // Another replica has begun at the same time: with the same file, or this one is refused.
  const check = await store.get(SEAL_CHECK_KEY, options);
  if (check === undefined) throw new AgentError('store.unavailable', { problem: `${SEAL_CHECK_KEY} comes and goes` });
  verify(sealer, check);
  return sealer;
}

/** @returns the id of the key that it is sealed with */
function verify(sealer: Sealer, { value }: StoredValue): string {
  let text: string;
  const [keyId = '', sealed = ''] = value.split(' ');
  try {
    text = sealer.open(SEAL_CHECK_KEY, sealed);
  } catch (cause) {
    throw new AgentError(
      'store.key_wrong',
      { problem: 'the key file is not the one that this control plane is sealed with' },
      { cause },
    );
  }
  if (text !== CHECK) throw new AgentError('store.key_wrong', { problem: `${SEAL_CHECK_KEY} says something else` });
  return keyId;
}

async function writeCheck(store: ControlStore, sealer: Sealer, version: bigint, options: CallOptions): Promise<boolean> {
  const value = `${sealer.keyId} ${sealer.seal(SEAL_CHECK_KEY, CHECK)}`;
  const written = await store.commit([{ key: SEAL_CHECK_KEY, version }], [{ key: SEAL_CHECK_KEY, value }], options);
  return written !== undefined;
}

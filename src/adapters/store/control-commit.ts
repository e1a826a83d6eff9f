import { AgentError } from '../../domain/kernel/errors.js';
import {
  type Condition,
  MAX_COMMIT_BYTES,
  MAX_OPERATIONS,
  type StoreChange,
  type Write,
} from '../../ports/store/control-store.js';

/**
 * What every store refuses before it does anything, so that what runs on the embedded one runs on etcd.
 * @throws AgentError `store.too_large`; RangeError for a key or a value that no store takes, and for a key that is written twice
 */
export function checkCommit(conditions: readonly Condition[], writes: readonly Write[]): void {
  const operations = conditions.length + writes.length;
  if (operations > MAX_OPERATIONS) throw new AgentError('store.too_large', { problem: `${operations} conditions and writes` });
  for (const { key } of conditions) checkKey(key);
  const written = new Set<string>();
  let bytes = 0;
  for (const { key, value } of writes) {
    checkKey(key);
    if (written.has(key)) throw new RangeError(`written twice: ${key}`);
    if (value?.isWellFormed() === false) throw new RangeError(`not well-formed: the value of ${key}`);
    written.add(key);
    bytes += key.length + (value === null ? 0 : Buffer.byteLength(value));
  }
  if (bytes > MAX_COMMIT_BYTES) throw new AgentError('store.too_large', { problem: `${bytes} bytes of keys and values` });
}

/** @throws RangeError when it is not segments of printable ASCII, separated by `/`. */
function checkKey(key: string): void {
  if (!/^[\x20-\x2e\x30-\x7e]+(?:\/[\x20-\x2e\x30-\x7e]+)*$/.test(key)) throw new RangeError(`not a key: ${JSON.stringify(key)}`);
}

/** What watchers are told of a commit: a removed key that was not there is no change. */
export function changesOf(writes: readonly Write[], version: bigint, isThere: (key: string) => boolean): readonly StoreChange[] {
  return writes.flatMap(({ key, value }) =>
    value !== null || isThere(key) ? [{ key, value: value ?? undefined, version }] : [],
  );
}

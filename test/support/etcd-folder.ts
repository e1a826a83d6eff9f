import { mkdtemp, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Three members preallocate 400 MB. */
const LEAST_BYTES = 2 * 1024 ** 3;
const MEMORY = '/dev/shm';

/**
 * Where the etcd of a test has its data: in memory where there is room. What kill -9 leaves is the same there, and the seconds that a sync
 * takes on a disk with other work are not seconds without a leader. Whoever asks removes it.
 */
export async function etcdFolder(): Promise<string> {
  const memory = await statfs(MEMORY).catch(() => undefined);
  const hasRoom = memory !== undefined && memory.bavail * memory.bsize >= LEAST_BYTES;
  return mkdtemp(join(hasRoom ? MEMORY : tmpdir(), 'holdfast-etcd-'));
}

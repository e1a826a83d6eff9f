import { AgentError } from '../../domain/kernel/errors.js';
import type { Backups } from '../../ports/driving/backups.js';

/** What stands in an etcd is archived by its own means, for all replicas at once. */
export class EtcdBackups implements Backups {
  // biome-ignore lint/correctness/useYield: it refuses before the first piece, as the others do
  async *take(): AsyncIterable<Uint8Array> {
    throw new AgentError('backup.not_offered', { problem: 'the state of this control plane is in an etcd' });
  }
}

import { AgentError } from '../../domain/kernel/errors.js';
import type { Paths } from '../../domain/kernel/paths.js';
import { errnoOf } from '../files/errno.js';
import type { Addon } from './addon.js';

/**
 * Holds the data directory until this process ends, however it ends (flock(2)), and those to which the descriptor is given.
 * @throws AgentError `agent.data_dir_locked` when another daemon has it
 */
export function lockDataDir(addon: Addon, { dataDir, lock }: Paths): number {
  try {
    return addon.lockFile(lock);
  } catch (error) {
    if (errnoOf(error) !== 'EWOULDBLOCK') throw error;
    throw new AgentError('agent.data_dir_locked', { problem: `another daemon runs on ${dataDir}` }, { cause: error });
  }
}

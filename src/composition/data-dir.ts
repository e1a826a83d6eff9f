import { access, constants, stat } from 'node:fs/promises';
import type { Addon } from '../adapters/dataplane/addon.js';
import { lockDataDir } from '../adapters/dataplane/data-dir-lock.js';
import { ensureFolder } from '../adapters/files/durable-file.js';
import { errnoOf } from '../adapters/files/errno.js';
import { AgentError } from '../domain/kernel/errors.js';
import type { Paths } from '../domain/kernel/paths.js';

/**
 * Whether what stands there can be a data directory; nothing at all can. Makes nothing: a wrong configuration is told before.
 * @throws AgentError `agent.data_dir_unusable`
 */
export async function checkDataDir({ dataDir }: Paths): Promise<void> {
  try {
    if (!(await stat(dataDir)).isDirectory()) throw unusable(dataDir, 'it is no folder');
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw translated(dataDir, 'cannot be used', error);
  }
}

/** Makes the data directory when it is missing. @throws AgentError `agent.data_dir_unusable` */
export async function makeDataDir({ dataDir }: Paths): Promise<void> {
  try {
    await ensureFolder(dataDir);
  } catch (error) {
    throw translated(dataDir, 'cannot be made', error);
  }
}

/** Holds it until this process ends. @throws AgentError `agent.data_dir_locked`, `agent.data_dir_unusable` */
export function holdDataDir(addon: Addon, paths: Paths): number {
  try {
    return lockDataDir(addon, paths);
  } catch (error) {
    throw translated(paths.dataDir, 'cannot be used', error);
  }
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  ENOENT: 'there is a part of the path where nobody can make a folder',
  ENOTDIR: 'a part of the path is no folder',
  EEXIST: 'a part of the path is a link that leads nowhere',
  ELOOP: 'a part of the path is a link to itself',
  ENAMETOOLONG: 'the path is too long',
  EROFS: 'the file system can only be read',
  ENOSPC: 'the file system is full',
};

function translated(dataDir: string, what: string, error: unknown): AgentError {
  if (error instanceof AgentError) return error;
  const code = errnoOf(error);
  const reason = code === undefined ? String(error) : `${reasons[code] ?? 'the system refuses'} (${code})`;
  return unusable(dataDir, `${what}: ${reason}`, error);
}

function unusable(dataDir: string, problem: string, cause?: unknown): AgentError {
  return new AgentError('agent.data_dir_unusable', { problem: `the data directory ${dataDir}: ${problem}` }, { cause });
}

import { randomBytes } from 'node:crypto';
import { link, lstat, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { CallOptions } from '../../ports/call-options.js';
import { errnoOf } from './errno.js';

/**
 * A temporary file that is older belongs to a writer that died: writing takes milliseconds. A process id would not tell, as in a
 * container every writer has the same.
 */
const staleAfterMs = 60_000;

export interface WriteOptions extends CallOptions {
  /** 0600 unless given. */
  readonly mode?: number;
}

/**
 * Puts `data` at `path`, whatever stood there. Durable when it resolves; on abort, failure or a crash the old or the new content is
 * there, whole. The folder must exist. Errors are those of the system calls.
 */
export async function replaceFile(path: string, data: string | Uint8Array, options: WriteOptions): Promise<void> {
  await throughTemporary(path, data, options, (temporary) => rename(temporary, path));
}

/**
 * Puts `data` at `path` unless something stands there, and says whether it did. Of several callers at once one does. Otherwise like
 * `replaceFile`. When it resolves with `false`, what stands there is durable as well.
 */
export async function createFile(path: string, data: string | Uint8Array, options: WriteOptions): Promise<boolean> {
  return throughTemporary(path, data, options, async (temporary) => {
    try {
      await link(temporary, path);
      return true;
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') return false;
      if (!withoutLinks.has(errnoOf(error) ?? '')) throw error;
    }
    // The best that such a file system has: the lock of the data directory keeps a second starter away.
    if (await exists(path)) return false;
    await rename(temporary, path);
    return true;
  });
}

/**
 * Makes `path` and what is missing above it, private to this user, so that it survives a crash. One step after the other: Node's
 * recursive mkdir spins for ever where the kernel says ENOENT of a folder that is there, as in /proc.
 * @throws Error with the code of the system call that failed, ENOTDIR when something else stands in the way
 */
export async function ensureFolder(path: string): Promise<void> {
  const missing: string[] = [];
  for (let at = path; !(await isFolder(at)); at = dirname(at)) missing.push(at);
  for (const folder of missing.reverse()) {
    try {
      await mkdir(folder, { mode: 0o700 });
    } catch (error) {
      // Somebody else was quicker, or a link that leads nowhere stands there.
      if (errnoOf(error) !== 'EEXIST' || !(await isFolder(folder))) throw error;
    }
    await syncFolder(dirname(folder));
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
  throw Object.assign(new Error(`ENOTDIR: not a directory, '${path}'`), { code: 'ENOTDIR' });
}

/** File systems without hard links (FAT, some network ones) say one of these. */
const withoutLinks: ReadonlySet<string> = new Set(['EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'ENOSYS', 'EMLINK']);

async function throughTemporary<T>(
  path: string,
  data: string | Uint8Array,
  { mode = 0o600, signal }: WriteOptions,
  place: (temporary: string) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  await removeStale(path);
  const temporary = temporaryFor(path);
  try {
    await writeSynced(temporary, data, mode);
    signal.throwIfAborted();
    const result = await place(temporary);
    await syncFolder(dirname(path));
    return result;
  } finally {
    await unlink(temporary).catch(() => {});
  }
}

/** A name beside `path` for what is to be renamed to it; `removeStale` knows it. */
export function temporaryFor(path: string): string {
  return join(dirname(path), `${prefixOf(path)}${randomBytes(8).toString('hex')}${suffix}`);
}

/** A file that must not be there yet; durable except for its name, which the folder's sync makes so. */
export async function writeSynced(path: string, data: string | Uint8Array, mode: number): Promise<void> {
  const file = await open(path, 'wx', mode);
  try {
    // The umask may have taken bits away.
    await file.chmod(mode);
    await file.writeFile(data);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Names that were made, changed or removed in it are durable when it resolves. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

const suffix = '.tmp';

function prefixOf(path: string): string {
  return `.${basename(path)}.`;
}

/** Files of dead writers of `path`. Failing to is no reason not to write. */
export async function removeStale(path: string): Promise<void> {
  const names = await readdir(dirname(path)).catch(() => []);
  for (const name of names) {
    const isOurs = name.startsWith(prefixOf(path)) && /^[0-9a-f]{16}\.tmp$/.test(name.slice(prefixOf(path).length));
    if (!isOurs) continue;
    const temporary = join(dirname(path), name);
    const age = await stat(temporary).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    );
    if (age > staleAfterMs) await unlink(temporary).catch(() => {});
  }
}

/** Whether a name is there, if only of a link that leads nowhere. */
export async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}

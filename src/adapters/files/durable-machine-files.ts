import { rename, rmdir, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { MachineFiles, NewFile } from '../../ports/files/machine-files.js';
import { ensureFolder, removeStale, syncFolder, temporaryFor, writeSynced } from './durable-file.js';
import { errnoOf } from './errno.js';
import { readTextFile } from './text-file.js';

const MAX_BYTES = 1024 * 1024;

export class DurableMachineFiles implements MachineFiles {
  async read(path: AbsolutePath, options: CallOptions): Promise<string | undefined> {
    const file = await readTextFile(path, MAX_BYTES, options);
    if (file.found === 'unusable') throw new AgentError('adoption.file_failed', { problem: `${path} ${file.problem}` });
    return file.found === 'text' ? file.text : undefined;
  }

  async replace(files: readonly NewFile[], { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    const waiting: { readonly temporary: string; readonly path: string }[] = [];
    try {
      for (const { path, text, mode } of files) {
        await translated(path, async () => {
          await ensureFolder(dirname(path));
          await removeStale(path);
          const temporary = temporaryFor(path);
          waiting.push({ temporary, path });
          await writeSynced(temporary, text, mode);
        });
      }
      // From here on it is quick, and better done than left half.
      signal.throwIfAborted();
      for (const { temporary, path } of waiting) await translated(path, () => rename(temporary, path));
      for (const folder of new Set(files.map(({ path }) => dirname(path)))) await translated(folder, () => syncFolder(folder));
    } finally {
      for (const { temporary } of waiting) await unlink(temporary).catch(() => {});
    }
  }

  async remove(path: AbsolutePath, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    await translated(path, async () => {
      await unlink(path).catch(unless('ENOENT'));
      await syncFolder(dirname(path)).catch(unless('ENOENT'));
    });
  }

  async removeEmptyFolder(path: AbsolutePath, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    await translated(path, () => rmdir(path).catch(unless('ENOENT', 'ENOTEMPTY', 'EEXIST')));
  }
}

/** Those codes are no failure. */
function unless(...codes: readonly string[]): (error: unknown) => void {
  return (error) => {
    if (!codes.includes(errnoOf(error) ?? '')) throw error;
  };
}

async function translated(path: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    const code = errnoOf(cause);
    throw new AgentError('adoption.file_failed', { problem: `${path} cannot be changed: ${code ?? String(cause)}` }, { cause });
  }
}

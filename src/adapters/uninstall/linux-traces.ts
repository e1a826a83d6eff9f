import { lstat, readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Traces } from '../../ports/uninstall/traces.js';
import { errnoOf } from '../files/errno.js';

export class LinuxTraces implements Traces {
  readonly #mountInfo: string;

  /** @param mountInfo as proc_pid_mountinfo(5) writes it */
  constructor(mountInfo = '/proc/self/mountinfo') {
    this.#mountInfo = mountInfo;
  }

  async entries(folder: AbsolutePath, { signal }: CallOptions): Promise<readonly string[]> {
    signal.throwIfAborted();
    try {
      return (await lstat(folder)).isDirectory() ? await readdir(folder) : [];
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return [];
      throw notRemoved(folder, error);
    }
  }

  async remove(path: AbsolutePath, options: CallOptions): Promise<void> {
    const mounts = [...(await this.mountsBelow(path, options)), ...(await this.#mountsAt(path))];
    if (mounts.length > 0)
      throw new AgentError('uninstall.not_removed', { problem: `${path} stays: ${mounts.join(', ')} is mounted in it` });
    await rm(path, { recursive: true, force: true }).catch((error: unknown) => {
      throw notRemoved(path, error);
    });
  }

  async removeEmptyFolder(path: AbsolutePath, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    await rmdir(path).catch((error: unknown) => {
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EBUSY'].includes(errnoOf(error) ?? '')) throw notRemoved(path, error);
    });
  }

  async mountsBelow(path: AbsolutePath, { signal }: CallOptions): Promise<readonly AbsolutePath[]> {
    signal.throwIfAborted();
    const below = (await this.#mountPoints()).filter((point) => point.startsWith(`${path}/`));
    return below.toSorted((a, b) => b.split('/').length - a.split('/').length);
  }

  async #mountsAt(path: AbsolutePath): Promise<readonly AbsolutePath[]> {
    return (await this.#mountPoints()).filter((point) => point === path);
  }

  /** One a line, and once more where one lies on another. */
  async #mountPoints(): Promise<readonly AbsolutePath[]> {
    try {
      const text = await readFile(this.#mountInfo, 'utf8');
      return text.split('\n').flatMap((line) => {
        const field = line.split(' ')[4];
        return field === undefined ? [] : [unescaped(field) as AbsolutePath];
      });
    } catch (error) {
      throw notRemoved(this.#mountInfo, error);
    }
  }
}

/** Space, tab, line break and backslash stand there as `\040`. */
function unescaped(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

function notRemoved(path: string, cause: unknown): AgentError {
  return new AgentError('uninstall.not_removed', { problem: `${path}: ${errnoOf(cause) ?? String(cause)}` }, { cause });
}

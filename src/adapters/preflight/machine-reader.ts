import { readdir, readFile, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type AbsolutePath, under } from '../../domain/kernel/paths.js';
import type { Filesystem } from '../../domain/preflight/model.js';

/** modules.builtin of a distribution has 100 KiB; tables of sockets of a busy machine some MiB. */
const MAX_BYTES = 16 * 1024 * 1024;

/** The files of a machine below a root. What is not there, or cannot be read, is undefined. */
export class MachineReader {
  readonly #root: AbsolutePath;

  constructor(root: AbsolutePath) {
    this.#root = root;
  }

  at(path: string): AbsolutePath {
    return under(this.#root, path as AbsolutePath);
  }

  /** Not for what may be a FIFO: the kernel's files, and those of /etc. */
  async text(path: string): Promise<string | undefined> {
    const facts = await stat(this.at(path)).catch(() => undefined);
    if (facts === undefined || !facts.isFile() || facts.size > MAX_BYTES) return undefined;
    return readFile(this.at(path), 'utf8').catch(() => undefined);
  }

  async trimmed(path: string): Promise<string | undefined> {
    return (await this.text(path))?.trim();
  }

  has(path: string): Promise<boolean> {
    return stat(this.at(path)).then(
      () => true,
      () => false,
    );
  }

  async those(paths: readonly string[]): Promise<readonly string[]> {
    const found = await Promise.all(paths.map(async (path) => ((await this.has(path)) ? [path] : [])));
    return found.flat();
  }

  /** Names in a folder. */
  names(path: string): Promise<readonly string[] | undefined> {
    return readdir(this.at(path)).catch(() => undefined);
  }

  /** The folder, or where it would be made: the nearest that is there. */
  async nearest(path: string): Promise<string> {
    let candidate = path;
    while (candidate !== '/' && !(await this.has(candidate))) candidate = dirname(candidate);
    return candidate;
  }

  /** Of each filesystem the first of the folders that is on it. */
  async filesystems(folders: readonly string[]): Promise<readonly Filesystem[] | undefined> {
    const found = new Map<number, Filesystem>();
    for (const folder of folders) {
      const path = await this.nearest(folder);
      const facts = await stat(this.at(path)).catch(() => undefined);
      const space = await statfs(this.at(path)).catch(() => undefined);
      if (facts === undefined || space === undefined || found.has(facts.dev)) continue;
      const { bavail, bsize, files, ffree } = space;
      found.set(facts.dev, { path, freeBytes: bavail * bsize, inodes: files, freeInodes: ffree });
    }
    return found.size === 0 ? undefined : [...found.values()];
  }
}

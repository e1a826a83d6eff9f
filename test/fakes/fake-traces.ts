import { AgentError } from '../../src/domain/kernel/errors.js';
import type { AbsolutePath } from '../../src/domain/kernel/paths.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Traces } from '../../src/ports/uninstall/traces.js';

/** Files and mounts by their paths. */
export class FakeTraces implements Traces {
  readonly #files: Set<string>;
  readonly #folders = new Set<string>();
  readonly mounts: Set<string>;
  #failing: string | undefined;

  constructor(files: readonly string[] = [], mounts: readonly string[] = []) {
    this.#files = new Set(files);
    for (const file of files) this.#folders.add(file.slice(0, file.lastIndexOf('/')));
    this.mounts = new Set(mounts);
  }

  /** What is at `path` cannot be removed; undefined ends it. */
  fail(path: string | undefined): void {
    this.#failing = path;
  }

  async entries(folder: AbsolutePath, { signal }: CallOptions): Promise<readonly string[]> {
    signal.throwIfAborted();
    const below = [...this.#files, ...this.#folders].filter((path) => path.startsWith(`${folder}/`));
    return [...new Set(below.map((path) => path.slice(folder.length + 1).split('/')[0] ?? ''))];
  }

  async remove(path: AbsolutePath, options: CallOptions): Promise<void> {
    const mounts = [...(await this.mountsBelow(path, options)), ...(this.mounts.has(path) ? [path] : [])];
    if (mounts.length > 0 || path === this.#failing) throw new AgentError('uninstall.not_removed', { problem: `${path} stays` });
    for (const all of [this.#files, this.#folders]) {
      for (const each of all) if (each === path || each.startsWith(`${path}/`)) all.delete(each);
    }
  }

  async removeEmptyFolder(path: AbsolutePath, options: CallOptions): Promise<void> {
    if ((await this.entries(path, options)).length === 0) this.#folders.delete(path);
  }

  async mountsBelow(path: AbsolutePath, { signal }: CallOptions): Promise<readonly AbsolutePath[]> {
    signal.throwIfAborted();
    const below = [...this.mounts].filter((mount) => mount.startsWith(`${path}/`)) as AbsolutePath[];
    return below.toSorted((a, b) => b.split('/').length - a.split('/').length);
  }

  /** Files, and folders in which nothing is, sorted. */
  dump(): readonly string[] {
    const empty = [...this.#folders].filter((folder) => ![...this.#files].some((file) => file.startsWith(`${folder}/`)));
    return [...this.#files, ...empty].sort();
  }
}

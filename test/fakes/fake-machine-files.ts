import { AgentError } from '../../src/domain/kernel/errors.js';
import type { AbsolutePath } from '../../src/domain/kernel/paths.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { MachineFiles, NewFile } from '../../src/ports/files/machine-files.js';

/** Files in memory. A folder is there as long as something is in it, or it was made for something. */
export class FakeMachineFiles implements MachineFiles {
  readonly #files = new Map<string, string>();
  readonly #folders = new Set<string>();
  #left = Number.POSITIVE_INFINITY;
  #failure: unknown;

  /** The machine dies before the n-th change from now on: this and every later call rejects, until `revive`. */
  dieBefore(change: number): void {
    this.#left = change - 1;
  }

  revive(): void {
    this.#left = Number.POSITIVE_INFINITY;
  }

  /** The next call rejects with `error` and changes nothing. */
  failNext(error: unknown): void {
    this.#failure = error;
  }

  /** As another program writes it. */
  write(path: string, text: string): void {
    this.#put(path, text);
  }

  async read(path: AbsolutePath, { signal }: CallOptions): Promise<string | undefined> {
    this.#mayFail(signal);
    return this.#files.get(path);
  }

  async replace(files: readonly NewFile[], { signal }: CallOptions): Promise<void> {
    this.#mayFail(signal);
    for (const { path, text } of files) this.#change(() => this.#put(path, text));
  }

  async remove(path: AbsolutePath, { signal }: CallOptions): Promise<void> {
    this.#mayFail(signal);
    this.#change(() => this.#files.delete(path));
  }

  async removeEmptyFolder(path: AbsolutePath, { signal }: CallOptions): Promise<void> {
    this.#mayFail(signal);
    const holds = [...this.#files.keys()].some((each) => each.startsWith(`${path}/`));
    if (!holds) this.#change(() => this.#folders.delete(path));
  }

  /** Paths of files, and of folders that hold nothing, sorted. */
  dump(): readonly string[] {
    const empty = [...this.#folders].filter((folder) => ![...this.#files.keys()].some((each) => each.startsWith(`${folder}/`)));
    return [...this.#files.keys(), ...empty].sort();
  }

  text(path: string): string | undefined {
    return this.#files.get(path);
  }

  #put(path: string, text: string): void {
    this.#files.set(path, text);
    this.#folders.add(path.slice(0, path.lastIndexOf('/')));
  }

  #change(work: () => void): void {
    if (this.#left <= 0) throw new Error('the machine has died');
    this.#left -= 1;
    work();
  }

  #mayFail(signal: AbortSignal): void {
    signal.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    if (this.#left <= 0) throw new AgentError('adoption.file_failed', { problem: 'the machine has died' });
  }
}

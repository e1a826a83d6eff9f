import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { ManifestDocument } from '../../src/ports/driving/resources.js';
import type { ManifestSource, Manifests } from '../../src/ports/resource/manifest-source.js';

/** One file, whose documents a test replaces. Every change is an item at once. */
export class FakeManifestSource implements ManifestSource {
  readonly name = '/fake/hello.yaml';
  #values: readonly unknown[];
  #unreadable: string | undefined;
  /** Counts up with each change. */
  #version = 1;
  #wake: () => void = () => {};

  constructor(...values: readonly unknown[]) {
    this.#values = values;
  }

  write(...values: readonly unknown[]): void {
    this.#values = values;
    this.#unreadable = undefined;
    this.#changed();
  }

  /** From now on it cannot be read, for this reason. */
  spoil(problem: string): void {
    this.#unreadable = problem;
    this.#changed();
  }

  async read({ signal }: CallOptions): Promise<Manifests> {
    signal.throwIfAborted();
    if (this.#unreadable !== undefined) throw new AgentError('resource.invalid', { problem: this.#unreadable });
    const documents: readonly ManifestDocument[] = this.#values.map((value, index) => ({
      file: this.name,
      number: index + 1,
      value,
    }));
    const describe: Manifests['describe'] = ({ document, path, message }) =>
      `${this.name}: document ${document}, ${path}: ${message}`;
    return { documents, describe };
  }

  async *changes({ signal }: CallOptions): AsyncIterable<void> {
    const onAbort = () => this.#wake();
    signal.addEventListener('abort', onAbort);
    let seen = 0;
    while (!signal.aborted) {
      if (seen < this.#version) {
        seen = this.#version;
        yield;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
    signal.removeEventListener('abort', onAbort);
  }

  #changed(): void {
    this.#version++;
    this.#wake();
  }
}

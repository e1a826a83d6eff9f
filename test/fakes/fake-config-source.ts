import type { ConfigFile } from '../../src/domain/config/problem.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { ConfigSource } from '../../src/ports/config/config-source.js';

/** A file that holds plain data, that cannot be read, or that is not there. */
export class FakeConfigSource implements ConfigSource {
  readonly #file = 'holdfast.yaml';
  #content: { readonly value: unknown } | { readonly problem: string } | undefined;

  write(value: unknown): void {
    this.#content = { value };
  }

  /** From now on it cannot be read, for this reason. */
  spoil(problem: string): void {
    this.#content = { problem };
  }

  async read({ signal }: CallOptions): Promise<ConfigFile | undefined> {
    signal.throwIfAborted();
    if (this.#content === undefined) return undefined;
    const value = 'value' in this.#content ? structuredClone(this.#content.value) : undefined;
    const origin = { from: 'file' as const, file: this.#file };
    const problems = 'problem' in this.#content ? [{ origin, path: '', problem: this.#content.problem }] : [];
    return { file: this.#file, value, problems, lineOf: () => undefined };
  }
}

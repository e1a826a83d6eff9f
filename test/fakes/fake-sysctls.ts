import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Sysctls } from '../../src/ports/dataplane/sysctls.js';

/** A kernel with the settings that it is given. */
export class FakeSysctls implements Sysctls {
  readonly #values: Map<string, string>;
  readonly #changed = new Map<string, { readonly before: string; readonly set: string }>();

  constructor(values: Readonly<Record<string, string>> = {}) {
    this.#values = new Map(Object.entries(values));
  }

  /** Somebody else sets it. */
  reset(name: string, value: string): void {
    this.#values.set(name, value);
  }

  async read(names: readonly string[], { signal }: CallOptions): Promise<ReadonlyMap<string, string>> {
    signal.throwIfAborted();
    return new Map([...this.#values].filter(([name]) => names.includes(name)));
  }

  async set(wanted: ReadonlyMap<string, string>, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    for (const [name, set] of wanted) {
      const now = this.#values.get(name);
      if (now === undefined)
        throw new AgentError('dataplane.sysctl_not_set', { problem: `${name}: this kernel does not have it` });
      if (now === set) continue;
      this.#changed.set(name, { before: this.#changed.get(name)?.before ?? now, set });
      this.#values.set(name, set);
    }
  }

  async restore({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    for (const [name, { before, set }] of this.#changed) if (this.#values.get(name) === set) this.#values.set(name, before);
    this.#changed.clear();
  }

  /** `net.ipv4.ip_forward = 1`, one a line, by name. */
  dump(): string {
    return [...this.#values]
      .map(([name, value]) => `${name} = ${value}`)
      .sort()
      .join('\n');
  }
}

import { createHash } from 'node:crypto';
import type { DnsmasqMemory, PlacedConfig } from '../../src/domain/dnsmasq/model.js';
import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { DnsmasqConfig } from '../../src/ports/dnsmasq/dnsmasq-config.js';

type Step = 'read' | 'test' | 'place' | 'remembered' | 'remember';

/** A disk: it outlives the processes that use it. */
export class FakeDnsmasqConfig implements DnsmasqConfig {
  /** Contents that dnsmasq does not take, by a part of them. */
  readonly refused = new Map<string, string>();
  #placed: PlacedConfig | undefined;
  #memory: DnsmasqMemory = { served: undefined, unfinished: undefined };
  #writes = 0;
  readonly #failures = new Map<Step, string>();

  /** The next call of it fails. */
  failNext(step: Step, problem: string): void {
    this.#failures.set(step, problem);
  }

  /** As somebody else does it. */
  write(contents: string | undefined): void {
    this.#write(contents === undefined ? undefined : new TextEncoder().encode(contents));
  }

  text(): string | undefined {
    return this.#placed === undefined ? undefined : new TextDecoder().decode(this.#placed.contents);
  }

  async read(options: CallOptions): Promise<PlacedConfig | undefined> {
    this.#enter('read', options);
    return this.#placed;
  }

  async test(contents: Uint8Array, options: CallOptions): Promise<string | undefined> {
    this.#enter('test', options);
    const text = new TextDecoder().decode(contents);
    return [...this.refused].find(([part]) => text.includes(part))?.[1];
  }

  async place(contents: Uint8Array | undefined, options: CallOptions): Promise<void> {
    this.#enter('place', options);
    this.#write(contents);
  }

  async remembered(options: CallOptions): Promise<DnsmasqMemory> {
    this.#enter('remembered', options);
    return this.#memory;
  }

  async remember(memory: DnsmasqMemory, options: CallOptions): Promise<void> {
    this.#enter('remember', options);
    this.#memory = memory;
  }

  #write(contents: Uint8Array | undefined): void {
    this.#writes += 1;
    const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
    this.#placed = contents && { contents, digest: digest(contents), mark: `write-${this.#writes}` };
  }

  #enter(step: Step, { signal }: CallOptions): void {
    signal.throwIfAborted();
    const problem = this.#failures.get(step);
    this.#failures.delete(step);
    if (problem !== undefined) throw new AgentError('dnsmasq.unusable', { problem });
  }
}

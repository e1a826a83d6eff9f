import { type Flow, type FlowFilter, Flows, matchesFlow } from '../../src/domain/dataplane/flows.js';
import { formatAddressPort } from '../../src/domain/kernel/network.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { ChallengeTally, Conntrack, FlowTally } from '../../src/ports/dataplane/conntrack.js';

/** Flows in memory. Tests put them there as packets would. */
export class FakeConntrack implements Conntrack {
  #flows: readonly Flow[] = [];
  #failures: Error[] = [];
  #nextId = 1;
  readonly #challenged: string[] = [];

  /** The kernel chooses the id. */
  put(...flows: readonly Omit<Flow, 'id'>[]): void {
    this.#flows = [...this.#flows, ...flows.map((flow) => ({ ...flow, id: this.#nextId++ }))];
  }

  failNext(error: Error, times = 1): void {
    this.#failures = Array<Error>(times).fill(error);
  }

  async list(filter: FlowFilter, options: CallOptions): Promise<Flows> {
    this.#begin(options);
    return Flows.of(this.#flows.filter((flow) => matchesFlow(filter, flow)));
  }

  async remove(flows: Flows, options: CallOptions): Promise<FlowTally> {
    this.#begin(options);
    const wanted = new Set([...flows].map(identity));
    const left = this.#flows.filter((flow) => !wanted.has(identity(flow)));
    const done = this.#flows.length - left.length;
    this.#flows = left;
    return { done, gone: flows.size - done };
  }

  async mark(flows: Flows, value: number, mask: number, options: CallOptions): Promise<FlowTally> {
    this.#begin(options);
    const wanted = new Set([...flows].map(identity));
    let done = 0;
    this.#flows = this.#flows.map((flow) => {
      if (!wanted.has(identity(flow))) return flow;
      done++;
      return { ...flow, mark: ((flow.mark & ~mask) | (value & mask)) >>> 0 };
    });
    return { done, gone: flows.size - done };
  }

  async challenge(flows: Flows, packetMark: number, options: CallOptions): Promise<ChallengeTally> {
    this.#begin(options);
    const ends = [...flows].filter(({ protocol }) => protocol === 6).flatMap(({ source, backend }) => [source, backend]);
    for (const { address, port } of ends) this.#challenged.push(`${formatAddressPort(address, port)} mark ${packetMark}`);
    return { sent: ends.length, failed: 0 };
  }

  /** Whom `challenge` made speak, in order. */
  challenged(): readonly string[] {
    return this.#challenged;
  }

  dump(): string {
    return this.#flows.map((flow) => `${identity(flow)} mark ${flow.mark}`).join('\n');
  }

  #begin({ signal }: CallOptions): void {
    signal.throwIfAborted();
    const failure = this.#failures.shift();
    if (failure !== undefined) throw failure;
  }
}

function identity({ protocol, source, destination, backend, id }: Flow): string {
  const end = ({ address, port }: Flow['source']) => formatAddressPort(address, port);
  return `${protocol} ${end(source)} ${end(destination)} ${end(backend)} id ${id}`;
}

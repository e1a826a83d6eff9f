import { addressOf, textOf } from '../../src/domain/dataplane/kernel-elements.js';
import type { RuleExpression, RuleValue } from '../../src/domain/dataplane/ruleset.js';
import { type IpAddress, isIpv6, isLoopback } from '../../src/domain/kernel/network.js';
import { bytesOf, type FakeTable } from './fake-packet-filter.js';

export interface TracedPacket {
  /** Where it enters: from outside, or from a program of the node. */
  readonly from: 'outside' | 'node';
  readonly source: IpAddress;
  readonly sourcePort: number;
  readonly destination: IpAddress;
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
  /** TCP; a SYN unless given. */
  readonly flags?: number;
  readonly mark?: number;
  readonly flow?: { readonly state: 'new' | 'established' | 'related'; readonly mark: number };
  /** Addresses of the node itself, and of the range that is routed to it. */
  readonly local: (address: IpAddress) => boolean;
}

/** What became of a packet, and of the flow that it begins or belongs to. */
export interface TraceResult {
  readonly verdict: 'passes' | 'dropped' | 'reset' | 'unreachable';
  /** Where it goes. */
  readonly destination: string;
  readonly masqueraded: boolean;
  readonly tracked: boolean;
  readonly flowMark: number;
  readonly mark: number;
}

class Stop {
  readonly verdict: TraceResult['verdict'];
  constructor(verdict: TraceResult['verdict']) {
    this.verdict = verdict;
  }
}

/** Carries a packet's first hooks out, expression by expression. */
export class Tracer {
  readonly #table: FakeTable;
  readonly #random: () => number;
  readonly #registers = new Uint8Array(16 * 4);
  #packet!: TracedPacket;
  #destination: Uint8Array = new Uint8Array();
  #port = 0;
  #mark = 0;
  #flowMark = 0;
  #tracked = true;
  #masqueraded = false;

  constructor(table: FakeTable, random: () => number) {
    this.#table = table;
    this.#random = random;
  }

  run(packet: TracedPacket): TraceResult {
    this.#packet = packet;
    this.#destination = addressOf(packet.destination);
    this.#port = packet.port;
    this.#mark = packet.mark ?? 0;
    this.#flowMark = packet.flow?.mark ?? 0;
    let verdict: TraceResult['verdict'] = 'passes';
    try {
      this.#hook(packet.from === 'outside' ? 0 : 3);
      const here =
        packet.local(packet.destination) &&
        this.#destination.every((byte, index) => byte === addressOf(packet.destination)[index]);
      if (packet.from === 'node') this.#hook(4);
      if (here) this.#hook(1);
      else if (packet.from === 'outside') {
        this.#hook(2);
        this.#hook(4);
      }
    } catch (stop) {
      if (!(stop instanceof Stop)) throw stop;
      verdict = stop.verdict;
    }
    return {
      verdict,
      destination: `${[...this.#destination].join('.')}:${this.#port}`,
      ...{ masqueraded: this.#masqueraded, tracked: this.#tracked, flowMark: this.#flowMark, mark: this.#mark },
    };
  }

  #hook(number: number): void {
    const chains = [...this.#table.chains].flatMap(([name, { base }]) => (base?.hook === number ? [{ name, base }] : []));
    for (const { name, base } of chains.toSorted((a, b) => a.base.priority - b.base.priority)) {
      // Translation is decided for the first packet of a flow.
      const isNew = (this.#packet.flow?.state ?? 'new') === 'new';
      if (base.type === 'nat' && (!isNew || !this.#tracked)) continue;
      this.#chain(name);
    }
  }

  /** Whether a verdict has ended the base chain. */
  #chain(name: string): boolean {
    const chain = this.#table.chains.get(name);
    if (chain === undefined) throw new Error(`there is no chain ${name}`);
    for (const expressions of chain.rules) {
      const verdict = this.#rule(expressions);
      if (verdict === undefined) continue;
      if (verdict === 'accept') return true;
      if (verdict === 'return') return false;
      const ended = this.#chain(verdict.chain);
      if (ended || verdict.goto) return ended;
    }
    return false;
  }

  #rule(expressions: readonly RuleExpression[]) {
    for (const expression of expressions) {
      const outcome = this.#expression(expression);
      if (outcome === 'break') return undefined;
      if (outcome !== undefined) return outcome;
    }
    return undefined;
  }

  #expression([name, ...values]: RuleExpression):
    | 'break'
    | 'accept'
    | 'return'
    | { readonly chain: string; readonly goto: boolean }
    | undefined {
    const number = (index: number) => numberOf(values[index]);
    switch (name) {
      case 'payload':
        return this.#put(number(0), this.#payload(number(1), number(2), number(3)));
      case 'meta-load':
        return this.#put(number(1), this.#meta(number(0)));
      case 'meta-set':
        this.#mark = wordAt(this.#registers, number(1));
        return undefined;
      case 'ct-load':
        return this.#tracked || number(0) === 0 ? this.#put(number(1), this.#conntrack(number(0))) : 'break';
      case 'ct-direction-load':
        // Of a flow that begins there are no replies yet: what its endpoint is called is not known.
        return 'break';
      case 'ct-set':
        this.#flowMark = wordAt(this.#registers, number(1));
        return undefined;
      case 'bitwise':
        return this.#put(number(1), this.#bitwise(number(0), bytesValue(values[3]), bytesValue(values[4])));
      case 'cmp': {
        const wanted = bytesValue(values[2]);
        const same = wanted.every((byte, index) => byte === this.#registers[offset(number(0)) + index]);
        return same === (number(1) === 0) ? undefined : 'break';
      }
      case 'fib':
        return this.#put(number(0), word(this.#isLocal(number(2)) ? 2 : 1));
      case 'numgen':
        return this.#put(number(0), word(Math.floor(this.#random() * number(1))));
      case 'jhash':
        return this.#put(number(1), word(this.#hash(number(0), number(2)) % number(3)));
      case 'lookup':
        return this.#lookup(String(values[0]), number(1), number(2));
      case 'member': {
        const isThere = this.#find(String(values[0]), number(1)) !== undefined;
        return isThere === (number(2) === 0) ? undefined : 'break';
      }
      case 'dynset': {
        const set = this.#table.sets.get(String(values[0]));
        if (set === undefined) throw new Error(`there is no set ${values[0]}`);
        if (set.elements.size >= (set.facts.size ?? Infinity) && this.#find(String(values[0]), number(2)) === undefined)
          return 'break';
        set.elements.set(
          this.#key(String(values[0]), number(2)),
          textOf(this.#registers.subarray(offset(number(3)), offset(number(3)) + 4)),
        );
        return undefined;
      }
      case 'nat': {
        const family = isIpv6(this.#packet.destination) ? 16 : 4;
        this.#destination = this.#registers.slice(offset(number(2)), offset(number(2)) + family);
        const at = offset(number(3));
        this.#port = (this.#registers[at] ?? 0) * 256 + (this.#registers[at + 1] ?? 0);
        return 'accept';
      }
      case 'masquerade':
        this.#masqueraded = true;
        return 'accept';
      case 'notrack':
        this.#tracked = false;
        return undefined;
      case 'reject':
        throw new Stop(number(0) === 1 ? 'reset' : 'unreachable');
      case 'socket':
        return 'break';
      case 'verdict':
        return this.#verdict(number(1), String(values[2]));
      default:
        return undefined;
    }
  }

  #verdict(code: number, chain: string) {
    switch (code | 0) {
      case 0:
        throw new Stop('dropped');
      case 1:
        return 'accept' as const;
      case -5:
        return 'return' as const;
      default:
        return { chain, goto: (code | 0) === -4 };
    }
  }

  #lookup(set: string, from: number, to: number) {
    const found = this.#find(set, from);
    if (found === undefined) return 'break' as const;
    if (to === 0) return { chain: found, goto: true };
    return this.#put(to, bytesOf(found));
  }

  #find(set: string, register: number): string | undefined {
    return this.#table.sets.get(set)?.elements.get(this.#key(set, register));
  }

  #key(set: string, register: number): string {
    const fields = this.#table.sets.get(set)?.facts.fields ?? [];
    const bytes = fields.reduce((sum, length) => sum + 4 * Math.ceil(length / 4), 0);
    return textOf(this.#registers.subarray(offset(register), offset(register) + bytes));
  }

  #payload(base: number, at: number, length: number): Uint8Array {
    const { flags = 2, source, sourcePort } = this.#packet;
    if (base === 2 && at === 2) return Uint8Array.of(this.#port >> 8, this.#port & 255);
    if (base === 2 && at === 0) return Uint8Array.of(sourcePort >> 8, sourcePort & 255);
    if (base === 2 && at === 13) return Uint8Array.of(flags);
    const isSource = at === (length === 4 ? 12 : 8);
    return isSource ? addressOf(source) : this.#destination;
  }

  #meta(key: number): Uint8Array {
    if (key === 3) return word(this.#mark);
    if (key === 15) return Uint8Array.of(isIpv6(this.#packet.destination) ? 10 : 2);
    if (key === 16) return Uint8Array.of(this.#packet.protocol === 'tcp' ? 6 : 17);
    throw new Error(`meta ${key}`);
  }

  #conntrack(key: number): Uint8Array {
    const states = { new: 8, established: 2, related: 4 };
    if (key === 0) return word(this.#tracked ? states[this.#packet.flow?.state ?? 'new'] : 64);
    if (key === 3) return word(this.#flowMark);
    return this.#meta(16);
  }

  #bitwise(register: number, mask: Uint8Array, xor: Uint8Array): Uint8Array {
    const at = offset(register);
    return mask.map((byte, index) => ((this.#registers[at + index] ?? 0) & byte) ^ (xor[index] ?? 0));
  }

  #isLocal(flags: number): boolean {
    const { destination, local, source } = this.#packet;
    const address = flags === 1 ? source : destination;
    return local(address) || isLoopback(address);
  }

  #hash(register: number, length: number): number {
    return this.#registers
      .subarray(offset(register), offset(register) + length)
      .reduce((hash, byte) => (hash * 31 + byte) >>> 0, 7);
  }

  /** What a value leaves of its last register is zero. */
  #put(register: number, value: Uint8Array): undefined {
    const at = offset(register);
    this.#registers.fill(0, at, at + 4 * Math.ceil(value.length / 4));
    this.#registers.set(value, at);
  }
}

function offset(register: number): number {
  return (register - 8) * 4;
}

function word(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

function wordAt(registers: Uint8Array, register: number): number {
  return new DataView(registers.buffer).getUint32(offset(register), true);
}

function numberOf(value: RuleValue | undefined): number {
  if (typeof value !== 'number') throw new Error(`not a number: ${String(value)}`);
  return value;
}

function bytesValue(value: RuleValue | undefined): Uint8Array {
  if (!(value instanceof Uint8Array)) throw new Error(`no bytes: ${String(value)}`);
  return value;
}

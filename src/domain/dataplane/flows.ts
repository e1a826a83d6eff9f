import { type IpAddress, isIpv6 } from '../kernel/network.js';
import { readAddress, writeAddress } from './flow-address.js';

/** Which end of a flow: `source` is the client, `destination` whom it asked (a VIP), `backend` who answers, after NAT. */
export type FlowPart = 'source' | 'destination' | 'backend';

export interface FlowSelector {
  readonly part: FlowPart;
  readonly address: IpAddress;
  /** IANA's number: 6 TCP, 17 UDP; left out: any. */
  readonly protocol?: number;
  /** Left out: any. */
  readonly port?: number;
}

/** All of it must hold, and one of `anyOf` when that is given: an empty one selects nothing. */
export interface FlowFilter {
  readonly family?: 4 | 6;
  readonly protocol?: number;
  /** These bits of the mark have this value. */
  readonly mark?: { readonly value: number; readonly mask: number };
  readonly zone?: number;
  readonly anyOf?: readonly FlowSelector[];
}

export interface FlowEnd {
  readonly address: IpAddress;
  readonly port: number;
}

/** A connection that the kernel tracks. Ends of ICMP have the identifier as the source's port, `type * 256 + code` as the destination's. */
export interface Flow {
  readonly protocol: number;
  /** TCP alone: 3 is established, 8 closed (enum tcp_conntrack); else 0. */
  readonly tcpState: number;
  readonly zone: number;
  /** The kernel's; of the original tuple and the entry's place in memory. */
  readonly id: number;
  readonly mark: number;
  /** enum ip_conntrack_status. */
  readonly status: number;
  readonly timeoutSeconds: number;
  /** As the first packet was, before NAT. */
  readonly source: FlowEnd;
  readonly destination: FlowEnd;
  /** As answers come, after NAT. */
  readonly backend: FlowEnd;
  readonly backendPeer: FlowEnd;
}

const rowBytes = 96;
const portsAt = 24;
const addressesAt = 32;
const ends = ['source', 'destination', 'backend', 'backendPeer'] as const;

/**
 * Many flows in one piece of memory, 96 bytes each, as the kernel's tables hold hundreds of thousands; native/core/conntrack_row.h has the form. A
 * flow is made an object only when it is looked at.
 */
export class Flows implements Iterable<Flow> {
  static readonly none = new Flows(new Uint8Array());

  /** Not to be written to. */
  readonly rows: Uint8Array;
  readonly #view: DataView;

  /** @throws RangeError when `rows` are none of whole flows. */
  constructor(rows: Uint8Array) {
    if (rows.length % rowBytes !== 0) throw new RangeError(`${rows.length} bytes are no rows of ${rowBytes}`);
    this.rows = rows;
    this.#view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
  }

  static of(flows: readonly Flow[]): Flows {
    const rows = new Uint8Array(flows.length * rowBytes);
    const view = new DataView(rows.buffer);
    for (const [index, flow] of flows.entries()) writeRow(view, index * rowBytes, flow);
    return new Flows(rows);
  }

  get size(): number {
    return this.rows.length / rowBytes;
  }

  /** @throws RangeError outside of 0 … size - 1. */
  at(index: number): Flow {
    if (index < 0 || index >= this.size) throw new RangeError(`there is no flow ${index} of ${this.size}`);
    return readRow(this.#view, index * rowBytes);
  }

  *[Symbol.iterator](): Iterator<Flow> {
    for (let index = 0; index < this.size; index++) yield this.at(index);
  }

  /** Those for which it is true. */
  where(wanted: (flow: Flow) => boolean): Flows {
    const kept: Uint8Array[] = [];
    for (let index = 0; index < this.size; index++) {
      if (wanted(this.at(index))) kept.push(this.rows.subarray(index * rowBytes, (index + 1) * rowBytes));
    }
    return joined(kept);
  }

  with(others: Flows): Flows {
    return joined([this.rows, others.rows]);
  }
}

function joined(parts: readonly Uint8Array[]): Flows {
  const rows = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    rows.set(part, at);
    at += part.length;
  }
  return new Flows(rows);
}

function writeRow(view: DataView, at: number, flow: Flow): void {
  view.setUint8(at, isIpv6(flow.source.address) ? 6 : 4);
  view.setUint8(at + 1, flow.protocol);
  view.setUint8(at + 2, flow.tcpState);
  view.setUint16(at + 4, flow.zone);
  for (const [index, value] of [flow.id, flow.mark, flow.status, flow.timeoutSeconds].entries()) {
    view.setUint32(at + 8 + 4 * index, value);
  }
  for (const [index, end] of ends.entries()) {
    view.setUint16(at + portsAt + 2 * index, flow[end].port);
    writeAddress(view, at + addressesAt + 16 * index, flow[end].address);
  }
}

function readRow(view: DataView, at: number): Flow {
  const family = view.getUint8(at);
  const end = (index: number): FlowEnd => ({
    address: readAddress(view, at + addressesAt + 16 * index, family),
    port: view.getUint16(at + portsAt + 2 * index),
  });
  return {
    protocol: view.getUint8(at + 1),
    tcpState: view.getUint8(at + 2),
    zone: view.getUint16(at + 4),
    id: view.getUint32(at + 8),
    mark: view.getUint32(at + 12),
    status: view.getUint32(at + 16),
    timeoutSeconds: view.getUint32(at + 20),
    source: end(0),
    destination: end(1),
    backend: end(2),
    backendPeer: end(3),
  };
}

/** Whether a filter lets the flow through: what the native side does, for plans and fakes. */
export function matchesFlow({ family, protocol, mark, zone, anyOf }: FlowFilter, flow: Flow): boolean {
  if (family !== undefined && (isIpv6(flow.source.address) ? 6 : 4) !== family) return false;
  if (protocol !== undefined && flow.protocol !== protocol) return false;
  if (mark !== undefined && (flow.mark & mark.mask) >>> 0 !== (mark.value & mark.mask) >>> 0) return false;
  if (zone !== undefined && flow.zone !== zone) return false;
  return anyOf === undefined || anyOf.some((selector) => selects(selector, flow));
}

function selects({ part, address, protocol, port }: FlowSelector, flow: Flow): boolean {
  const end = flow[part];
  return (
    end.address === address && (protocol === undefined || flow.protocol === protocol) && (port === undefined || end.port === port)
  );
}

const parts = { source: 0, destination: 1, backend: 2 } as const satisfies Record<FlowPart, number>;
const selectorBytes = 24;

/** For the native side, in the form of native/core/conntrack_row.h. */
export function packSelectors(selectors: readonly FlowSelector[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(selectors.length * selectorBytes));
  for (const [index, { part, address, protocol, port }] of selectors.entries()) {
    const at = index * selectorBytes;
    view.setUint8(at, parts[part]);
    view.setUint8(at + 1, protocol ?? 0);
    view.setUint16(at + 2, port ?? 0);
    view.setUint8(at + 4, isIpv6(address) ? 6 : 4);
    writeAddress(view, at + 8, address);
  }
  return new Uint8Array(view.buffer);
}

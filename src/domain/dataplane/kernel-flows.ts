import type { IpAddress } from '../kernel/network.js';
import type { Flow, FlowEnd, FlowSelector } from './flows.js';
import type { L4Endpoint, L4Listener, Protocol } from './model.js';

/** IANA's numbers. */
export const protocolNumbers = { tcp: 6, udp: 17 } as const satisfies Record<Protocol, number>;

/** enum tcp_conntrack: a reset was seen. */
export const TCP_CLOSED = 8;

/** What a flow was opened to. */
export interface FlowTarget {
  readonly address: IpAddress;
  readonly port: number;
  readonly protocol: Protocol;
}

export function targetKey({ address, port, protocol }: FlowTarget): string {
  return `${address} ${port} ${protocolNumbers[protocol]}`;
}

export function targetOf({ destination, protocol }: Flow): string {
  return `${destination.address} ${destination.port} ${protocol}`;
}

export function selectorOf({ address, port, protocol }: FlowTarget): FlowSelector {
  return { part: 'destination', address, port, protocol: protocolNumbers[protocol] };
}

/**
 * Whether a UDP flow is to be forgotten so that its next packet is judged anew: it goes to what is no endpoint of its service, or was never
 * translated although there is one now, or the rules have nothing of its service any more. `carried`: the rules' listener at its target.
 */
export function isMisplaced(flow: Flow, carried: L4Listener | undefined, carriedMark: number): boolean {
  if (carried === undefined) return (flow.mark & carriedMark) !== 0;
  return !carried.endpoints.some((endpoint) => goesTo(flow, endpoint));
}

export function goesTo({ backend }: Flow, { address, port }: FlowEnd): boolean {
  return backend.address === address && backend.port === port;
}

/** An endpoint of which running connections have until `dueAt`, by the monotonic clock in milliseconds. */
export interface KernelDrain {
  readonly listener: L4Listener;
  readonly endpoint: FlowEnd;
  readonly dueAt: number;
}

export function drainKey(listener: FlowTarget, endpoint: FlowEnd): string {
  return `${targetKey(listener)} ${endpoint.address} ${endpoint.port}`;
}

/** What leaves with a change of a TCP listener; one at another address or port has left with all of its endpoints. */
export function withdrawn(before: L4Listener, after: L4Listener | undefined): readonly L4Endpoint[] {
  const stays = after !== undefined && targetKey(before) === targetKey(after) ? after.endpoints : [];
  return before.endpoints.filter((one) => !stays.some(({ address, port }) => one.address === address && one.port === port));
}

import { type FlowFilter, Flows, packSelectors } from '../../domain/dataplane/flows.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ChallengeTally, Conntrack, FlowTally } from '../../ports/dataplane/conntrack.js';
import type { ConntrackFunctions, NativeFlowFilter, NativeFlowTally } from './conntrack-addon.js';

/** Over ctnetlink and raw sockets, on the addon's threads. Needs CAP_NET_ADMIN, and CAP_NET_RAW for `challenge`. */
export class NetlinkConntrack implements Conntrack {
  readonly #addon: ConntrackFunctions;

  constructor(addon: ConntrackFunctions) {
    this.#addon = addon;
  }

  async list(filter: FlowFilter, { signal }: CallOptions): Promise<Flows> {
    signal.throwIfAborted();
    if (filter.anyOf?.length === 0) return Flows.none;
    try {
      return new Flows(await unlessAborted(this.#addon.listFlows(native(filter), packSelectors(filter.anyOf ?? [])), signal));
    } catch (error) {
      signal.throwIfAborted();
      throw failed(error);
    }
  }

  async remove(flows: Flows, { signal }: CallOptions): Promise<FlowTally> {
    signal.throwIfAborted();
    return checked(await unlessAborted(this.#addon.removeFlows(flows.rows), signal));
  }

  async mark(flows: Flows, value: number, mask: number, { signal }: CallOptions): Promise<FlowTally> {
    signal.throwIfAborted();
    return checked(await unlessAborted(this.#addon.markFlows(flows.rows, value, mask), signal));
  }

  async challenge(flows: Flows, packetMark: number, { signal }: CallOptions): Promise<ChallengeTally> {
    signal.throwIfAborted();
    const { sent, failed, error } = await unlessAborted(this.#addon.challengeFlows(flows.rows, packetMark), signal);
    return error === undefined ? { sent, failed } : { sent, failed, problem: error.message };
  }
}

function native({ family, protocol, mark, zone }: FlowFilter): NativeFlowFilter {
  return {
    ...(family === undefined ? {} : { family }),
    ...(protocol === undefined ? {} : { protocol }),
    ...(mark === undefined ? {} : { mark: mark.value, markMask: mark.mask }),
    ...(zone === undefined ? {} : { zone }),
  };
}

async function unlessAborted<T>(call: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([call, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function checked({ done, gone, failed: refused, error }: NativeFlowTally): FlowTally {
  if (error === undefined) return { done, gone };
  throw failed(error, `${refused} of ${done + gone + refused} flows: `);
}

function failed(error: unknown, about = ''): AgentError {
  const problem = error instanceof Error ? error.message : String(error);
  return new AgentError('dataplane.conntrack_failed', { problem: `${about}${problem}` }, { cause: error });
}

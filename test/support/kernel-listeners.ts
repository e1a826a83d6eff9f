import type { FilterSettings } from '../../src/domain/dataplane/kernel-model.js';
import { defaultMarks } from '../../src/domain/dataplane/kernel-model.js';
import type { L4Endpoint, L4Listener, ListenerId } from '../../src/domain/dataplane/model.js';
import { ipv4Range, type PortNumber } from '../../src/domain/kernel/network.js';
import { address } from './listeners.js';

const range = ipv4Range('10.192.0.0/16');
if (range === undefined) throw new Error('no range');
export const filterSettings: FilterSettings = { range, marks: defaultMarks };

/** On port 8080. */
export function kernelEndpoint(text: string, weight = 1, local = true, tier = 0): L4Endpoint {
  return { address: address(text), port: 8080 as PortNumber, weight, tier, local };
}

/** On port 80 of that address, carried by the kernel. */
export function kernelListener(at: string, endpoints: readonly L4Endpoint[], changes: Partial<L4Listener> = {}): L4Listener {
  return {
    ...{
      id: `default/${at}/${changes.protocol ?? 'tcp'}` as ListenerId,
      address: address(at),
      port: 80 as PortNumber,
      protocol: 'tcp',
    },
    ...{ algorithm: 'random', affinityMs: 0, drainMs: 30_000, idleMs: 0, maxConnections: 0, acceptProxy: false, sendProxy: 0 },
    ...{ refuse: false, path: 'kernel', endpoints },
    ...changes,
  };
}

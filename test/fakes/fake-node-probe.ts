import type { MachineInfo } from '../../src/domain/node/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { NodeProbe } from '../../src/ports/node/node-probe.js';

/** A machine that a test changes. */
export class FakeNodeProbe implements NodeProbe {
  machine: MachineInfo = { hostname: 'web', architecture: 'x64', addresses: ['10.0.0.1'], cpu: { count: 2 }, versions: {} };

  async look({ signal }: CallOptions): Promise<MachineInfo> {
    signal.throwIfAborted();
    return this.machine;
  }
}

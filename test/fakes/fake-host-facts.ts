import type { HostNetwork } from '../../src/domain/certificate/host.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { HostFacts } from '../../src/ports/node/host-facts.js';

/** A machine. */
export class FakeHostFacts implements HostFacts {
  id: string | undefined = 'm1';
  release = 'ID=debian\nVERSION_ID="12"\n';
  on: readonly HostNetwork[] = [
    { device: 'eth0', address: '10.0.0.5', prefixLength: 24 },
    { device: 'wg0', address: '10.9.0.5', prefixLength: 16 },
  ];

  async machineId({ signal }: CallOptions): Promise<string | undefined> {
    signal.throwIfAborted();
    return this.id;
  }

  async osRelease({ signal }: CallOptions): Promise<string> {
    signal.throwIfAborted();
    return this.release;
  }

  async networks({ signal }: CallOptions): Promise<readonly HostNetwork[]> {
    signal.throwIfAborted();
    return this.on;
  }
}

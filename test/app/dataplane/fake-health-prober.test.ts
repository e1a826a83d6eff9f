import { ipAddress, portNumber } from '../../../src/domain/kernel/network.js';
import type { ProbeTarget } from '../../../src/ports/dataplane/health-prober.js';
import { healthProberContract } from '../../contract/health-prober.contract.js';
import { FakeHealthProber } from '../../fakes/fake-health-prober.js';

healthProberContract('FakeHealthProber', async () => {
  const prober = new FakeHealthProber();
  prober.fail('10.0.0.2:80');
  prober.silence('10.0.0.3:80');
  return { prober, well: at('10.0.0.1'), dead: at('10.0.0.2'), silent: at('10.0.0.3'), close: async () => {} };
});

function at(text: string): ProbeTarget {
  const [address, port] = [ipAddress(text), portNumber(80)];
  if (address === undefined || port === undefined) throw new Error(text);
  return { address, port, check: { tcp: {} } };
}

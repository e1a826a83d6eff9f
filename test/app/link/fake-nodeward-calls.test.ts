import { nodewardCallsContract } from '../../contract/nodeward-calls.contract.js';
import { FakeNodewardCalls } from '../../fakes/fake-nodeward-calls.js';

nodewardCallsContract('FakeNodewardCalls', async () => {
  const calls = new FakeNodewardCalls();
  calls.nodes = [{ vpnIp: '10.1.0.1', kubeEndpoint: 'https://10.1.0.1:6443' }];
  calls.address = '10.1.0.1/16';
  calls.peers = [{ pubKey: 'key', endpointIp: '', ip: '10.1.0.2', extraAllowedIps: ['10.9.0.0/16'] }];
  return {
    calls,
    told: () => calls.told,
    refuse: () => calls.fail('link.refused'),
    goAway: async () => calls.fail('link.unreachable'),
    dispose: async () => {},
  };
});

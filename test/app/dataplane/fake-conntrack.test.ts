import { conntrackContract } from '../../contract/conntrack.contract.js';
import { FakeConntrack } from '../../fakes/fake-conntrack.js';

conntrackContract('fake', async () => {
  const conntrack = new FakeConntrack();
  return {
    conntrack,
    talk: async (from, to, address) => {
      const [client, server] = [
        { address, port: from },
        { address, port: to },
      ];
      const ends = { source: client, destination: server, backend: server, backendPeer: client };
      conntrack.put({ protocol: 17, tcpState: 0, zone: 0, mark: 0, status: 0, timeoutSeconds: 30, ...ends });
    },
    end: async () => {},
  };
});

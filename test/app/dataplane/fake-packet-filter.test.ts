import { packetFilterContract } from '../../contract/packet-filter.contract.js';
import { FakePacketFilter } from '../../fakes/fake-packet-filter.js';

packetFilterContract('fake', async () => {
  // The machine's one table outlives who has opened it.
  const filter = new FakePacketFilter();
  return {
    filter: async (owner) => {
      filter.owned = owner;
      return filter;
    },
    flush: async () => filter.flush(),
    addChain: async (chain) => {
      filter.foreign = [chain];
    },
    end: async () => {},
  };
});

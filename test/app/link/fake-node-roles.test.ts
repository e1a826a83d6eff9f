import { nodeRolesContract } from '../../contract/node-roles.contract.js';
import { FakeNodeRoles } from '../../fakes/fake-node-roles.js';

nodeRolesContract('FakeNodeRoles', async () => {
  const roles = new FakeNodeRoles();
  return {
    roles,
    becomeControlPlane: async () => roles.become({ isCp: true, isWorker: false, status: 'ready' }),
    breakDown: async () => roles.fail('told to'),
    fallSilent: async () => roles.fallSilent(),
  };
});

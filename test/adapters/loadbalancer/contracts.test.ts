import { hash } from 'node:crypto';
import { nameServers } from '../../../src/domain/loadbalancer/names.js';
import { renderConfig } from '../../../src/domain/loadbalancer/render.js';
import { balancerConfigContract } from '../../contract/balancer-config.contract.js';
import { balancerRuntimeContract } from '../../contract/balancer-runtime.contract.js';
import { FakeHaproxy } from '../../fakes/fake-haproxy.js';
import { endpoint } from '../../support/endpoint.js';
import { eventually } from '../../support/eventually.js';
import { HaproxyMachine } from '../../support/haproxy-machine.js';

const options = { signal: new AbortController().signal };

balancerConfigContract('haproxy', async () => {
  const machine = await HaproxyMachine.make();
  return { config: machine.parts().config, reopened: () => machine.parts().config };
});

balancerConfigContract('fake', async () => {
  const config = new FakeHaproxy();
  config.refused.set('mode bogus', "unknown proxy mode 'bogus'");
  return { config, reopened: () => config };
});

balancerRuntimeContract('haproxy', async () => {
  const machine = await HaproxyMachine.make();
  const { runtime, units } = machine.parts();
  return {
    runtime,
    start: async (...list) => void (await machine.keeper().bring(list.map(endpoint), options)),
    reload: async () => {
      const before = await runtime.observe(options);
      await units.reload('haproxy.service', options);
      await eventually(async () => (await runtime.observe(options))?.pid !== before?.pid).toBe(true);
    },
    kill: () => machine.stop(),
  };
});

balancerRuntimeContract('fake', async () => {
  const runtime = new FakeHaproxy();
  const settings = { port: 6_446, socket: '/run/haproxy/admin.sock', hasIpv6: true, requestSeconds: 60 };
  return {
    runtime,
    start: async (...list) => {
      const servers = nameServers(list.map(endpoint), [], []);
      runtime.file = renderConfig(servers, settings, (text) => hash('sha256', text, 'hex')).text;
      runtime.load();
    },
    reload: async () => runtime.load(),
    kill: async () => runtime.die(),
  };
});

import { controlLinkContract } from '../../contract/control-link.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlLink } from '../../fakes/fake-control-link.js';
import { serverFacts } from '../../support/link-rig.js';

controlLinkContract('FakeControlLink', async () => {
  const link = new FakeControlLink(new FakeClock());
  const address = { host: 'cp', port: 1 };
  link.serve(address, { facts: serverFacts });
  return {
    link,
    address,
    nowhere: { host: 'nowhere', port: 1 },
    server: serverFacts,
    say: (...messages) => link.newest.deliver(...messages),
    heard: () => link.newest.sent,
    agent: () => link.newest.agent,
    endStream: (retryMs) => link.newest.end({ what: 'stream', error: undefined, retryMs }),
    kill: async () => link.kill(address),
    dispose: async () => {},
  };
});

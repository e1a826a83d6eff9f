import { serviceDialerContract } from '../../contract/service-dialer.contract.js';
import { FakeServiceDialer } from '../../fakes/fake-service-dialer.js';

serviceDialerContract('FakeServiceDialer', async () => {
  const dialer = new FakeServiceDialer();
  dialer.serve('api.shop.svc.cluster.local:80', (text, socket) => {
    if (text === 'bye') socket.end();
    else if (text === 'flood') for (let count = 0; count < 1_000; count++) socket.say(new Uint8Array(16_384));
    else return `<${text}>`;
    return undefined;
  });
  // A dial takes a moment, so that an abort can come before its end.
  dialer.gate = Promise.resolve();
  return { dialer, port: 80, closedPort: 81, connections: () => dialer.openCount };
});

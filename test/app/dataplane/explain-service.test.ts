import { afterEach, describe, expect, test } from 'vitest';
import { ExplainService } from '../../../src/app/dataplane/explain-service.js';
import { LogConsumer } from '../../../src/app/log/log-consumer.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { canonicalJson } from '../../../src/domain/kernel/canonical-json.js';
import { logKey } from '../../../src/domain/log/model.js';
import { refOf, resourceKey } from '../../../src/domain/resource/model.js';
import type { ListenerState, ListenerStatus } from '../../../src/ports/dataplane/listener-status.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeDataPlane } from '../../fakes/fake-data-plane.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
import { endpoint, listener } from '../../support/listeners.js';
import { service } from '../../support/small-cluster.js';

const options = { signal: new AbortController().signal };
const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const states: Readonly<Record<string, ListenerState>> = {
  'default/a/http': { state: 'listening', port: 8080 },
  'default/a/dns': { state: 'failed', reason: 'address already in use', remedy: 'stop it', since: 1 },
};
const listeners: ListenerStatus = {
  stateOf: (id) => states[id] ?? { state: 'pending' },
  failed: () => new Map(),
  settled: async () => {},
};

async function explainer() {
  const clock = new FakeClock();
  const log = new FakeOrderedLog({ clock });
  const view = new LogConsumer(log, clock, new FakeLogger());
  await view.start();
  stops.push(() => view.stop());
  const dataPlane = new FakeDataPlane();
  dataPlane.start(() => {});
  await dataPlane.apply({ upsert: [listener('default/a/http', [endpoint(18_081)])], remove: [] }, options);
  const ports = [
    { name: 'http', port: 80 },
    { name: 'dns', port: 53, protocol: 'udp' },
  ];
  const resource = service('a', { ports, endpoints: [{ address: '127.0.0.1', ports: { http: 18_081 } }] });
  const changes = [
    { key: resourceKey(refOf(resource)), value: canonicalJson({ ...resource, source: 'test' }) },
    { key: logKey('vip/10.192.0.2'), value: '{"service":"default/a"}' },
  ];
  await log.propose({ changes, preconditions: [] }, options);
  return new ExplainService({ nodeId: 'here' as NodeName, log, view, listeners, dataPlane, kernel: false });
}

describe('explain', () => {
  const call = { namespace: 'default', service: 'a' };

  test('every port, with its listener', async () => {
    const { nodeId, revision, ports } = await (await explainer()).explain(call, options);
    expect([nodeId, revision]).toEqual(['here', 1n]);
    expect(ports.map(({ name, listener: { state }, listen, outcome }) => [name, state, listen, outcome])).toEqual([
      ['http', 'listening', '10.192.0.2:8080', 'new connections go to 1 of 1 endpoints'],
      ['dns', 'failed', '', 'new flows go to 1 of 1 endpoints'],
    ]);
  });

  test.each(['dns', '53'])('one port as %s', async (port) => {
    const { ports } = await (await explainer()).explain({ ...call, port }, options);
    expect(ports.map(({ name }) => name)).toEqual(['dns']);
  });

  test('from a client', async () => {
    const { ports } = await (await explainer()).explain({ ...call, port: 'http', from: '::FFFF:1.2.3.4' }, options);
    expect(ports[0]?.from).toEqual({ address: '::ffff:1.2.3.4', target: '127.0.0.1:18081', reason: 'it is the only one' });
  });

  test.each([
    { more: { service: 'b' }, message: 'resource.not_found: service/b' },
    { more: { namespace: 'x' }, message: 'resource.not_found: service/a (namespace x)' },
    { more: { port: '54' }, message: 'resource.not_found: service/a has no port 54; its ports are http (80), dns (53)' },
    { more: { from: 'host' }, message: 'resource.invalid: expected an IP address to look from, found "host"' },
  ])('$message', async ({ more, message }) => {
    await expect((await explainer()).explain({ ...call, ...more }, options)).rejects.toThrow(message);
  });
});

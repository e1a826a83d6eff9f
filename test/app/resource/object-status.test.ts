import { expect, test } from 'vitest';
import { noListeners } from '../../../src/app/node/no-traffic.js';
import { portStatus } from '../../../src/app/resource/object-status.js';
import type { ListenerId } from '../../../src/domain/dataplane/model.js';
import type { IpAddress } from '../../../src/domain/kernel/network.js';
import type { QualifiedName } from '../../../src/domain/resource/model.js';
import { applyCall, endpointsDocument, options, resourceRig, serviceDocument } from '../../support/resource-rig.js';

test('a service shows its address, how its ports stand and where its endpoints come from', async () => {
  const { resources, listeners } = await resourceRig();
  listeners.set('default/hello/http', { state: 'listening', port: 8080 });
  listeners.set('default/hello/constructor', { state: 'failed', reason: 'bind: in use', remedy: 'free it', since: 1 });
  const ports = [
    { name: 'http', port: 80 },
    { name: 'constructor', port: 81, targetPort: 9_000 },
    { name: 'late', port: 82, targetPort: 9_000 },
  ];
  const inline = [{ address: '127.0.0.1' }, { name: 'own', address: '::1', weight: 3, ports: { late: 7 } }];
  const published = endpointsDocument('pub', 'hello', [{ name: 'p', address: '127.0.0.3', ready: false }]);
  await resources.apply(applyCall([serviceDocument('hello', { ports, endpoints: inline }), published]), options);
  const { objects } = await resources.get({ kind: 'Service' }, options);
  const at = (address: string, ...numbers: readonly number[]) =>
    ports.map(({ name }, index) => ({ port: name, address: `${address}:${numbers[index]}` }));
  expect(objects[0]?.status).toEqual({
    vip: '10.192.0.2',
    ports: [
      { name: 'http', port: 80, state: 'listening', listen: '10.192.0.2:8080' },
      { name: 'constructor', port: 81, state: 'failed', reason: 'bind: in use', remedy: 'free it' },
      { name: 'late', port: 82, state: 'pending' },
    ],
    endpoints: [
      { name: 'ep-127-0-0-1', targets: at('127.0.0.1', 80, 9000, 9000), source: 'inline', weight: 1, ready: true },
      { name: 'own', targets: at('[::1]', 80, 9000, 7), source: 'inline', weight: 3, ready: true },
      { name: 'p', targets: at('127.0.0.3', 80, 9000, 9000), source: 'endpoints/pub', weight: 1, ready: false },
    ],
  });
});

test('a control plane says that its ports are on the nodes', () => {
  expect(noListeners.stateOf('default/hello/http' as ListenerId)).toEqual({ state: 'elsewhere' });
  const port = portStatus('default/hello' as QualifiedName, { name: 'http', port: 80 }, '10.192.0.2' as IpAddress, noListeners);
  expect(port).toEqual({ name: 'http', port: 80, state: 'elsewhere' });
});

test("an endpoint's own port counts for services with one port", async () => {
  const { resources } = await resourceRig();
  const endpoints = [{ address: '127.0.0.1', port: 18_081 }];
  await resources.apply(applyCall([serviceDocument('hello', { endpoints })]), options);
  const { objects } = await resources.get({}, options);
  expect(objects[0]?.status?.endpoints[0]?.targets).toEqual([{ port: 'http', address: '127.0.0.1:18081' }]);
});

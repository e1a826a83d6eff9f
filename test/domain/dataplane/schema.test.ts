import { describe, expect, test } from 'vitest';
import { decodeResource } from '../../../src/domain/resource/schema.js';

const TCP = [{ port: 80 }];
const UDP = [{ port: 53, protocol: 'udp' }];

function decode(spec: object) {
  return decodeResource({ apiVersion: 'holdfast/v1', kind: 'Service', metadata: { name: 'a' }, spec: { ports: TCP, ...spec } });
}

/** What a spec becomes, without what every service has. */
function specOf(spec: object): object {
  const decoded = decode(spec);
  if ('problems' in decoded) throw new Error(JSON.stringify(decoded.problems));
  const { ports: _, drain, endpoints, ...rest } = decoded.resource.spec as unknown as Readonly<Record<string, unknown>>;
  expect([drain, endpoints]).toEqual([{ timeout: '30s' }, []]);
  return rest;
}

const balance = { algorithm: 'random', locality: 'any' };
const times = { interval: '10s', timeout: '2s', rise: 2, fall: 3 };

describe('what a service says of its traffic', () => {
  test.each<{ name: string; spec: object; result: object }>([
    { name: 'nothing', spec: {}, result: { balance } },
    { name: 'to refuse while the view is stale', spec: { onStale: 'refuse' }, result: { balance, onStale: 'refuse' } },
    { name: 'to serve on', spec: { onStale: 'serve' }, result: { balance, onStale: 'serve' } },
    {
      name: 'least-connections, local endpoints first',
      spec: { balance: { algorithm: 'least-connections', locality: 'prefer-local' } },
      result: { balance: { algorithm: 'least-connections', locality: 'prefer-local' } },
    },
    {
      name: 'source-hash, local endpoints only',
      spec: { balance: { algorithm: 'source-hash', locality: 'local-only' } },
      result: { balance: { algorithm: 'source-hash', locality: 'local-only' } },
    },
    {
      name: 'affinity as it is when nothing more is said',
      spec: { affinity: { clientIP: {} } },
      result: { balance, affinity: { clientIP: { timeout: '3h' } } },
    },
    {
      name: 'affinity, the shortest',
      spec: { affinity: { clientIP: { timeout: '1s' } } },
      result: { balance, affinity: { clientIP: { timeout: '1s' } } },
    },
    { name: 'limits', spec: { limits: { connections: 1 } }, result: { balance, limits: { connections: 1 } } },
    {
      name: 'a PROXY header from clients',
      spec: { proxyProtocol: { accept: true } },
      result: { balance, proxyProtocol: { accept: true } },
    },
    {
      name: 'a PROXY header to endpoints',
      spec: { proxyProtocol: { send: 'v2' } },
      result: { balance, proxyProtocol: { accept: false, send: 'v2' } },
    },
    {
      name: 'a PROXY header where only one of the ports is tcp',
      spec: { ports: [...TCP, ...UDP], proxyProtocol: { accept: true, send: 'v1' } },
      result: { balance, proxyProtocol: { accept: true, send: 'v1' } },
    },
    { name: 'an idle timeout', spec: { idleTimeout: '90s' }, result: { balance, idleTimeout: '90s' } },
    { name: 'an idle timeout of udp', spec: { ports: UDP, idleTimeout: '1ms' }, result: { balance, idleTimeout: '1ms' } },
    { name: 'a tcp check', spec: { health: { tcp: {} } }, result: { balance, health: { tcp: {}, ...times } } },
    {
      name: 'an http check',
      spec: { health: { http: { path: '/healthz?full=1', port: 8081, host: 'example.com', status: 204 }, rise: 1, fall: 1 } },
      result: {
        balance,
        health: {
          http: { path: '/healthz?full=1', port: 8081, host: 'example.com', status: 204 },
          ...{ ...times, rise: 1, fall: 1 },
        },
      },
    },
    {
      name: 'a grpc check, of the whole server',
      spec: { health: { grpc: {}, interval: '1m', timeout: '1m' } },
      result: { balance, health: { grpc: { service: '' }, ...times, interval: '1m', timeout: '1m' } },
    },
    {
      name: 'a check more often than its usual timeout',
      spec: { health: { tcp: {}, interval: '500ms' } },
      result: { balance, health: { tcp: {}, ...times, interval: '500ms', timeout: '500ms' } },
    },
    {
      name: 'a check of a udp service on a tcp port',
      spec: { ports: UDP, health: { tcp: { port: 8080 } } },
      result: { balance, health: { tcp: { port: 8080 }, ...times } },
    },
  ])('$name', ({ spec, result }) => {
    expect(specOf(spec)).toEqual(result);
  });

  test('one number for tcp and udp, and the names that they get', () => {
    const decoded = decode({ ports: [{ port: 53 }, { port: 53, protocol: 'udp', targetPort: 5353 }] });
    expect(decoded).toMatchObject({
      resource: {
        spec: {
          ports: [
            { name: 'tcp-53', port: 53, targetPort: 53, protocol: 'tcp' },
            { name: 'udp-53', port: 53, targetPort: 5353, protocol: 'udp' },
          ],
        },
      },
    });
  });

  test('nodes of endpoints, in both kinds', () => {
    const endpoints = [{ address: '10.0.0.1', node: 'node-a' }];
    expect(decode({ endpoints })).toMatchObject({ resource: { spec: { endpoints } } });
    const published = {
      apiVersion: 'holdfast/v1',
      kind: 'Endpoints',
      metadata: { name: 'e' },
      spec: { service: 'a', endpoints },
    };
    expect(decodeResource(published)).toMatchObject({ resource: { spec: { endpoints } } });
  });
});

const SECONDS = 'a duration such as 30s or 5m, from';

describe('what is refused', () => {
  test.each<{ spec: object; problems: readonly (readonly [string, string])[] }>([
    {
      spec: { ports: [...UDP, ...UDP, { port: 53, name: 'udp-53' }] },
      problems: [
        ['ports[1]', 'port 53/udp stands in ports[0] already'],
        ['ports[2]', 'the port name udp-53 stands in ports[0] already'],
      ],
    },
    {
      spec: { balance: { locality: 'local' } },
      problems: [['balance.locality', 'expected any, prefer-local or local-only, found "local"']],
    },
    { spec: { affinity: true }, problems: [['affinity', 'expected a mapping, found true']] },
    { spec: { affinity: {} }, problems: [['affinity.clientIP', 'expected a mapping, found nothing']] },
    {
      spec: { affinity: { clientIP: { timeout: '25h' } } },
      problems: [['affinity.clientIP.timeout', `expected ${SECONDS} 1s to 24h, found "25h"`]],
    },
    {
      spec: { affinity: { clientIp: {} } },
      problems: [
        ['affinity.clientIP', 'expected a mapping, found nothing'],
        ['affinity.clientIp', 'unknown key; did you mean clientIP?'],
      ],
    },
    {
      spec: { limits: { connections: 0 } },
      problems: [['limits.connections', 'expected a whole number from 1 to 1000000, found 0']],
    },
    { spec: { limits: {} }, problems: [['limits.connections', 'expected a whole number from 1 to 1000000, found nothing']] },
    {
      spec: { proxyProtocol: {} },
      problems: [['proxyProtocol', 'expected accept: true, or send: v1 or v2; leave proxyProtocol out for neither']],
    },
    { spec: { proxyProtocol: { send: 2 } }, problems: [['proxyProtocol.send', 'expected v1 or v2, found 2']] },
    {
      spec: { ports: UDP, proxyProtocol: { accept: true } },
      problems: [['proxyProtocol', 'a PROXY header needs a tcp port, and this service has udp ports only']],
    },
    { spec: { idleTimeout: '0s' }, problems: [['idleTimeout', `expected ${SECONDS} 1ms to 24h, found "0s"`]] },
    { spec: { health: {} }, problems: [['health', 'expected one of tcp, http and grpc, found none']] },
    {
      spec: { health: { tcp: {}, grpc: {} } },
      problems: [['health', 'expected one of tcp, http and grpc, found tcp and grpc']],
    },
    {
      spec: { health: { http: {} } },
      problems: [['health.http.path', 'expected a path that begins with /, found nothing']],
    },
    {
      spec: { health: { http: { path: 'healthz' } } },
      problems: [['health.http.path', 'expected a path that begins with /, without spaces, found "healthz"']],
    },
    {
      spec: { health: { http: { path: '/a\r\nHost: b' } } },
      problems: [['health.http.path', 'expected a path that begins with /, without spaces, found "/a\\r\\nHost: b"']],
    },
    {
      spec: { health: { http: { path: '/', host: 'a b', status: 99 } } },
      problems: [
        ['health.http.host', 'expected a host name, found "a b"'],
        ['health.http.status', 'expected a whole number from 100 to 599, found 99'],
      ],
    },
    {
      spec: { health: { tcp: {}, interval: '1s', timeout: '2s' } },
      problems: [['health.timeout', 'expected at most the interval, 1s, found "2s"']],
    },
    {
      spec: { health: { tcp: {}, interval: '10ms', rise: 0, fall: 101 } },
      problems: [
        ['health.interval', `expected ${SECONDS} 100ms to 1h, found "10ms"`],
        ['health.rise', 'expected a whole number from 1 to 100, found 0'],
        ['health.fall', 'expected a whole number from 1 to 100, found 101'],
      ],
    },
    {
      spec: { ports: UDP, health: { http: { path: '/' } } },
      problems: [
        ['health.http.port', 'expected the tcp port that answers checks, since this service has udp ports only, found nothing'],
      ],
    },
    {
      spec: { endpoints: [{ address: '10.0.0.1', node: 'Node A' }] },
      problems: [
        [
          'endpoints[0].node',
          'expected the name of a node, a DNS-1123 label: 1 to 63 of a-z, 0-9 and -, not at either end, found "Node A"',
        ],
      ],
    },
  ])('$problems.0', ({ spec, problems }) => {
    expect(decode(spec)).toEqual({ problems: problems.map(([path, message]) => ({ path: `spec.${path}`, message })) });
  });
});

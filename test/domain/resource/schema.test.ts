import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeResource } from '../../../src/domain/resource/schema.js';

const service = (spec: object = {}, metadata: object = {}) => ({
  apiVersion: 'holdfast/v1',
  kind: 'Service',
  metadata: { name: 'hello', ...metadata },
  spec: { ports: [{ name: 'http', port: 80 }], ...spec },
});
const endpoints = (...list: readonly object[]) => ({
  apiVersion: 'holdfast/v1',
  kind: 'Endpoints',
  metadata: { name: 'hello' },
  spec: { service: 'hello', endpoints: list },
});
const withEndpoint = (endpoint: object) => service({ endpoints: [{ address: '127.0.0.1', ...endpoint }] });
/** As a parser of JSON or YAML gives it: `__proto__` is a key like another. */
const parsed = (json: string): object => JSON.parse(json);

describe('decodeResource: defaults', () => {
  test.each<{ name: string; document: object; resource: object }>([
    {
      name: 'the smallest service',
      document: { apiVersion: 'holdfast/v1', kind: 'Service', metadata: { name: 'a' }, spec: { ports: [{ port: 80 }] } },
      resource: {
        kind: 'Service',
        metadata: { name: 'a', namespace: 'default', labels: {} },
        spec: {
          ports: [{ name: 'tcp-80', port: 80, targetPort: 80, protocol: 'tcp' }],
          balance: { algorithm: 'random', locality: 'any' },
          drain: { timeout: '30s' },
          endpoints: [],
        },
      },
    },
    {
      name: 'a service that says everything',
      document: {
        apiVersion: 'holdfast/v1',
        kind: 'Service',
        metadata: { name: 'a', namespace: 'prod', labels: { 'example.com/tier': 'web', constructor: 'x', empty: '' } },
        spec: {
          ports: [
            { name: 'http', port: 80, targetPort: 8080, protocol: 'tcp' },
            { name: 'constructor', port: 9090 },
          ],
          vip: '10.192.0.9',
          balance: { algorithm: 'round-robin' },
          drain: { timeout: '24h' },
          endpoints: [{ name: 'one', address: '10.0.0.1', ports: { http: 18081, constructor: 1 }, weight: 100 }],
        },
      },
      resource: {
        kind: 'Service',
        metadata: { name: 'a', namespace: 'prod', labels: { 'example.com/tier': 'web', constructor: 'x', empty: '' } },
        spec: {
          ports: [
            { name: 'http', port: 80, targetPort: 8080, protocol: 'tcp' },
            { name: 'constructor', port: 9090, targetPort: 9090, protocol: 'tcp' },
          ],
          vip: '10.192.0.9',
          balance: { algorithm: 'round-robin', locality: 'any' },
          drain: { timeout: '24h' },
          endpoints: [{ name: 'one', address: '10.0.0.1', ports: { http: 18081, constructor: 1 }, weight: 100 }],
        },
      },
    },
    {
      name: 'Endpoints',
      document: endpoints({ address: '10.0.0.1' }, { address: '10.0.0.1', port: 18081, weight: 7, ready: false }),
      resource: {
        kind: 'Endpoints',
        metadata: { name: 'hello', namespace: 'default', labels: {} },
        spec: {
          service: 'hello',
          endpoints: [
            { name: 'ep-10-0-0-1', address: '10.0.0.1', weight: 1, ready: true },
            { name: 'ep-10-0-0-1-18081', address: '10.0.0.1', port: 18081, weight: 7, ready: false },
          ],
        },
      },
    },
    {
      name: 'Endpoints without any',
      document: endpoints(),
      resource: {
        kind: 'Endpoints',
        metadata: { name: 'hello', namespace: 'default', labels: {} },
        spec: { service: 'hello', endpoints: [] },
      },
    },
  ])('$name', ({ document, resource }) => {
    expect(decodeResource(document)).toEqual({ resource });
  });

  test.each<{ endpoint: { address: string; port?: number; ports?: Record<string, number> }; name: string; address: string }>([
    { endpoint: { address: '127.0.0.1' }, name: 'ep-127-0-0-1', address: '127.0.0.1' },
    { endpoint: { address: '127.0.0.1', port: 18081 }, name: 'ep-127-0-0-1-18081', address: '127.0.0.1' },
    { endpoint: { address: '127.0.0.1', ports: { http: 18081 } }, name: 'ep-127-0-0-1-18081', address: '127.0.0.1' },
    { endpoint: { address: '127.0.0.1', ports: { b: 2, a: 1 } }, name: 'ep-127-0-0-1-1-2', address: '127.0.0.1' },
    { endpoint: { address: '::' }, name: 'ep-0-0-0-0-0-0-0-0', address: '::' },
    { endpoint: { address: 'FE80::' }, name: 'ep-fe80-0-0-0-0-0-0-0', address: 'fe80::' },
    { endpoint: { address: '1:2::3' }, name: 'ep-1-2-0-0-0-0-0-3', address: '1:2::3' },
    { endpoint: { address: '1::2:3' }, name: 'ep-1-0-0-0-0-0-2-3', address: '1::2:3' },
    { endpoint: { address: '::ffff:1.2.3.4' }, name: 'ep-0-0-0-0-0-ffff-102-304', address: '::ffff:1.2.3.4' },
    {
      endpoint: { address: 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', ports: { a: 10_001, b: 10_002, c: 10_003, d: 10_004 } },
      name: 'ep-ffff-ffff-ffff-ffff-ffff-ffff-ffff-ffff',
      address: 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    },
  ])('an endpoint at $endpoint is called $name', ({ endpoint, name, address }) => {
    expect(decodeResource(endpoints(endpoint))).toMatchObject({
      resource: { spec: { endpoints: [{ ...endpoint, address, name }] } },
    });
  });

  test('law: made names are DNS labels, and two addresses never give the same', () => {
    const address = fc.oneof(fc.ipV4(), fc.ipV6());
    fc.assert(
      fc.property(
        fc.array(fc.record({ address, port: fc.integer({ min: 1, max: 65_535 }) }, { requiredKeys: ['address'] })),
        (list) => {
          const decoded = decodeResource(endpoints(...list));
          if ('problems' in decoded) {
            for (const { message } of decoded.problems)
              expect(message).toMatch(/^endpoint \S+ stands in endpoints\[\d+\] already$/);
          } else if (decoded.resource.kind === 'Endpoints') {
            const names = decoded.resource.spec.endpoints.map(({ name }) => name);
            for (const name of names) expect(name).toMatch(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);
            expect(new Set(names).size).toBe(list.length);
          }
        },
      ),
    );
  });

  test('law: what was decoded decodes to itself', () => {
    const decoded = decodeResource(
      service({ endpoints: [{ address: '1.2.3.4', port: 5 }, { address: '::1' }], vip: '10.192.0.7' }),
    );
    const again = decodeResource({ apiVersion: 'holdfast/v1', ...('resource' in decoded ? decoded.resource : {}) });
    expect(again).toEqual(decoded);
  });
});

const LABEL = 'a DNS-1123 label: 1 to 63 of a-z, 0-9 and -, not at either end';
const LABEL_KEY = 'a label key: letters, digits, . _ / -';
const LABEL_VALUE = 'a label value: at most 63 of letters, digits, . _ -';
const PORT = 'a port number, 1 to 65535';
const ADDRESS = 'an IPv4 or IPv6 address';
const WEIGHT = 'a whole number from 1 to 100';
const SPEC_KEYS =
  'unknown key; the keys here are ports, vip, balance, affinity, limits, proxyProtocol, idleTimeout, health, onStale, dataPath, drain, endpoints';
const NOT_BUILT = 'this key is not built yet in this version; remove it';
const long = 'x'.repeat(60);

describe('decodeResource: problems', () => {
  test.each<{ name: string; document: unknown; problems: readonly (readonly [path: string, message: string])[] }>([
    // Documents that are none.
    {
      name: 'null as the document',
      document: null,
      problems: [['', 'expected a mapping with apiVersion, kind, metadata and spec, found null']],
    },
    {
      name: 'nothing as the document',
      document: undefined,
      problems: [['', 'expected a mapping with apiVersion, kind, metadata and spec, found nothing']],
    },
    {
      name: 'a list as the document',
      document: [service(), service()],
      problems: [['', 'expected a mapping with apiVersion, kind, metadata and spec, found a list of 2']],
    },
    {
      name: 'a string as the document',
      document: 'kind: Service',
      problems: [['', 'expected a mapping with apiVersion, kind, metadata and spec, found "kind: Service"']],
    },
    { name: 'an empty document', document: {}, problems: [['kind', 'expected Service or Endpoints, found nothing']] },
    { name: 'a kind that is no text', document: { kind: 1 }, problems: [['kind', 'expected Service or Endpoints, found 1']] },
    {
      name: 'a misspelt kind',
      document: { kind: 'Servce' },
      problems: [['kind', 'expected Service or Endpoints, found "Servce"; did you mean Service?']],
    },
    {
      name: 'a kind of another system',
      document: { kind: 'Deployment' },
      problems: [['kind', 'expected Service or Endpoints, found "Deployment"']],
    },
    {
      name: 'a planned kind',
      document: { kind: 'Volume' },
      problems: [['kind', 'expected Service or Endpoints, found "Volume", which is not built yet in this version']],
    },
    {
      name: 'a kind and no more',
      document: { kind: 'Endpoints' },
      problems: [
        ['apiVersion', 'expected holdfast/v1, found nothing'],
        ['metadata', 'expected a mapping, found nothing'],
        ['spec', 'expected a mapping, found nothing'],
      ],
    },
    {
      name: 'another version',
      document: { ...service(), apiVersion: 'holdfast/v2' },
      problems: [['apiVersion', 'expected holdfast/v1, found "holdfast/v2"']],
    },
    {
      name: 'lists and null for mappings',
      document: { ...service(), metadata: [], spec: null },
      problems: [
        ['metadata', 'expected a mapping, found a list of 0'],
        ['spec', 'expected a mapping, found null'],
      ],
    },

    // Keys.
    {
      name: 'an unknown key with a near one',
      document: service({ drian: { timeout: '1s' } }),
      problems: [['spec.drian', 'unknown key; did you mean drain?']],
    },
    {
      name: 'unknown keys with none near, on every level',
      document: {
        ...service({ ports: [{ port: 80, listen: 'a' }], balance: { sticky: true } }, { annotations: {} }),
        status: {},
      },
      problems: [
        ['metadata.annotations', 'unknown key; the keys here are name, namespace, labels'],
        ['spec.ports[0].listen', 'unknown key; the keys here are name, port, targetPort, protocol'],
        ['spec.balance.sticky', 'unknown key; the keys here are algorithm, locality'],
        ['status', 'unknown key; the keys here are apiVersion, kind, metadata, spec'],
      ],
    },
    {
      name: 'planned keys of a service',
      document: service({ selector: {}, networkPolicy: {}, expose: {} }),
      problems: ['selector', 'networkPolicy', 'expose'].map((key) => [`spec.${key}`, NOT_BUILT]),
    },
    {
      name: 'planned keys of a port, of an endpoint',
      document: service({ ports: [{ port: 80, hostPort: 80 }], endpoints: [{ address: '1.2.3.4', health: {} }] }),
      problems: [
        ['spec.ports[0].hostPort', NOT_BUILT],
        ['spec.endpoints[0].health', NOT_BUILT],
      ],
    },
    {
      name: 'ready on an inline endpoint',
      document: withEndpoint({ ready: true }),
      problems: [['spec.endpoints[0].ready', 'unknown key; the keys here are name, address, port, ports, weight, node']],
    },
    {
      name: 'keys that objects have of their own',
      document: service(parsed('{"__proto__": {"vip": "10.192.0.2"}, "constructor": 1, "toString": 2}')),
      problems: ['__proto__', 'constructor', 'toString'].map((key) => [`spec.${key}`, SPEC_KEYS]),
    },
    {
      name: 'a kind that only a prototype has',
      document: parsed('{"__proto__": {"kind": "Service"}}'),
      problems: [['kind', 'expected Service or Endpoints, found nothing']],
    },
    {
      name: 'keys that are not plain words',
      document: service({ 'a.b': 1, 'new\nline': 2, [long]: 3, [`${long}${long}`]: 4, '\u009b31m\u202e': 5, '': 6 }),
      problems: [
        ['spec["a.b"]', SPEC_KEYS],
        ['spec["new\\nline"]', SPEC_KEYS],
        [`spec.${long}`, SPEC_KEYS],
        [`spec["${long}"… (120 characters)]`, SPEC_KEYS],
        ['spec["\\u009b31m\\u202e"]', SPEC_KEYS],
        ['spec[""]', SPEC_KEYS],
      ],
    },

    // Metadata.
    {
      name: 'no name',
      document: { ...service(), metadata: {} },
      problems: [['metadata.name', 'expected a name, found nothing']],
    },
    {
      name: 'a name that is a number',
      document: service({}, { name: 1 }),
      problems: [['metadata.name', 'expected a name, found 1']],
    },
    {
      name: 'an empty name and a long namespace',
      document: service({}, { name: '', namespace: 'n'.repeat(64) }),
      problems: [
        ['metadata.name', `expected ${LABEL}, found ""`],
        ['metadata.namespace', `expected ${LABEL}, found "${'n'.repeat(60)}"… (64 characters)`],
      ],
    },
    {
      name: 'a name with capitals and a namespace that ends with -',
      document: service({}, { name: 'Hello', namespace: 'prod-' }),
      problems: [
        ['metadata.name', `expected ${LABEL}, found "Hello"`],
        ['metadata.namespace', `expected ${LABEL}, found "prod-"`],
      ],
    },
    {
      name: 'a name with a line break after it',
      document: service({}, { name: 'hello\n' }),
      problems: [['metadata.name', `expected ${LABEL}, found "hello\\n"`]],
    },
    {
      name: 'null as the namespace',
      document: service({}, { namespace: null }),
      problems: [['metadata.namespace', 'expected a name, found null']],
    },
    {
      name: 'labels as a list',
      document: service({}, { labels: ['a'] }),
      problems: [['metadata.labels', 'expected a mapping of labels, found a list of 1']],
    },
    {
      name: 'bad label keys and values',
      document: service({}, { labels: { 'a b': 'x', '-a': 'x', ok: '-', n: 1, 'example.com/t': null, gone: {} } }),
      problems: [
        ['metadata.labels["a b"]', `expected ${LABEL_KEY}, found "a b"`],
        ['metadata.labels.-a', `expected ${LABEL_KEY}, found "-a"`],
        ['metadata.labels.ok', `expected ${LABEL_VALUE}, found "-"`],
        ['metadata.labels.n', 'expected a string, found 1'],
        ['metadata.labels["example.com/t"]', 'expected a string, found null'],
        ['metadata.labels.gone', 'expected a string, found a mapping'],
      ],
    },
    {
      name: '__proto__ as a label',
      document: service({}, { labels: parsed('{"__proto__": "x"}') }),
      problems: [['metadata.labels.__proto__', `expected ${LABEL_KEY}, found "__proto__"`]],
    },
    {
      name: 'too many labels',
      document: service({}, { labels: Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`l${index}`, ''])) }),
      problems: [['metadata.labels', 'expected at most 64 labels, found 65']],
    },

    // Ports of a service.
    {
      name: 'no ports',
      document: service({ ports: undefined }),
      problems: [['spec.ports', 'expected a list of ports, found nothing']],
    },
    {
      name: 'empty ports',
      document: service({ ports: [] }),
      problems: [['spec.ports', 'expected at least one port, found a list of 0']],
    },
    {
      name: 'too many ports',
      document: service({ ports: Array.from({ length: 65 }, (_, index) => ({ port: index + 1 })) }),
      problems: [['spec.ports', 'expected at most 64 ports, found a list of 65']],
    },
    {
      name: 'ports as a mapping',
      document: service({ ports: { http: 80 } }),
      problems: [['spec.ports', 'expected a list of ports, found a mapping']],
    },
    {
      name: 'ports as numbers',
      document: service({ ports: [80, null, '80', [80]] }),
      problems: [
        ['spec.ports[0]', 'expected a mapping, found 80'],
        ['spec.ports[1]', 'expected a mapping, found null'],
        ['spec.ports[2]', 'expected a mapping, found "80"'],
        ['spec.ports[3]', 'expected a mapping, found a list of 1'],
      ],
    },
    {
      name: 'port numbers that are none',
      document: service({
        ports: [0, 70_000, '80', 80.5, null, -1, true, Number.NaN, Number.POSITIVE_INFINITY, undefined, 10n].map((port) => ({
          port,
        })),
      }),
      problems: ['0', '70000', '"80"', '80.5', 'null', '-1', 'true', 'NaN', 'Infinity', 'nothing', '10'].map((found, index) => [
        `spec.ports[${index}].port`,
        `expected ${PORT}, found ${found}`,
      ]),
    },
    {
      name: 'a bad target port',
      document: service({ ports: [{ port: 80, targetPort: 'http' }] }),
      problems: [['spec.ports[0].targetPort', `expected ${PORT}, found "http"`]],
    },
    {
      name: 'a bad port name',
      document: service({ ports: [{ port: 80, name: 'HTTP' }] }),
      problems: [['spec.ports[0].name', `expected ${LABEL}, found "HTTP"`]],
    },
    {
      name: 'protocols that are none',
      document: service({
        ports: [
          { port: 81, protocol: 'sctp' },
          { port: 82, protocol: null },
        ],
      }),
      problems: [
        ['spec.ports[0].protocol', 'expected tcp or udp, found "sctp"'],
        ['spec.ports[1].protocol', 'expected tcp or udp, found null'],
      ],
    },
    {
      name: 'duplicate ports and port names',
      document: service({
        ports: [{ port: 80 }, { port: 80 }, { port: 81, name: 'tcp-80' }, { port: 80, name: 'web' }, { port: 82, name: 'web' }],
      }),
      problems: [
        ['spec.ports[1]', 'port 80/tcp stands in ports[0] already'],
        ['spec.ports[2]', 'the port name tcp-80 stands in ports[0] already'],
        ['spec.ports[3]', 'port 80/tcp stands in ports[0] already'],
        ['spec.ports[4]', 'the port name web stands in ports[3] already'],
      ],
    },

    // The rest of a service.
    ...[
      '01.2.3.4',
      '1.2.3',
      '1.2.3.4.5',
      '1.2.3.256',
      '::g',
      'fe80::1%eth0',
      '[::1]',
      '10.192.0.2/32',
      'localhost',
      ' 1.2.3.4',
      '',
    ].map((vip) => ({
      name: `the address "${vip}"`,
      document: service({ vip }),
      problems: [['spec.vip', `expected ${ADDRESS}, found "${vip}"`] as const],
    })),
    {
      name: 'a number as an address',
      document: service({ vip: 16_909_060 }),
      problems: [['spec.vip', `expected ${ADDRESS}, found 16909060`]],
    },
    {
      name: 'an unknown algorithm',
      document: service({ balance: { algorithm: 'Random' } }),
      problems: [['spec.balance.algorithm', 'expected random, round-robin, least-connections or source-hash, found "Random"']],
    },
    {
      name: 'balance as text',
      document: service({ balance: 'random' }),
      problems: [['spec.balance', 'expected a mapping, found "random"']],
    },
    {
      name: 'drain as a number',
      document: service({ drain: { timeout: 30 } }),
      problems: [['spec.drain.timeout', 'expected a duration such as 30s or 5m, found 30']],
    },
    ...['-1s', '25h', '30', '1.5s', '1h30m', '86401s', ''].map((timeout) => ({
      name: `a drain of "${timeout}"`,
      document: service({ drain: { timeout } }),
      problems: [['spec.drain.timeout', `expected a duration such as 30s or 5m, at most 24h, found "${timeout}"`] as const],
    })),

    // Endpoints.
    {
      name: 'endpoints as null',
      document: service({ endpoints: null }),
      problems: [['spec.endpoints', 'expected a list of endpoints, found null']],
    },
    {
      name: 'too many endpoints',
      document: service({ endpoints: Array.from({ length: 1001 }, (_, index) => ({ address: '1.2.3.4', port: index + 1 })) }),
      problems: [['spec.endpoints', 'expected at most 1000 endpoints, found a list of 1001']],
    },
    {
      name: 'an endpoint without an address',
      document: service({ endpoints: [{ port: 80 }] }),
      problems: [['spec.endpoints[0].address', `expected ${ADDRESS}, found nothing`]],
    },
    ...[0, 101, 1.5, -1, '1', null].map((weight) => ({
      name: `a weight of ${JSON.stringify(weight)}`,
      document: withEndpoint({ weight }),
      problems: [['spec.endpoints[0].weight', `expected ${WEIGHT}, found ${JSON.stringify(weight)}`] as const],
    })),
    {
      name: 'both port and ports',
      document: withEndpoint({ port: 80, ports: { http: 80 } }),
      problems: [['spec.endpoints[0].ports', 'expected either port or ports, found both']],
    },
    {
      name: 'empty ports of an endpoint',
      document: withEndpoint({ ports: {} }),
      problems: [['spec.endpoints[0].ports', 'expected at least one port name, found a mapping']],
    },
    {
      name: 'bad ports of an endpoint',
      document: withEndpoint({ ports: { HTTP: 80, http: 0, x: '80' } }),
      problems: [
        ['spec.endpoints[0].ports.HTTP', `expected ${LABEL}, found "HTTP"`],
        ['spec.endpoints[0].ports.http', `expected ${PORT}, found 0`],
        ['spec.endpoints[0].ports.x', `expected ${PORT}, found "80"`],
      ],
    },
    {
      name: 'ports of an endpoint as a list',
      document: withEndpoint({ ports: [80] }),
      problems: [['spec.endpoints[0].ports', 'expected a mapping of port names to port numbers, found a list of 1']],
    },
    {
      name: '__proto__ as a port name',
      document: withEndpoint({ ports: parsed('{"__proto__": 80}') }),
      problems: [['spec.endpoints[0].ports.__proto__', `expected ${LABEL}, found "__proto__"`]],
    },
    {
      name: 'a port on a service with several',
      document: service({
        ports: [
          { port: 80, name: 'http' },
          { port: 90, name: 'metrics' },
        ],
        endpoints: [{ address: '::1', port: 80 }],
      }),
      problems: [['spec.endpoints[0].port', 'expected ports by name, since the service has several: http, metrics']],
    },
    {
      name: 'port names that the service does not have',
      document: withEndpoint({ ports: { http: 80, htpp: 81, constructor: 82 } }),
      problems: [
        ['spec.endpoints[0].ports.htpp', 'expected a port name of the service, http, found "htpp"'],
        ['spec.endpoints[0].ports.constructor', 'expected a port name of the service, http, found "constructor"'],
      ],
    },
    {
      name: 'duplicate endpoints',
      document: service({
        endpoints: [
          { address: '1.2.3.4', port: 80 },
          { name: 'again', address: '1.2.3.4', port: 80 },
          { address: '::1', port: 80 },
          { address: '0:0::1', port: 80 },
          { name: 'one', address: '::1:80' },
          { name: 'one', address: '::1:81' },
          { name: 'two', address: '1.2.3.4', ports: { http: 80 } },
          { name: 'three', address: '1.2.3.4', ports: { http: 80 } },
        ],
      }),
      problems: [
        ['spec.endpoints[1]', 'endpoint 1.2.3.4:80 stands in endpoints[0] already'],
        ['spec.endpoints[3]', 'endpoint [::1]:80 stands in endpoints[2] already'],
        ['spec.endpoints[5]', 'the endpoint name one stands in endpoints[4] already'],
        ['spec.endpoints[7]', 'endpoint 1.2.3.4, http 80 stands in endpoints[6] already'],
      ],
    },
    {
      name: 'ready as text, a bad service',
      document: { ...endpoints({ address: '1.2.3.4', ready: 'yes' }), metadata: { name: 'a' } },
      problems: [['spec.endpoints[0].ready', 'expected true or false, found "yes"']],
    },
    {
      name: 'Endpoints of no service',
      document: { ...endpoints(), spec: { endpoints: [] } },
      problems: [['spec.service', 'expected a name, found nothing']],
    },
    {
      name: 'Endpoints of a service elsewhere',
      document: { ...endpoints(), spec: { service: 'other/hello', endpoints: [] } },
      problems: [['spec.service', `expected ${LABEL}, found "other/hello"`]],
    },
    {
      name: 'Endpoints without endpoints',
      document: { ...endpoints(), spec: { service: 'hello' } },
      problems: [['spec.endpoints', 'expected a list of endpoints, found nothing']],
    },

    // What a terminal is shown.
    {
      name: 'a very long string',
      document: service({ vip: '1'.repeat(1_000_000) }),
      problems: [['spec.vip', `expected ${ADDRESS}, found "${'1'.repeat(60)}"… (1000000 characters)`]],
    },
    {
      name: 'a string that would drive a terminal',
      document: service({ vip: '\u001b[2J\u009b2J\u202e\ud800' }),
      problems: [['spec.vip', `expected ${ADDRESS}, found "\\u001b[2J\\u009b2J\\u202e\\ud800"`]],
    },
    {
      name: 'more than twenty problems',
      document: service({ ports: Array.from({ length: 30 }, () => ({ port: 0 })) }),
      problems: Array.from({ length: 20 }, (_, index) => [`spec.ports[${index}].port`, `expected ${PORT}, found 0`] as const),
    },
    {
      name: 'more than twenty unknown keys',
      document: service(Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`zzzz-${index}`, 1]))),
      problems: Array.from({ length: 20 }, (_, index) => [`spec.zzzz-${index}`, SPEC_KEYS] as const),
    },
  ])('$name', ({ document, problems }) => {
    expect(decodeResource(document)).toEqual({ problems: problems.map(([path, message]) => ({ path, message })) });
  });

  test('law: nothing that a parser gives makes it throw, and what is refused has a reason', () => {
    const spec = fc.record(
      { ports: fc.jsonValue(), vip: fc.jsonValue(), balance: fc.jsonValue(), drain: fc.jsonValue(), endpoints: fc.jsonValue() },
      { requiredKeys: [] },
    );
    const document = fc.oneof(
      fc.jsonValue(),
      fc.record({
        kind: fc.constantFrom('Service', 'Endpoints'),
        metadata: fc.jsonValue(),
        spec: fc.oneof(spec, fc.jsonValue()),
      }),
    );
    fc.assert(
      fc.property(document, (value) => {
        const decoded = decodeResource(value);
        if ('problems' in decoded) {
          expect(decoded.problems.length).toBeGreaterThan(0);
          expect(decoded.problems.length).toBeLessThanOrEqual(20);
        }
      }),
    );
  });
});

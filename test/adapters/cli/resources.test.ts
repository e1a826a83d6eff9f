import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { listenerId } from '../../../src/domain/dataplane/compile.js';
import { qualifiedName } from '../../../src/domain/resource/model.js';
import { cliRig } from '../../support/cli-rig.js';
import { endpoint as tcpEndpoint } from '../../support/listeners.js';
import { endpointsDocument, serviceDocument } from '../../support/resource-rig.js';

const yaml = (...values: readonly unknown[]) => values.map((value) => `---\n${JSON.stringify(value)}\n`).join('');
const done = (out: string, err = '') => ({ code: 0, out, err });
const endpoint = (port: number) => ({ address: '127.0.0.1', port });

async function setUp() {
  const rig = await cliRig();
  rig.listeners.set('default/web/http', { state: 'listening', port: 8080 });
  const apply = async (...values: readonly unknown[]) => {
    const ran = await rig.cli(['apply', '-f', '-'], { stdin: yaml(...values) });
    if (ran.code !== 0) throw new Error(ran.err);
  };
  return { ...rig, apply };
}

describe('apply', () => {
  test('says what became of each, and where it is reached', async () => {
    const { cli } = await setUp();
    const stdin = yaml(serviceDocument('web'), endpointsDocument('e', 'later', [endpoint(1)]));
    expect(await cli(['apply', '-f', '-'], { stdin })).toEqual(
      done(
        'service/web created  10.192.0.2:8080\nendpoints/e created\n',
        'revision 1\nwarning: endpoints/e: there is no service later yet in namespace default\n',
      ),
    );
    expect(await cli(['apply', '-f', '-', '--dry-run'], { stdin })).toMatchObject({
      out: 'service/web unchanged (dry run)\nendpoints/e unchanged (dry run)\n',
    });
    const json = await cli(['apply', '-f', '-', '-o', 'json'], { stdin: yaml(serviceDocument('web')) });
    const resource = { kind: 'Service', namespace: 'default', name: 'web', action: 'unchanged', addresses: ['10.192.0.2:8080'] };
    expect(JSON.parse(json.out)).toEqual({ revision: 1, resources: [resource] });
    const asYaml = await cli(['apply', '-f', '-', '-o', 'yaml'], { stdin: yaml(serviceDocument('web')) });
    expect(parse(asYaml.out)).toEqual(JSON.parse(json.out));
  });

  test('its revision is what get waits for, and a stale answer says how old it is', async () => {
    const { cli, apply } = await setUp();
    await apply(serviceDocument('web'));
    const got = await cli(['get', 'services', '--stale', '--at-least', '1']);
    expect(got).toMatchObject({ code: 0, out: expect.stringContaining('web') });
    expect(got.err).toMatch(/^as of revision 1, known to be the newest \d+\.\d s ago\n$/);
    expect((await cli(['describe', 'service/web', '--stale'])).err).toContain('as of revision 1');
    const stop = new AbortController();
    const watched = await cli(['watch', 'services', '--stale'], { signal: stop.signal, onOut: () => stop.abort() });
    expect(watched).toMatchObject({ out: expect.stringMatching(/^1 {2}added {2}service\/web {2}/) });
    expect(watched.err).toMatch(/^as of revision \d+, known to be the newest \d+\.\d s ago\n/);
    expect((await cli(['get', '--at-least', 'x'])).code).toBe(2);
  });

  test.each([
    ['json', ['service/web']],
    ['yaml', ['service/web']],
    ['json', []],
    ['yaml', ['-A']],
  ])('takes back what get -o %s %j prints', async (format, args) => {
    const { cli, apply } = await setUp();
    const endpoints = endpointsDocument('e', 'web', [endpoint(1)]);
    await apply(serviceDocument('web', { endpoints: [endpoint(2)] }, { tier: 'web' }), endpoints);
    const { out } = await cli(['get', ...args, '-o', format]);
    const again = await cli(['apply', '-f', '-'], { stdin: out });
    expect([again.code, again.err]).toEqual([0, 'revision 1\n']);
    expect(again.out.split('\n').map((line) => line.split(' ')[1])).not.toContain('updated');
    expect(again.out).toContain('service/web unchanged');
    expect(await cli(['diff', '-f', '-', '--exit-code'], { stdin: out })).toEqual(done(''));
    expect((await cli(['delete', '-f', '-'], { stdin: out })).out).toContain('service/web deleted');
  });

  test('what is wrong in a list is told by its place there, and by the line', async () => {
    const { cli, dataDir } = await setUp();
    const file = join(dataDir, 'l.yaml');
    const ports = (port: number) => `    spec:\n      ports:\n        - port: ${port}\n`;
    const item = (name: string, port: number) =>
      `  - apiVersion: holdfast/v1\n    kind: Service\n    metadata: { name: ${name} }\n${ports(port)}`;
    const list = `---\napiVersion: holdfast/v1\nkind: List\nitems:\n${item('a', 80)}${item('b', 0)}`;
    await writeFile(file, list);
    const told = await cli(['apply', '-f', file]);
    const at = `${file}:16: document 1, items[1].spec.ports[0].port`;
    expect(told.err).toBe(`${at}: expected a port number, 1 to 65535, found 0\nnothing was changed\n`);
    await writeFile(file, `${list.replace('port: 0', 'port: 1')}---\nkind: List\napiVersion: holdfast/v1\nitms: []\n`);
    expect((await cli(['apply', '-f', file])).err).toMatch(
      /l\.yaml:20: document 2, itms: unknown key; .*\n {2}.*l\.yaml:18: document 2, items: expected a list of objects, found nothing\n/,
    );
    const twice = await cli(['apply', '-f', '-'], { stdin: list.replace('port: 0', 'port: 1').replace('name: b', 'name: a') });
    expect(twice.err).toContain('items[1].metadata.name: service/a is in the request already, in document 1, items[0]\n');
  });

  test('endpoints and their service in one request are no reason to warn, also in a dry run', async () => {
    const { cli } = await setUp();
    const stdin = yaml(endpointsDocument('e', 'web', [endpoint(1)]), serviceDocument('web'));
    expect((await cli(['apply', '-f', '-', '--dry-run'], { stdin })).err).toBe('');
    expect((await cli(['diff', '-f', '-'], { stdin })).err).toBe('');
  });

  test('every problem by file and line; nothing was changed', async () => {
    const { cli, dataDir, log } = await setUp();
    const file = join(dataDir, 'a.yaml');
    await writeFile(
      file,
      'apiVersion: holdfast/v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n    - port: 0\n    - prt: 1\n',
    );
    expect(await cli(['apply', '-f', file])).toEqual({
      code: 1,
      out: '',
      err: [
        `${file}:7: document 1, spec.ports[0].port: expected a port number, 1 to 65535, found 0`,
        `${file}:8: document 1, spec.ports[1].port: expected a port number, 1 to 65535, found nothing`,
        `${file}:8: document 1, spec.ports[1].prt: unknown key; did you mean port?`,
        'nothing was changed',
        '',
      ].join('\n'),
    });
    expect(log.dump()).toBe('');
  });

  test.each([
    ['a file that is not there', ['-f', '/absent.yaml'], '', /^error: resource.invalid: \/absent.yaml: there is no such file/],
    ['what is no YAML', ['-f', '-'], 'a: [', /^error: resource.invalid: standard input:1: /],
    ['nothing', ['-f', '-'], '', /^error: resource.invalid: no document in -\n {2}what to do: mend the manifest/],
  ])('%s', async (_, args, stdin, err) => {
    const { cli } = await setUp();
    expect(await cli(['apply', ...args], { stdin })).toEqual({ code: 1, out: '', err: expect.stringMatching(err) });
  });

  test('prune removes what the same source held before; of standard input it needs a name', async () => {
    const { cli } = await setUp();
    const apply = (...values: readonly unknown[]) =>
      cli(['apply', '-f', '-', '--prune', '--source', 's'], { stdin: yaml(...values) });
    await apply(serviceDocument('a'), serviceDocument('b'));
    expect((await apply(serviceDocument('b'))).out).toBe('service/a deleted\nservice/b unchanged  10.192.0.3:80\n');
    const unnamed = await cli(['apply', '-f', '-', '--prune'], { stdin: yaml(serviceDocument('b')) });
    expect(unnamed).toMatchObject({ code: 2, err: expect.stringContaining('needs --source NAME') });
  });
});

describe('diff', () => {
  test('shows what apply would change, and nothing else', async () => {
    const { cli, apply } = await setUp();
    await apply(serviceDocument('web'), serviceDocument('same'));
    const stdin = yaml(serviceDocument('web', { ports: [{ name: 'http', port: 81 }] }), serviceDocument('same'));
    const { code, out } = await cli(['diff', '-f', '-'], { stdin });
    expect(code).toBe(0);
    const [head, ...lines] = out.split('\n').filter((line) => /^[-+]/.test(line) || line.startsWith('---'));
    expect([head, ...lines]).toEqual([
      '--- service/web\tnow',
      '+++ service/web\tafter apply',
      '-      port: 80',
      '+      port: 81',
      '-      targetPort: 80',
      '+      targetPort: 81',
    ]);
    expect((await cli(['diff', '-f', '-', '--exit-code'], { stdin })).code).toBe(1);
    expect(await cli(['diff', '-f', '-', '--exit-code'], { stdin: yaml(serviceDocument('web')) })).toEqual(done(''));
    const json = JSON.parse((await cli(['diff', '-f', '-', '-o', 'json'], { stdin: yaml(serviceDocument('new')) })).out);
    expect(json.resources).toMatchObject([
      { name: 'new', action: 'created', before: null, after: { metadata: { name: 'new' } } },
    ]);
  });
});

describe('get', () => {
  test('tables of what there is', async () => {
    const { cli, apply, listeners } = await setUp();
    listeners.set('default/web/admin', { state: 'failed', reason: 'bind: in use', remedy: 'free it', since: 1 });
    const ports = [
      { name: 'http', port: 80 },
      { name: 'admin', port: 81 },
    ];
    const endpoints = endpointsDocument('e', 'web', [{ address: '127.0.0.1' }, { address: '127.0.0.2', ready: false }]);
    await apply(serviceDocument('web', { ports }), serviceDocument('db'), endpoints);
    const services = [
      'SERVICE  ADDRESS     PORTS                                             ENDPOINTS',
      'db       10.192.0.3  http 80 (pending)                                 0/0 ready',
      'web      10.192.0.2  http 80 -> 8080, admin 81 (failed: bind: in use)  1/2 ready',
      '',
    ].join('\n');
    expect(await cli(['get'])).toEqual(done(`${services}\nENDPOINTS  SERVICE  COUNT\ne          web      2\n`));
    expect(await cli(['get', 'svc'])).toEqual(done(services));
    expect(await cli(['get', 'svc', '-A'])).toEqual(
      done(
        [
          'NAMESPACE  SERVICE  ADDRESS     PORTS                                             ENDPOINTS',
          'default    db       10.192.0.3  http 80 (pending)                                 0/0 ready',
          'default    web      10.192.0.2  http 80 -> 8080, admin 81 (failed: bind: in use)  1/2 ready',
          '',
        ].join('\n'),
      ),
    );
  });

  test('one is an object, several are a list, in JSON and YAML', async () => {
    const { cli, apply } = await setUp();
    await apply(serviceDocument('web'));
    const one = JSON.parse((await cli(['get', 'service/web', '-o', 'json'])).out);
    expect(one).toMatchObject({
      apiVersion: 'holdfast/v1',
      kind: 'Service',
      metadata: { name: 'web', revision: '1', source: '-' },
    });
    expect(parse((await cli(['get', 'svc', 'web', '-o', 'yaml'])).out)).toEqual(one);
    for (const args of [
      ['get', 'svc'],
      ['get', 'all', 'web'],
      ['get', 'svc', 'web', '-A'],
    ]) {
      expect(JSON.parse((await cli([...args, '-o', 'json'])).out)).toEqual({
        apiVersion: 'holdfast/v1',
        kind: 'List',
        items: [one],
      });
    }
  });

  test('nothing is said on standard error, and is no failure unless it was asked for by name', async () => {
    const { cli } = await setUp();
    expect(await cli(['get', 'svc', '-n', 'prod'])).toEqual(
      done('', 'nothing found in namespace prod; -A looks in all of them\n'),
    );
    expect(await cli(['get', 'svc', '-A'])).toEqual(done('', 'nothing found\n'));
    expect(JSON.parse((await cli(['get', 'svc', '-o', 'json'])).out)).toMatchObject({ kind: 'List', items: [] });
    expect(await cli(['get', 'svc', 'web'])).toEqual({
      code: 1,
      out: '',
      err: 'error: resource.not_found: service/web in namespace default\n  what to do: list what there is with `holdfast get`\n',
    });
  });

  test('by labels', async () => {
    const { cli, apply } = await setUp();
    await apply(serviceDocument('web', {}, { tier: 'web' }), serviceDocument('db'));
    expect(JSON.parse((await cli(['get', '-l', 'tier=web', '-o', 'json'])).out).items).toHaveLength(1);
    expect(JSON.parse((await cli(['get', '-l', '!tier', '-o', 'json'])).out).items).toMatchObject([{ metadata: { name: 'db' } }]);
  });
});

describe('watch', () => {
  test.each([
    [
      'table',
      ['get', 'svc', '-w'],
      /^1 {2}added {2}service\/web {2}10.192.0.2 http 80 -> 8080 0\/0 ready\n2 {2}deleted {2}service\/web .*\n$/,
    ],
    [
      'json',
      ['watch', 'svc', '-o', 'json'],
      /^\{"revision":1,"type":"added","object":\{.*\}\}\n\{"revision":2,"type":"deleted",.*\n$/,
    ],
    ['yaml', ['watch', '-o', 'yaml'], /^---\nrevision: 1\ntype: added\nobject:\n(.*\n)+---\nrevision: 2\ntype: deleted\n/],
  ])('%s: a line each, and a quiet end', async (_, args, expected) => {
    const { cli, apply } = await setUp();
    await apply(serviceDocument('web'));
    const abort = new AbortController();
    const onOut = (out: string) => {
      if (out.includes('added') && !out.includes('deleted')) void cli(['delete', 'service/web']);
      if (out.includes('deleted')) abort.abort(new Error('SIGINT'));
    };
    expect(await cli(args, { signal: abort.signal, onOut })).toEqual({ code: 0, out: expect.stringMatching(expected), err: '' });
  });
});

describe('describe', () => {
  const tail = (out: string) => out.slice(out.indexOf('address: 10'));

  test('everything about a service, with its traffic', async () => {
    const { cli, apply, operations } = await setUp();
    await apply(serviceDocument('web', { endpoints: [endpoint(18_081), { ...endpoint(18_082), weight: 3 }] }));
    const counters = { completed: 0, failed: 0, refused: 0, reset: 0, drained: 0, bytesIn: 0, bytesOut: 0, dialFailures: 0 };
    const more = { limited: 0, evicted: 0, dropped: 0, protocol: 'tcp', declaredEndpoints: 2 };
    const endpoints = [{ ...endpoint(18_081), active: 2, total: 9, draining: false, ejected: false }];
    operations.listeners = [{ id: 'default/web/http', active: 0, ...counters, ...more, endpoints }] as never;
    const { code, out, err } = await cli(['describe', 'svc', 'web']);
    expect([code, err, parse(out.slice(0, out.indexOf('address: 10')))]).toMatchObject([0, '', { metadata: { name: 'web' } }]);
    expect(tail(out)).toBe(
      [
        'address: 10.192.0.2',
        '',
        'PORT  NUMBER  STATE      LISTENS ON',
        'http  80      listening  10.192.0.2:8080',
        '',
        'ENDPOINT         PORT  FROM    WEIGHT  READY  ACTIVE  TOTAL',
        '127.0.0.1:18081  http  inline  1       yes    2       9',
        '127.0.0.1:18082  http  inline  3       yes    0       0',
        '',
      ].join('\n'),
    );
  });

  test('a row per endpoint and port, with the traffic of each', async () => {
    const { cli, apply, operations } = await setUp();
    const ports = ['http', 'admin'].map((name, index) => ({ name, port: 80 + index }));
    await apply(
      serviceDocument('web', { ports, endpoints: [{ address: '127.0.0.1', ports: { admin: 80 } }, { address: '::1' }] }),
    );
    const ended = { completed: 0, failed: 0, refused: 0, limited: 0, evicted: 0, dropped: 0, reset: 0, drained: 0 };
    const counters = {
      active: 0,
      ...ended,
      bytesIn: 0,
      bytesOut: 0,
      dialFailures: 0,
      protocol: 'tcp',
      declaredEndpoints: 2,
    } as const;
    const one = { ...tcpEndpoint(80), active: 2, total: 9, draining: false, ejected: false };
    operations.listeners = [
      { id: listenerId(qualifiedName('default', 'web'), 'http'), ...counters, endpoints: [one] },
      { id: listenerId(qualifiedName('default', 'web'), 'admin'), ...counters, endpoints: [{ ...one, active: 0, total: 1 }] },
    ];
    const { out } = await cli(['describe', 'svc', 'web']);
    expect(out.slice(out.indexOf('ENDPOINT'))).toBe(
      [
        'ENDPOINT      PORT   FROM    WEIGHT  READY  ACTIVE  TOTAL',
        '127.0.0.1:80  http   inline  1       yes    2       9',
        '127.0.0.1:80  admin  inline  1       yes    0       1',
        '[::1]:80      http   inline  1       yes    0       0',
        '[::1]:81      admin  inline  1       yes    0       0',
        '',
      ].join('\n'),
    );
  });

  test('why there can be no traffic', async () => {
    const { cli, apply, listeners } = await setUp();
    await apply(serviceDocument('web'));
    const said = async () =>
      (await cli(['describe', 'svc', 'web'])).out.split('\n').filter((line) => line.startsWith('NO TRAFFIC'));
    const none =
      'the service has no endpoints, so that connections are accepted and reset at once; add spec.endpoints, or an Endpoints object with spec.service: web';
    expect(await said()).toEqual([`NO TRAFFIC: ${none}`]);
    await apply(endpointsDocument('e', 'web', [{ address: '127.0.0.1', ready: false }]));
    const only =
      'its only endpoint is not ready, so that connections are accepted and reset at once; see the Endpoints objects that publish them';
    expect(await said()).toEqual([`NO TRAFFIC: ${only}`]);
    const two = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, ready: false }));
    await apply(endpointsDocument('e', 'web', two));
    expect((await said())[0]).toContain('none of its 2 endpoints is ready');
    listeners.set('default/web/http', { state: 'failed', reason: 'bind: in use', remedy: 'free it', since: 1 });
    await apply(endpointsDocument('e', 'web', [{ address: '127.0.0.1' }]));
    expect(await said()).toEqual(['NO TRAFFIC: port http (80) does not listen: bind: in use; free it']);
    listeners.set('default/web/http', { state: 'pending' });
    expect(await said()).toEqual(['NO TRAFFIC: port http (80) does not listen yet']);
    listeners.set('default/web/http', { state: 'elsewhere' });
    expect(await said()).toEqual([]);
    expect((await cli(['get', 'svc', 'web'])).out).toContain('http 80  1/1 ready');
    listeners.set('default/web/http', { state: 'listening', port: 80 });
    expect(await said()).toEqual([]);
  });

  test('Endpoints as their manifest, several one after the other, and none is an error', async () => {
    const { cli, apply } = await setUp();
    await apply(endpointsDocument('e', 'web', []), endpointsDocument('f', 'web', []));
    const { out } = await cli(['describe', 'ep']);
    expect(out.match(/^ {2}name: [ef]$/gm)).toEqual(['  name: e', '  name: f']);
    expect(JSON.parse((await cli(['describe', 'ep', '-o', 'json'])).out)).toHaveLength(2);
    expect(await cli(['describe', 'svc', 'absent'])).toMatchObject({
      code: 1,
      out: '',
      err: /service\/absent in namespace default/,
    });
  });
});

describe('delete', () => {
  test('by name, by several names, by manifest', async () => {
    const { cli, apply } = await setUp();
    await apply(...['a', 'b', 'c', 'd'].map((name) => serviceDocument(name)));
    expect(await cli(['delete', 'svc', 'a', '--dry-run'])).toEqual(done('service/a deleted (dry run)\n'));
    expect(await cli(['delete', 'svc', 'a', 'b'])).toEqual(done('service/a deleted\nservice/b deleted\n'));
    expect(JSON.parse((await cli(['delete', 'service/c', '-o', 'json'])).out)).toEqual({
      deleted: [{ kind: 'Service', namespace: 'default', name: 'c' }],
    });
    expect(await cli(['delete', '-f', '-'], { stdin: yaml(serviceDocument('d')) })).toEqual(done('service/d deleted\n'));
    expect(await cli(['delete', 'svc', 'a'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('resource.not_found: service/a'),
    });
    expect(await cli(['delete', 'svc', 'a', '--ignore-not-found'])).toEqual(done(''));
  });

  test.each([
    ['nothing named', [], 'expected what to delete'],
    ['a kind without a name', ['svc'], 'expected a name after svc'],
    ['a reference among names', ['svc', 'service/a'], 'expected KIND/NAME, found svc/service/a'],
    ['a name among references', ['service/a', 'b'], 'expected KIND/NAME, found b'],
    ['an empty name', ['service/'], 'expected KIND/NAME, found service/'],
    ['names and a file', ['svc', 'a', '-f', '-'], 'expected names or -f, found both'],
    ['a label selector', ['svc', '-l', 'a=b'], "unknown option '-l'"],
  ])('%s is refused before anything is asked', async (_, args, message) => {
    const { cli } = await setUp();
    expect(await cli(['delete', ...args])).toMatchObject({ code: 2, out: '', err: expect.stringContaining(message) });
  });

  test('a manifest that names nothing', async () => {
    const { cli } = await setUp();
    for (const value of [7, ['a'], { kind: 'Service' }, { kind: 'Service', metadata: { name: 'a', namespace: 1 } }]) {
      const ran = await cli(['delete', '-f', '-'], { stdin: yaml(value) });
      expect(ran).toMatchObject({ code: 1, err: expect.stringContaining('-: document 1: expected kind, metadata.name') });
    }
  });
});

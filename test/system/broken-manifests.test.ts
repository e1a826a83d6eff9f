import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Daemon, temporaryFolder } from './support/daemon.js';

const service = (spec: string, metadata = '{ name: broken }') =>
  `apiVersion: holdfast/v1\nkind: Service\nmetadata: ${metadata}\nspec: ${spec}\n`;
const ports = 'ports: [{ name: http, port: 80 }]';
const endpoint = (text: string) => service(`{ ${ports}, endpoints: [${text}] }`);
const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n`;

/** What is written, and a part of what must be said. */
const broken: readonly (readonly [name: string, text: string | Uint8Array, says: RegExp])[] = [
  ['empty file', '', /no document/],
  ['only comments', '# nothing\n', /no document/],
  ['plain text', 'hello', /expected a mapping with apiVersion/],
  ['a list', '- a\n- b\n', /expected a mapping with apiVersion/],
  ['binary', Uint8Array.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2, 255]), /binary/],
  ['invalid UTF-8', Uint8Array.from([0x61, 0x3a, 0x20, 0xff, 0xfe]), /UTF-8/],
  ['unclosed bracket', 'a: [1, 2', /:1/],
  ['tabs for indentation', 'a:\n\t- b\n', /tab/i],
  ['duplicate key', 'kind: Service\nkind: Service\n', /unique/i],
  ['YAML bomb', bomb, /alias \*a is not allowed/],
  ['one alias', 'a: &a 1\nb: *a\n', /:2: alias \*a is not allowed/],
  ['unknown tag', 'kind: !evil Service\n', /tag/i],
  ['nested too deeply', '['.repeat(50_000), /deep|nested|flow/i],
  ['no kind', 'apiVersion: holdfast/v1\n', /kind: expected Service or Endpoints/],
  ['misspelt kind', 'apiVersion: holdfast/v1\nkind: Servce\n', /did you mean Service/],
  ['kind not built yet', 'apiVersion: holdfast/v1\nkind: Volume\n', /found "Volume", which is not built yet/],
  ['wrong apiVersion', service(`{ ${ports} }`).replace('holdfast/v1', 'v1'), /apiVersion: expected holdfast\/v1, found "v1"/],
  ['no metadata', 'apiVersion: holdfast/v1\nkind: Service\nspec: {}\n', /metadata: expected/],
  ['no name', service(`{ ${ports} }`, '{}'), /metadata\.name: expected a name, found nothing/],
  ['bad name', service(`{ ${ports} }`, '{ name: Hello_World }'), /metadata\.name: expected a DNS-1123 label/],
  ['bad namespace', service(`{ ${ports} }`, '{ name: a, namespace: -x- }'), /metadata\.namespace/],
  ['bad label', service(`{ ${ports} }`, '{ name: a, labels: { app: [1] } }'), /metadata\.labels/],
  ['no spec', 'apiVersion: holdfast/v1\nkind: Service\nmetadata: { name: a }\n', /spec: expected a mapping, found nothing/],
  ['no ports', service('{ ports: [] }'), /spec\.ports: expected at least one port/],
  ['port 0', service('{ ports: [{ port: 0 }] }'), /spec\.ports\[0\]\.port: expected a port number, 1 to 65535, found 0/],
  ['port 70000', service('{ ports: [{ port: 70000 }] }'), /expected a port number, 1 to 65535, found 70000/],
  ['port as text', service('{ ports: [{ port: "80" }] }'), /expected a port number, 1 to 65535, found "80"/],
  ['port with a fraction', service('{ ports: [{ port: 80.5 }] }'), /found 80\.5/],
  ['duplicate port', service('{ ports: [{ name: a, port: 80 }, { name: b, port: 80 }] }'), /spec\.ports\[1\]/],
  ['duplicate port name', service('{ ports: [{ name: a, port: 80 }, { name: a, port: 81 }] }'), /spec\.ports\[1\]/],
  ['unknown protocol', service('{ ports: [{ port: 53, protocol: sctp }] }'), /expected tcp or udp, found "sctp"/],
  ['unknown key', service('{ prots: [] }'), /spec\.prots: unknown key; did you mean ports\?/],
  ['key not built yet', service(`{ ${ports}, networkPolicy: {} }`), /spec\.networkPolicy: this key is not built yet/],
  [
    'bad address',
    endpoint('{ address: 1.2.3 }'),
    /spec\.endpoints\[0\]\.address: expected an IPv4 or IPv6 address, found "1\.2\.3"/,
  ],
  ['octal address', endpoint('{ address: 010.0.0.1 }'), /address/],
  ['host name as address', endpoint('{ address: localhost }'), /expected an IPv4 or IPv6 address, found "localhost"/],
  ['weight 0', endpoint('{ address: 127.0.0.1, weight: 0 }'), /weight: expected a whole number from 1 to 100, found 0/],
  ['weight 101', endpoint('{ address: 127.0.0.1, weight: 101 }'), /found 101/],
  ['port and ports', endpoint('{ address: 127.0.0.1, port: 1, ports: { http: 1 } }'), /either port or ports/],
  [
    'unknown port name',
    endpoint('{ address: 127.0.0.1, ports: { htp: 1 } }'),
    /expected a port name of the service, http, found "htp"/,
  ],
  ['duplicate endpoint', endpoint('{ address: 127.0.0.1, port: 1 }, { address: 127.0.0.1, port: 1 }'), /spec\.endpoints\[1\]/],
  [
    'unknown algorithm',
    service(`{ ${ports}, balance: { algorithm: fastest } }`),
    /expected random, round-robin, least-connections or source-hash, found "fastest"/,
  ],
  [
    'PROXY headers for udp',
    service('{ ports: [{ port: 53, protocol: udp }], proxyProtocol: { accept: true } }'),
    /spec\.proxyProtocol/,
  ],
  ['bad duration', service(`{ ${ports}, drain: { timeout: 30 } }`), /spec\.drain\.timeout: expected a duration/],
  ['address outside the range', service(`{ ${ports}, vip: 10.0.0.1 }`), /10\.0\.0\.1 is not in the range/],
  [
    'the same service twice',
    `${service(`{ ${ports} }`)}---\n${service(`{ ${ports} }`)}`,
    /is in the request already, in document 1/,
  ],
  ['a good one beside a bad one', `${service(`{ ${ports} }`)}---\nkind: Nonsense\n`, /document 2/],
  ['50 MB', new Uint8Array(50 * 1024 * 1024).fill(0x61), /at most 16 MiB/],
  ['20,001 documents', 'a: 1\n---\n'.repeat(20_001), /at most 20000 documents/],
];

describe('broken manifests', () => {
  let daemon: Daemon;
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let before: unknown;

  beforeAll(async () => {
    folder = await temporaryFolder();
    daemon = new Daemon(join(folder.path, 'data'));
    await daemon.start();
    await daemon.apply(service(`{ ${ports} }`, '{ name: bystander }'));
    before = await daemon.json('get', 'all');
  });

  afterAll(async () => {
    await daemon.stop();
    await folder[Symbol.asyncDispose]();
  });

  test.for(broken)('%s', async ([, text, says]) => {
    const file = join(await mkdtemp(join(folder.path, 'm-')), 'broken.yaml');
    await writeFile(file, text);
    const { code, stdout, stderr } = await daemon.cli(['apply', '-f', file]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(says);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(stderr.length).toBeLessThan(8_000);
  });

  test('afterwards nothing has changed', async () => {
    expect(await daemon.json('get', 'all')).toEqual(before);
    expect((await daemon.json<{ log: { revision: number } }>('status')).log.revision).toBe(2);
  });
});

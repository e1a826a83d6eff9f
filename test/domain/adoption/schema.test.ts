import { describe, expect, test } from 'vitest';
import { encodeAdoption, renderAdopted } from '../../../src/domain/adoption/render.js';
import { decodeAdoption, decodeLegacy } from '../../../src/domain/adoption/schema.js';
import { adoptionRecord } from './records.js';

const mtls = { crt: '/a/mtls.crt', key: '/a/mtls.key', ca: '/a/ca.crt' };
const files = { certificate: '/a/mtls.crt', privateKey: '/a/mtls.key', ca: '/a/ca.crt', publicCa: undefined };
const nothing = {
  aid: undefined,
  nid: undefined,
  installer: undefined,
  conductor: undefined,
  nodeIp: undefined,
  publicCaSha256: undefined,
};

describe('the configuration of an older agent', () => {
  test.each([
    {
      name: 'with the files alone: its usual server',
      value: { mtls },
      agent: { ...nothing, server: { host: 'nodeward.runos.com', port: 9192 }, files },
    },
    {
      name: 'with what stands for unset, and empty groups',
      value: { client: { aid: 'xxxxx', server: null }, node: { nid: '', ip: null }, mtls: { ...mtls, 'public-ca': 'xxxxx' } },
      agent: { ...nothing, server: { host: 'nodeward.runos.com', port: 9192 }, files },
    },
    {
      name: 'with everything, and more',
      value: {
        client: {
          aid: 17,
          server: { nodeward: 'control:19192', installer: 'https://get.example/', conductor: 'http://api.example/v1//' },
        },
        node: { nid: 'n-1', ip: 'fd00::7', more: [1] },
        mtls: { ...mtls, 'public-ca': '/a/../b/p.crt', 'public-ca-sha256': 'AB'.repeat(32) },
        other: true,
      },
      agent: {
        aid: '17',
        nid: 'n-1',
        server: { host: 'control', port: 19_192 },
        installer: 'https://get.example',
        conductor: 'http://api.example/v1',
        nodeIp: 'fd00::7',
        files: { ...files, publicCa: '/b/p.crt' },
        publicCaSha256: 'ab'.repeat(32),
      },
    },
  ])('$name', ({ value, agent }) => {
    expect(decodeLegacy(value)).toEqual({ valid: true, agent });
  });

  test('every problem is told at once, with its place', () => {
    const value = {
      client: { aid: 'a b', server: { nodeward: 'a:b:c', installer: 'ftp://x' } },
      node: { ip: '10.0.0' },
      mtls: { crt: 'relative', key: '/k', 'public-ca-sha256': 'ab' },
    };
    expect(decodeLegacy(value)).toEqual({
      valid: false,
      problems: [
        'client.aid: expected an account, found "a b"',
        'client.server.nodeward: expected a host, found "a:b:c"',
        'client.server.installer: expected http:// or https:// and a host, found "ftp://x"',
        'node.ip: expected an IP address, found "10.0.0"',
        'mtls.crt: expected an absolute path, found "relative"',
        'mtls.ca: is not set',
        'mtls.public-ca-sha256: expected 64 hex digits, found "ab"',
      ],
    });
  });

  test.each([[undefined], [null], ['text'], [[]], [{ client: [] }]])('%j has no files', (value) => {
    expect(decodeLegacy(value).valid).toBe(false);
  });
});

describe('the configuration that is made', () => {
  const agent = {
    ...nothing,
    server: { host: 'control', port: 9192 },
    files: { ...files },
  };
  const decoded = (value: object) => {
    const reading = decodeLegacy({ mtls, ...value });
    if (!reading.valid) throw new Error(reading.problems.join());
    return reading.agent;
  };
  const head = '# Made by `holdfast adopt` of /etc/runos/config.yaml: what differs from the defaults.\n';

  test('says nothing where nothing differs, and never which control plane', () => {
    expect(agent.server.host).toBe('control');
    expect(renderAdopted(decoded({ client: { server: { nodeward: 'control', installer: 'https://get.runos.com/' } } }))).toBe(
      head,
    );
  });

  test('says what differs', () => {
    const client = { server: { installer: 'https://get.example', conductor: 'https://api.example' } };
    expect(renderAdopted(decoded({ client, node: { ip: '10.0.0.7' } }))).toBe(
      `${head}client: {"server":{"installer":"https://get.example","conductor":"https://api.example"}}\nnode: {"ip":"10.0.0.7"}\n`,
    );
  });
});

describe('the record of an adoption', () => {
  test.each(['taking', 'taken', 'returning', 'returned'] as const)('%s is read as it was written', (state) => {
    for (const publicCa of [undefined, { path: '/p' as never, sha256: '00' }]) {
      const record = adoptionRecord({ state, source: { ...adoptionRecord().source, publicCa } });
      expect(decodeAdoption(encodeAdoption(record))).toEqual(record);
    }
  });

  test.each(['', '{}', 'null', '[]', encodeAdoption(adoptionRecord()).replace('taken', 'eaten')])('%j is none', (text) => {
    expect(decodeAdoption(text)).toBeUndefined();
  });
});

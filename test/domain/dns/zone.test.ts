import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { VIP_RANGE_KEY } from '../../../src/domain/dataplane/vip.js';
import { answer } from '../../../src/domain/dns/answer.js';
import { decodeMessage } from '../../../src/domain/dns/decode.js';
import { encodeMessage } from '../../../src/domain/dns/encode.js';
import { classes, formatRcode, formatType, type Message, types } from '../../../src/domain/dns/model.js';
import { formatName, parseName } from '../../../src/domain/dns/name.js';
import { servicesOf, Zone } from '../../../src/domain/dns/zone.js';
import type { IpAddress } from '../../../src/domain/kernel/network.js';
import type { Resource } from '../../../src/domain/resource/model.js';
import { operations, perform } from '../../support/random-operations.js';
import { SmallCluster, service, serviceRef } from '../../support/small-cluster.js';

const server = '127.0.0.123' as IpAddress;

function zoneOf(...resources: readonly Resource[]): Zone {
  const cluster = new SmallCluster();
  cluster.write({ key: VIP_RANGE_KEY, value: JSON.stringify('10.192.0.0/16') });
  cluster.apply(resources);
  return zoneFrom(cluster);
}

function zoneFrom({ state }: SmallCluster): Zone {
  const zone = new Zone({ origin: ['holdfast'], state, server });
  zone.update(servicesOf(state));
  return zone;
}

function query(name: string, type: number, parts: Partial<Message> = {}): Message {
  return {
    ...{ id: 1, isResponse: false, opcode: 0, isAuthoritative: false, isTruncated: false },
    ...{ recursionDesired: true, recursionAvailable: false, rcode: 0 },
    questions: [{ name: parseName(name) ?? [], type, class: classes.IN }],
    ...{ answers: [], authority: [], additional: [], edns: undefined },
    ...parts,
  };
}

/** As a line: code, AA, then each section's records. */
function told(zone: Zone, asked: Message): string {
  const { message } = answer(zone, asked);
  if (message === undefined) return 'nothing';
  const { rcode, isAuthoritative, answers, authority, additional } = message;
  const sections = [answers, authority, additional].map((records) =>
    records.map(({ name, type, data }) => `${formatName(name)} ${formatType(type)} ${textOf(type, data)}`.trim()).join(', '),
  );
  return [`${formatRcode(rcode)}${isAuthoritative ? ' AA' : ''}`, ...sections].join(' | ');
}

function textOf(type: number, data: readonly (Uint8Array | readonly string[])[]): string {
  const parts = data.map((part) => (part instanceof Uint8Array ? part.join('.') : formatName(part)));
  return type === types.SOA ? '' : parts.join(' ');
}

const ask = (zone: Zone, name: string, type: number) => told(zone, query(name, type));
const soa = 'holdfast. SOA';
const hello = service('hello', {
  ports: [
    { name: 'http', port: 80 },
    { name: 'dns', port: 53, protocol: 'udp' },
  ],
});

describe('the names of a service', () => {
  const zone = zoneOf(hello, service('db', {}, { namespace: 'prod' }));
  test.each([
    ['its address', 'hello.default.holdfast', types.A, 'NOERROR AA | hello.default.holdfast. A 10.192.0.2 |  | '],
    ['of another namespace', 'db.prod.holdfast', types.A, 'NOERROR AA | db.prod.holdfast. A 10.192.0.3 |  | '],
    [
      'the case is that of the question',
      'HeLLo.Default.HOLDFAST',
      types.A,
      'NOERROR AA | HeLLo.Default.HOLDFAST. A 10.192.0.2 |  | ',
    ],
    [
      'a port, with the address of what it leads to',
      '_http._tcp.hello.default.holdfast',
      types.SRV,
      'NOERROR AA | _http._tcp.hello.default.holdfast. SRV 0.0.0.1.0.80 hello.default.holdfast. |  | hello.default.holdfast. A 10.192.0.2',
    ],
    [
      'a UDP port',
      '_dns._udp.hello.default.holdfast',
      types.SRV,
      'NOERROR AA | _dns._udp.hello.default.holdfast. SRV 0.0.0.1.0.53 hello.default.holdfast. |  | hello.default.holdfast. A 10.192.0.2',
    ],
    [
      'back from the address',
      '2.0.192.10.in-addr.arpa',
      types.PTR,
      'NOERROR AA | 2.0.192.10.in-addr.arpa. PTR hello.default.holdfast. |  | ',
    ],
    ['no such type: no error, or a resolver gives up', 'hello.default.holdfast', types.AAAA, `NOERROR AA |  | ${soa} | `],
    ['a name above others', 'default.holdfast', types.A, `NOERROR AA |  | ${soa} | `],
    ['a name above others, of ports', '_tcp.hello.default.holdfast', types.A, `NOERROR AA |  | ${soa} | `],
    ['no such service', 'nobody.default.holdfast', types.A, `NXDOMAIN AA |  | ${soa} | `],
    ['nothing is below a service', 'x.hello.default.holdfast', types.A, `NXDOMAIN AA |  | ${soa} | `],
    ['the zone itself', 'holdfast', types.SOA, 'NOERROR AA | holdfast. SOA |  | '],
    ['its server', 'holdfast', types.NS, 'NOERROR AA | holdfast. NS holdfast. |  | '],
    ['its server, where it is', 'holdfast', types.A, 'NOERROR AA | holdfast. A 127.0.0.123 |  | '],
    [
      'ANY: one set of records (RFC 8482)',
      'hello.default.holdfast',
      types.ANY,
      'NOERROR AA | hello.default.holdfast. A 10.192.0.2 |  | ',
    ],
    ['no address of ours', '9.9.192.10.in-addr.arpa', types.PTR, 'NXDOMAIN AA |  | 192.10.in-addr.arpa. SOA | '],
    ['the network of the addresses', '192.10.in-addr.arpa', types.SOA, 'NOERROR AA | 192.10.in-addr.arpa. SOA |  | '],
    ['addresses of others', '1.0.0.11.in-addr.arpa', types.PTR, 'REFUSED |  |  | '],
    ['all addresses', '10.in-addr.arpa', types.PTR, 'REFUSED |  |  | '],
    ['no address', 'x.0.192.10.in-addr.arpa', types.PTR, 'NXDOMAIN AA |  | 192.10.in-addr.arpa. SOA | '],
    ['names of others', 'example.com', types.A, 'REFUSED |  |  | '],
    ['a name that only ends alike', 'xholdfast', types.A, 'REFUSED |  |  | '],
    ['the root', '.', types.NS, 'REFUSED |  |  | '],
  ])('%s', (_, name, type, expected) => {
    expect(ask(zone, name, type)).toBe(expected);
  });
});

test('a range smaller than the numbers of a name: each address is a zone of its own', () => {
  const cluster = new SmallCluster('10.192.0.0/28');
  cluster.write({ key: VIP_RANGE_KEY, value: JSON.stringify('10.192.0.0/28') });
  cluster.apply([hello]);
  const zone = zoneFrom(cluster);
  expect(ask(zone, '2.0.192.10.in-addr.arpa', types.PTR)).toContain('PTR hello.default.holdfast.');
  expect(ask(zone, '3.0.192.10.in-addr.arpa', types.PTR)).toBe('NOERROR AA |  | 3.0.192.10.in-addr.arpa. SOA | ');
  expect(ask(zone, '3.0.192.10.in-addr.arpa', types.SOA)).toBe('NOERROR AA | 3.0.192.10.in-addr.arpa. SOA |  | ');
  expect(ask(zone, '16.0.192.10.in-addr.arpa', types.PTR)).toBe('REFUSED |  |  | ');
});

describe('what is no question of ours', () => {
  const zone = zoneOf(hello);
  const asked = query('hello.default.holdfast', types.A);
  const [question] = asked.questions;
  const questions = question === undefined ? [] : [question];
  test.each<[string, Partial<Message>, string]>([
    ['an answer is not answered', { isResponse: true }, 'nothing'],
    ['another opcode', { opcode: 5 }, 'NOTIMP |  |  | '],
    ['no question', { questions: [] }, 'FORMERR |  |  | '],
    ['two questions (RFC 9619)', { questions: [...questions, ...questions] }, 'FORMERR |  |  | '],
    ['another class', { questions: questions.map((each) => ({ ...each, class: classes.CH })) }, 'REFUSED |  |  | '],
    [
      'any class',
      { questions: questions.map((each) => ({ ...each, class: classes.ANY })) },
      'NOERROR AA | hello.default.holdfast. A 10.192.0.2 |  | ',
    ],
    ['the whole zone', { questions: questions.map((each) => ({ ...each, type: types.AXFR })) }, 'REFUSED |  |  | '],
    ['a type that is none', { questions: questions.map((each) => ({ ...each, type: types.OPT })) }, 'FORMERR |  |  | '],
    ['a later EDNS', { edns: { payloadBytes: 1_232, version: 1, isDnssecOk: false } }, 'BADVERS |  |  | '],
  ])('%s', (_, parts, expected) => {
    expect(told(zone, { ...asked, ...parts })).toBe(expected);
  });

  test('what cannot be read is answered if its header can', () => {
    expect(answer(zone, decodeMessage(Uint8Array.of(1, 2)))).toMatchObject({ message: undefined });
    const cut = encodeMessage(asked).slice(0, 20);
    expect(answer(zone, decodeMessage(cut)).message).toMatchObject({ id: 1, isResponse: true, rcode: 1, questions: [] });
  });

  test.each([
    ['without EDNS', undefined, 512],
    ['what the asker can take', 700, 700],
    ['never less than 512', 20, 512],
    ['never more than goes through', 4_096, 1_232],
  ])('by UDP: %s', (_, payloadBytes, expected) => {
    const edns = payloadBytes === undefined ? undefined : { payloadBytes, version: 0, isDnssecOk: false };
    const packed = decodeMessage(encodeMessage({ ...asked, edns }));
    expect(answer(zone, packed).udpBytes).toBe(expected);
  });
});

describe('changes', () => {
  test('a service that is gone takes its names, but not those that others need', () => {
    const cluster = new SmallCluster();
    cluster.write({ key: VIP_RANGE_KEY, value: JSON.stringify('10.192.0.0/16') });
    cluster.apply([hello, service('other')]);
    const zone = zoneFrom(cluster);
    const { touched } = cluster.delete(serviceRef('hello'));
    zone.update(touched?.services ?? []);
    expect(ask(zone, 'hello.default.holdfast', types.A)).toContain('NXDOMAIN');
    expect(ask(zone, '_http._tcp.hello.default.holdfast', types.SRV)).toContain('NXDOMAIN');
    expect(ask(zone, '2.0.192.10.in-addr.arpa', types.PTR)).toContain('NXDOMAIN');
    expect(ask(zone, 'default.holdfast', types.A)).toContain('NOERROR');
    expect(ask(zone, 'other.default.holdfast', types.A)).toContain('10.192.0.3');
  });

  test('law: kept up with changes it answers as one made anew', () => {
    fc.assert(
      fc.property(operations, (all) => {
        const cluster = new SmallCluster('10.192.0.0/28');
        const zone = zoneFrom(cluster);
        for (const operation of all) {
          const done = perform(cluster, operation);
          if (done !== undefined && 'touched' in done) zone.update(done.touched?.services ?? []);
        }
        const anew = zoneFrom(cluster);
        expect(ask(zone, 'default.holdfast', types.A)).toBe(ask(anew, 'default.holdfast', types.A));
        for (const name of servicesOf(cluster.state)) {
          const [namespace, each] = name.split('/');
          for (const [prefix, type] of [
            ['', types.A],
            ['_http._tcp.', types.SRV],
          ] as const) {
            const asked = `${prefix}${each}.${namespace}.holdfast`;
            expect(ask(zone, asked, type)).toBe(ask(anew, asked, type));
          }
        }
      }),
      { numRuns: 200 },
    );
  });
});

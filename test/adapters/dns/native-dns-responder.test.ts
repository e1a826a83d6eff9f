import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadAddon } from '../../../src/adapters/dataplane/addon.js';
import { NativeDnsResponder } from '../../../src/adapters/dns/native-dns-responder.js';
import { VIP_RANGE_KEY } from '../../../src/domain/dataplane/vip.js';
import { answer } from '../../../src/domain/dns/answer.js';
import { compileApexes, compileServices } from '../../../src/domain/dns/compile.js';
import { decodeMessage } from '../../../src/domain/dns/decode.js';
import { encodeMessage } from '../../../src/domain/dns/encode.js';
import type { Message } from '../../../src/domain/dns/model.js';
import { type DomainName, lowerCase } from '../../../src/domain/dns/name.js';
import { servicesOf, Zone } from '../../../src/domain/dns/zone.js';
import type { IpAddress } from '../../../src/domain/kernel/network.js';
import { dnsResponderContract } from '../../contract/dns-responder.contract.js';
import { freeUdpPort } from '../../support/dns-questions.js';
import { SmallCluster, service } from '../../support/small-cluster.js';

const holders: Socket[] = [];
afterAll(() => {
  for (const holder of holders) holder.close();
});
dnsResponderContract('threads', () => ({
  responder: new NativeDnsResponder(loadAddon),
  occupy: async ({ address, port }) => {
    const holder = createSocket('udp4').bind(port, address);
    holders.push(holder);
    await once(holder, 'listening');
  },
}));

const options = { signal: new AbortController().signal };
const loopback = '127.0.0.1' as IpAddress;

/** Two namespaces, ports of both protocols, one service with so many ports that answers to ANY are long. */
function zoneOf(range: string): Zone {
  const cluster = new SmallCluster();
  cluster.write({ key: VIP_RANGE_KEY, value: JSON.stringify(range) });
  const ports = Array.from({ length: 30 }, (_, index) => ({ name: `p${index}`, port: 1_000 + index }));
  cluster.apply([
    service('hello', {
      ports: [
        { name: 'http', port: 80 },
        { name: 'dns', port: 53, protocol: 'udp' },
      ],
    }),
    service('db', {}, { namespace: 'prod' }),
    service('many', { ports }, { namespace: 'prod' }),
  ]);
  const zone = new Zone({ origin: ['holdfast'], state: cluster.state, server: '127.0.0.123' as IpAddress });
  zone.update(servicesOf(cluster.state));
  return zone;
}

const label = fc.constantFrom(
  ...['hello', 'default', 'holdfast', 'db', 'prod', 'many', '_http', '_tcp', '_udp', '_dns', '_p7', 'x', '2', '3', '0', '192'],
  ...['10', '999', '01', 'in-addr', 'arpa', 'hostmaster', 'HeLLo', 'Holdfast', 'ARPA', 'a'.repeat(63), '\0', '.'],
);
const known = fc.constantFrom<DomainName>(
  ['holdfast'],
  ['default', 'holdfast'],
  ['hello', 'default', 'holdfast'],
  ['_tcp', 'hello', 'default', 'holdfast'],
  ['_http', '_tcp', 'hello', 'default', 'holdfast'],
  ['_dns', '_UDP', 'Hello', 'Default', 'HOLDFAST'],
  ['_p7', '_tcp', 'many', 'prod', 'holdfast'],
  ['10', 'in-addr', 'arpa'],
  ['192', '10', 'in-addr', 'arpa'],
  ['2', '0', '192', '10', 'in-addr', 'arpa'],
  ['9', '9', '192', '10', 'in-addr', 'arpa'],
  ['9', '192', '10', 'in-addr', 'arpa'],
);
const name = fc.oneof(
  known,
  fc.array(label, { maxLength: 8 }),
  fc.tuple(label, known).map(([first, rest]) => [first, ...rest]),
);
const edns = fc.option(
  fc.record({
    payloadBytes: fc.constantFrom(512, 513, 700, 1_232, 4_096, 65_535),
    version: fc.constantFrom(0, 0, 0, 1, 255),
    isDnssecOk: fc.boolean(),
  }),
  { nil: undefined },
);
const question = fc.record({
  name,
  type: fc.constantFrom(1, 1, 1, 2, 5, 6, 12, 16, 28, 33, 33, 41, 65, 0, 128, 251, 252, 255, 255, 65_535),
  class: fc.constantFrom(1, 1, 1, 1, 1, 3, 255, 254, 0),
});
const message = fc
  .record({
    isResponse: fc.constantFrom(...Array<boolean>(15).fill(false), true),
    opcode: fc.constantFrom(...Array<number>(12).fill(0), 2, 4, 5, 15),
    isAuthoritative: fc.boolean(),
    isTruncated: fc.boolean(),
    recursionDesired: fc.boolean(),
    recursionAvailable: fc.boolean(),
    questions: fc.oneof(
      { weight: 12, arbitrary: fc.tuple(question) },
      { weight: 1, arbitrary: fc.array(question, { maxLength: 2 }) },
    ),
    edns,
  })
  .map((parts): Message => ({ ...parts, id: 0, rcode: 0, answers: [], authority: [], additional: [] }));

/** What was generated; one in eight with some bytes changed, cut off or added. */
const query = fc
  .tuple(
    message,
    fc.integer({ min: 0, max: 7 }),
    fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }),
    fc.integer({ min: -40, max: 3 }),
  )
  .map(([asked, dice, changes, length]): Uint8Array => {
    const bytes = encodeMessage(asked);
    if (dice > 0) return bytes;
    for (const [at, value] of changes) bytes[2 + (at % (bytes.length - 2))] = value;
    const resized = new Uint8Array(Math.max(2, bytes.length + length));
    resized.set(bytes.subarray(0, resized.length));
    return resized;
  });

/** The names as they are compared: the pointers of ready answers lead to the question, with its case. */
function compared(bytes: Uint8Array): unknown {
  const read = decodeMessage(bytes);
  if ('problem' in read) return read;
  const records = (all: Message['answers']) =>
    all.map((record) => ({
      ...{ ...record, name: lowerCase(record.name) },
      data: record.data.map((part) => (part instanceof Uint8Array ? part : lowerCase(part))),
    }));
  return { ...read, answers: records(read.answers), authority: records(read.authority), additional: records(read.additional) };
}

function byDomain(zone: Zone, asked: Uint8Array): Uint8Array | undefined {
  const { message: answered, udpBytes } = answer(zone, decodeMessage(asked));
  return answered && encodeMessage(answered, udpBytes);
}

/** The answers by their ids, when all that were expected are there or a second has gone. */
async function ask(socket: Socket, port: number, queries: readonly Uint8Array[], expected: number) {
  const answers = new Map<number, Uint8Array>();
  const take = (bytes: Buffer) => answers.set(bytes.readUInt16BE(0), bytes);
  socket.on('message', take);
  for (const bytes of queries) socket.send(bytes, port, loopback);
  const until = performance.now() + 1_000;
  while (answers.size < expected && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 1));
  // What should not be answered has had its chance behind the others, as they are answered in order.
  socket.off('message', take);
  return answers;
}

describe.each(['10.192.0.0/16', '10.192.0.0/12', '10.192.0.0/28'])('with addresses of %s', (range) => {
  const zone = zoneOf(range);
  const responder = new NativeDnsResponder(loadAddon);
  const socket = createSocket('udp4');
  let port = 0;
  beforeAll(async () => {
    responder.start();
    await responder.apply(compileApexes(zone), options);
    await responder.apply(compileServices(zone, ['default/hello', 'prod/db', 'prod/many'] as never), options);
    port = await freeUdpPort();
    expect(responder.listen([{ address: loopback, port } as never])).toMatchObject([{ listening: true }]);
    socket.bind(0, loopback);
    await once(socket, 'listening');
  });
  afterAll(async () => {
    socket.close();
    await responder.stop();
  });

  test('3,000 generated questions are answered as the domain answers them', async () => {
    const queries = fc.sample(query, { numRuns: 3_000, seed: 7 });
    for (const [index, bytes] of queries.entries()) new DataView(bytes.buffer).setUint16(0, index);
    let silent = 0;
    for (let from = 0; from < queries.length; from += 64) {
      const batch = queries.slice(from, from + 64);
      const wanted = batch.map((bytes) => byDomain(zone, bytes));
      const answers = await ask(socket, port, batch, wanted.filter((bytes) => bytes !== undefined).length);
      for (const [offset, expected] of wanted.entries()) {
        const found = answers.get(from + offset);
        const asked = Buffer.from(batch[offset] ?? []).toString('hex');
        expect({ asked, answer: found && compared(found) }).toEqual({ asked, answer: expected && compared(expected) });
        if (expected === undefined) silent += 1;
      }
    }
    expect(silent).toBeLessThan(queries.length / 4);
  });
});

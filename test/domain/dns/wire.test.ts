import { decode as otherDecode, encode as otherEncode, type Packet } from 'dns-packet';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeMessage } from '../../../src/domain/dns/decode.js';
import { encodeMessage } from '../../../src/domain/dns/encode.js';
import { classes, type Message, type RecordData, type ResourceRecord, types } from '../../../src/domain/dns/model.js';
import type { DomainName } from '../../../src/domain/dns/name.js';

const plain = {
  id: 0x1234,
  isResponse: false,
  opcode: 0,
  isAuthoritative: false,
  isTruncated: false,
  recursionDesired: false,
  recursionAvailable: false,
  rcode: 0,
  questions: [],
  answers: [],
  authority: [],
  additional: [],
  edns: undefined,
};

function message(parts: Partial<Message>): Message {
  return { ...plain, ...parts };
}

function record(name: DomainName, type: number, data: RecordData, ttl = 5): ResourceRecord {
  return { name, type, class: classes.IN, ttl, data };
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const bytes = (text: string) => new Uint8Array(Buffer.from(text.replace(/\s/g, ''), 'hex'));
const address = Uint8Array.of(10, 192, 0, 2);

describe('bytes as they stand in RFC 1035', () => {
  test('an answer whose owner points at the question', () => {
    const answer = message({
      ...{ isResponse: true, isAuthoritative: true, questions: [{ name: ['a', 'b'], type: types.A, class: classes.IN }] },
      answers: [record(['a', 'b'], types.A, [address])],
    });
    expect(hex(encodeMessage(answer))).toBe(
      '12348400000100010000000001610162000001' + '0001c00c00010001000000050004' + '0ac00002',
    );
  });

  test('EDNS: version, size, DO and the upper bits of the code', () => {
    const asked = message({ rcode: 16, edns: { payloadBytes: 1232, version: 0, isDnssecOk: true } });
    expect(hex(encodeMessage(asked))).toBe('123400000000000000000001' + '000029' + '04d0' + '01' + '00' + '8000' + '0000');
    expect(decodeMessage(encodeMessage(asked))).toEqual(asked);
  });
});

describe('what is no message', () => {
  const header = (counts: string) => `1234 0100 ${counts}`;
  test.each([
    ['nothing', '', 'no header'],
    ['eleven bytes', '1234010000010000000000', 'no header'],
    ['a question that is promised and not there', header('0001 0000 0000 0000'), 'ends too early'],
    ['65,535 records that are not there', header('0000 ffff ffff ffff'), 'ends too early'],
    ['a label longer than the message', `${header('0001 0000 0000 0000')} 3f61`, 'ends too early'],
    ['a pointer at itself', `${header('0001 0000 0000 0000')} c00c 0001 0001`, 'leads nowhere'],
    ['a pointer forward', `${header('0001 0000 0000 0000')} c010 0001 0001 00`, 'leads nowhere'],
    ['a pointer into the header', `${header('0001 0000 0000 0000')} c000 0001 0001`, 'leads nowhere'],
    ['two pointers at each other', `${header('0002 0000 0000 0000')} 0161 c012 0001 0001 0161 c00c 0001 0001`, 'leads nowhere'],
    ['a label type that was given up', `${header('0001 0000 0000 0000')} 41 00 0001 0001`, 'label of type 1'],
    ['a name of 256 bytes', `${header('0001 0000 0000 0000')} ${`3f${'61'.repeat(63)}`.repeat(4)} 00 0001 0001`, '255 bytes'],
    ['an address of three bytes', `${header('0000 0001 0000 0000')} 00 0001 0001 00000005 0003 0a0000`, 'address of 3 bytes'],
    ['data longer than the message', `${header('0000 0001 0000 0000')} 00 0010 0001 00000005 00ff 0a`, 'longer than the message'],
    [
      'a name that goes on behind its data',
      `${header('0000 0001 0000 0000')} 00 0005 0001 00000005 0001 0161 00`,
      'not as long as it says',
    ],
    ['bytes behind the end', `${header('0000 0000 0000 0000')} 00`, 'behind its end'],
    ['two OPT records', `${header('0000 0000 0000 0002')} ${'00 0029 1000 00000000 0000'.repeat(2)}`, 'two OPT'],
    ['an OPT record of a name', `${header('0000 0000 0000 0001')} 0161 00 0029 1000 00000000 0000`, 'not of the root'],
    ['an OPT record among the answers', `${header('0000 0001 0000 0000')} 00 0029 1000 00000000 0000`, 'out of its place'],
  ])('%s', (_, text, problem) => {
    expect(decodeMessage(bytes(text))).toMatchObject({ problem: expect.stringContaining(problem) });
  });

  test('law: whatever comes is a message or a reason, and quickly', () => {
    const noise = fc.oneof(
      fc.uint8Array({ maxLength: 600 }),
      // The header of a query, and counts, before noise that has many pointers.
      fc
        .array(fc.constantFrom(0xc0, 0x0c, 0x00, 0x01, 0x3f, 0x29, 0x21), { maxLength: 400 })
        .map((rest) => Uint8Array.from([0x12, 0x34, 1, 0, 0, 1, 0, 2, 0, 0, 0, 1, ...rest])),
    );
    fc.assert(
      fc.property(noise, (each) => {
        const read = decodeMessage(each);
        if (!('problem' in read)) expect(decodeMessage(encodeMessage(read))).toEqual(read);
      }),
      { numRuns: 2_000 },
    );
  });
});

const label = fc.stringMatching(/^[a-zA-Z0-9_-]{1,12}$/);
const name: fc.Arbitrary<DomainName> = fc.array(label, { maxLength: 5 });
const u8s = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const data: fc.Arbitrary<{ readonly type: number; readonly data: RecordData }> = fc.oneof(
  u8s(4).map((each) => ({ type: types.A, data: [each] })),
  u8s(16).map((each) => ({ type: types.AAAA, data: [each] })),
  name.chain((each) => fc.constantFrom(types.NS, types.CNAME, types.PTR).map((type) => ({ type, data: [each] }))),
  fc.tuple(u8s(6), name).map((each) => ({ type: types.SRV, data: each })),
  fc.tuple(u8s(2), name).map((each) => ({ type: types.MX, data: each })),
  fc.tuple(name, name, u8s(20)).map((each) => ({ type: types.SOA, data: each })),
  fc.uint8Array({ minLength: 1, maxLength: 80 }).map((each) => ({ type: 65, data: [each] })),
);
const ttl = fc.integer({ min: 0, max: 0xffff_ffff });
const someRecord = fc
  .tuple(name, data, ttl)
  .map(([owner, of, seconds]): ResourceRecord => ({ name: owner, class: classes.IN, ttl: seconds, ...of }));
const records = fc.array(someRecord, { maxLength: 4 });
const someMessage: fc.Arbitrary<Message> = fc.record({
  id: fc.integer({ min: 0, max: 0xffff }),
  isResponse: fc.boolean(),
  opcode: fc.integer({ min: 0, max: 15 }),
  isAuthoritative: fc.boolean(),
  isTruncated: fc.boolean(),
  recursionDesired: fc.boolean(),
  recursionAvailable: fc.boolean(),
  rcode: fc.integer({ min: 0, max: 15 }),
  questions: fc.array(fc.record({ name, type: fc.integer({ min: 1, max: 300 }), class: fc.constant(1) }), { maxLength: 2 }),
  answers: records,
  authority: records,
  additional: records,
  edns: fc.option(
    fc.record({
      payloadBytes: fc.integer({ min: 512, max: 65_535 }),
      version: fc.integer({ min: 0, max: 255 }),
      isDnssecOk: fc.boolean(),
    }),
    { nil: undefined },
  ),
});

test('law: 10,000 messages come back as they were', { timeout: 60_000 }, () => {
  fc.assert(
    fc.property(someMessage, (each) => {
      const read = decodeMessage(encodeMessage(each));
      expect(read).toEqual(each);
    }),
    { numRuns: 10_000 },
  );
});

test('law: within any limit it is a message that says what it lacks, and records are whole', () => {
  fc.assert(
    fc.property(someMessage, fc.integer({ min: 512, max: 1_500 }), (each, limit) => {
      const packed = encodeMessage(each, limit);
      const read = decodeMessage(packed);
      if ('problem' in read) throw new Error(read.problem);
      expect(packed.length).toBeLessThanOrEqual(limit);
      expect(each.answers.slice(0, read.answers.length)).toEqual(read.answers);
      expect(read.edns).toEqual(each.edns);
      const lacks = read.answers.length < each.answers.length || read.authority.length < each.authority.length;
      expect(read.isTruncated).toBe(each.isTruncated || lacks);
    }),
  );
});

describe('a second opinion', () => {
  test('law: another reader finds in ours what we put there', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(name, u8s(4)), { maxLength: 10 }), (owners) => {
        const answers = owners.map(([owner, each]) => record(owner, types.A, [each]));
        const read = otherDecode(Buffer.from(encodeMessage(message({ isResponse: true, answers }))));
        const found = read.answers?.map((each) => ('data' in each ? [each.name, each.data] : []));
        expect(found).toEqual(owners.map(([owner, each]) => [owner.length === 0 ? '.' : owner.join('.'), [...each].join('.')]));
      }),
      { numRuns: 1_000 },
    );
  });

  test('and we in theirs: SRV, SOA, PTR, TXT and EDNS', () => {
    const packet: Packet = {
      ...{ type: 'response', id: 7, flags: 0x0400 | 0x0100, questions: [{ name: 'x.holdfast', type: 'SRV', class: 'IN' }] },
      answers: [
        { type: 'SRV', name: 'x.holdfast', ttl: 5, data: { priority: 0, weight: 1, port: 80, target: 'hello.holdfast' } },
        { type: 'PTR', name: '2.0.192.10.in-addr.arpa', ttl: 5, data: 'hello.holdfast' },
        { type: 'TXT', name: 'holdfast', ttl: 5, data: 'holdfast' },
      ],
      authorities: [
        {
          ...{ type: 'SOA', name: 'holdfast', ttl: 5 },
          data: { mname: 'holdfast', rname: 'hostmaster.holdfast', serial: 1, refresh: 2, retry: 3, expire: 4, minimum: 5 },
        },
      ],
      additionals: [
        {
          type: 'OPT',
          name: '.',
          udpPayloadSize: 1_232,
          extendedRcode: 0,
          ednsVersion: 0,
          flags: 0x8000,
          flag_do: true,
          options: [],
        },
      ],
    };
    expect(decodeMessage(otherEncode(packet))).toMatchObject({
      ...{ id: 7, isResponse: true, isAuthoritative: true, recursionDesired: true },
      answers: [
        { type: types.SRV, data: [Uint8Array.of(0, 0, 0, 1, 0, 80), ['hello', 'holdfast']] },
        { type: types.PTR, data: [['hello', 'holdfast']] },
        { type: types.TXT },
      ],
      authority: [{ type: types.SOA, data: [['holdfast'], ['hostmaster', 'holdfast'], expect.any(Uint8Array)] }],
      edns: { payloadBytes: 1_232, version: 0, isDnssecOk: true },
    });
  });
});

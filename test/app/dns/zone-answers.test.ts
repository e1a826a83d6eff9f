import { expect, test } from 'vitest';
import { ZoneAnswers } from '../../../src/app/dns/zone-answers.js';
import { decodeMessage } from '../../../src/domain/dns/decode.js';
import { encodeMessage } from '../../../src/domain/dns/encode.js';
import { type Message, rcodes, types } from '../../../src/domain/dns/model.js';
import { parseName } from '../../../src/domain/dns/name.js';
import { type Change, logKey } from '../../../src/domain/log/model.js';
import { drop, options, put, RemoteRig } from '../../support/remote-rig.js';

/** A service that has an address. */
const named = (name: string, address: string): readonly Change[] => [
  put(name),
  { key: logKey(`vip/${address}`), value: JSON.stringify({ service: `default/${name}` }) },
];

async function setUp() {
  const rig = new RemoteRig();
  await rig.write(...named('a', '10.192.0.2'));
  await rig.start();
  const answers = new ZoneAnswers({ view: rig.consumer, origin: ['holdfast'] });
  await answers.start();
  await answers.ready(options.signal);
  return { rig, answers };
}

function query(name: string, type: number): Uint8Array {
  return encodeMessage({
    ...{ id: 9, isResponse: false, opcode: 0, isAuthoritative: false, isTruncated: false, recursionDesired: false },
    ...{ recursionAvailable: false, rcode: 0, questions: [{ name: parseName(name) ?? [], type, class: 1 }] },
    ...{ answers: [], authority: [], additional: [], edns: undefined },
  });
}

function read(answer: Uint8Array | undefined): Message {
  const message = decodeMessage(answer ?? new Uint8Array());
  if ('problem' in message) throw new Error(message.problem);
  return message;
}

test('names come and go with the entries of the log, from the first answer after each', async () => {
  const { rig, answers } = await setUp();
  const code = (name: string) => read(answers.answer(query(`${name}.default.holdfast`, types.A), 'udp')).rcode;
  expect([code('a'), code('b')]).toEqual([rcodes.NOERROR, rcodes.NXDOMAIN]);
  await rig.write(...named('b', '10.192.0.3'), drop('a'));
  expect([code('a'), code('b')]).toEqual([rcodes.NXDOMAIN, rcodes.NOERROR]);
  await answers.stop();
  await rig.consumer.stop(options.signal);
});

test('questions are counted by type and code, in a bounded number of series', async () => {
  const { rig, answers } = await setUp();
  for (let type = 1; type < 2_000; type++) answers.answer(query('nobody.default.holdfast', type), 'tcp');
  answers.answer(Uint8Array.of(1), 'udp');
  const counts = answers.counts();
  expect(counts.length).toBeLessThan(20);
  expect(counts).toContainEqual({ type: 'A', rcode: 'NXDOMAIN', count: 1 });
  expect(counts).toContainEqual({ type: 'none', rcode: 'none', count: 1 });
  expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(2_000);
  await rig.consumer.stop(options.signal);
});

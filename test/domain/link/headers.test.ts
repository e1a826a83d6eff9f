import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  agentFacts,
  agentHeaders,
  callerFacts,
  callerHeaders,
  retryMs,
  serverFacts,
  serverHeaders,
} from '../../../src/domain/link/headers.js';
import { type AgentFacts, capabilities, epoch, type ServerFacts } from '../../../src/domain/link/model.js';

const word = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
  maxLength: 128,
});
const caps = fc.uniqueArray(fc.constantFrom(...capabilities)).map((names) => new Set(names));
const agents: fc.Arbitrary<AgentFacts> = fc.record({
  instance: word,
  session: fc.nat(),
  boot: word,
  hardware: word,
  journal: fc.record({ id: word.filter((id) => !id.includes(':')), counter: fc.bigInt({ min: 0n, max: 2n ** 62n }) }),
  capabilities: caps,
});
const servers: fc.Arbitrary<ServerFacts> = fc.record({
  fleet: word,
  server: word,
  epoch: fc.bigInt({ min: 0n, max: 2n ** 62n }).map(epoch),
  capabilities: caps,
  spreadMs: fc.nat(3_600_000),
  window: fc.integer({ min: 1, max: 99_999 }),
});

const reader = (headers: Readonly<Record<string, string>>) => (name: string) => headers[name];

describe('B1: the headers of an agent', () => {
  test('are spelt so', () => {
    const facts: AgentFacts = {
      instance: 'i1',
      session: 4,
      boot: 'b1',
      hardware: 'h1',
      journal: { id: 'j1', counter: 9n },
      capabilities: new Set(['journal', 'window']),
    };
    expect(agentHeaders(facts)).toEqual({
      'holdfast-instance': 'i1',
      'holdfast-session': '4',
      'holdfast-boot': 'b1',
      'holdfast-hw': 'h1',
      'holdfast-journal': 'j1:9',
      'holdfast-caps': 'journal,window',
    });
  });

  test('law: read back', () => {
    fc.assert(
      fc.property(agents, (facts) => {
        expect(agentFacts(reader(agentHeaders(facts)))).toEqual(facts);
      }),
    );
  });

  const good = {
    'holdfast-instance': 'i',
    'holdfast-session': '1',
    'holdfast-boot': 'b',
    'holdfast-hw': 'h',
    'holdfast-journal': 'j:1',
  };
  test.each([
    { name: 'none at all', headers: {} },
    ...Object.keys(good).map((missing) => ({ name: `no ${missing}`, headers: { ...good, [missing]: undefined } })),
    { name: 'a session that is no number', headers: { ...good, 'holdfast-session': 'one' } },
    { name: 'a session below zero', headers: { ...good, 'holdfast-session': '-1' } },
    { name: 'an empty instance', headers: { ...good, 'holdfast-instance': '' } },
    { name: 'an instance with a space', headers: { ...good, 'holdfast-instance': 'a b' } },
    { name: 'a long instance', headers: { ...good, 'holdfast-instance': 'x'.repeat(129) } },
    { name: 'a journal without a counter', headers: { ...good, 'holdfast-journal': 'j' } },
    { name: 'a journal without an id', headers: { ...good, 'holdfast-journal': ':1' } },
    { name: 'a counter beyond 64 bits', headers: { ...good, 'holdfast-journal': `j:${'9'.repeat(20)}` } },
  ])('an older agent: $name', ({ headers }) => expect(agentFacts((name) => Reflect.get(headers, name))).toBeUndefined());

  test.each([
    { caps: undefined, known: [] },
    { caps: '', known: [] },
    { caps: 'journal, cancel ,teleport', known: ['journal', 'cancel'] },
    { caps: `journal,${'x'.repeat(2_000)}`, known: [] },
  ])('capabilities $caps', ({ caps: text, known }) => {
    const facts = agentFacts(reader(text === undefined ? good : { ...good, 'holdfast-caps': text }));
    expect([...(facts?.capabilities ?? ['none'])]).toEqual(known);
  });
});

describe('F5: what a process says of itself beside its stream', () => {
  test('law: read back, and what is garbled or missing is nothing', () => {
    const callers = fc.record({ instance: word, boot: word, hardware: word });
    fc.assert(
      fc.property(callers, fc.constantFrom('holdfast-instance', 'holdfast-boot', 'holdfast-hw'), (facts, name) => {
        expect(callerFacts(reader(callerHeaders(facts)))).toEqual(facts);
        const { [name]: _, ...others } = callerHeaders(facts);
        expect(callerFacts(reader(others))).toBeUndefined();
        expect(callerFacts(reader({ ...others, [name]: 'a b' }))).toBeUndefined();
      }),
    );
  });
});

describe('B1: the headers of a server', () => {
  test('are spelt so, the window in the capabilities', () => {
    const facts: ServerFacts = {
      fleet: 'f',
      server: 's',
      epoch: epoch(7n),
      capabilities: new Set(['redeliver', 'window']),
      spreadMs: 10_000.4,
      window: 32,
    };
    expect(serverHeaders(facts)).toEqual({
      'holdfast-fleet': 'f',
      'holdfast-server': 's',
      'holdfast-epoch': '7',
      'holdfast-caps': 'redeliver,window=32',
      'holdfast-spread-ms': '10000',
    });
  });

  test('law: read back, the window where it is announced', () => {
    fc.assert(
      fc.property(servers, (facts) => {
        const window = facts.capabilities.has('window') ? facts.window : 32;
        expect(serverFacts(reader(serverHeaders(facts)))).toEqual({ ...facts, window });
      }),
    );
  });

  const good = { 'holdfast-fleet': 'f', 'holdfast-server': 's', 'holdfast-epoch': '7' };
  test.each([
    { name: 'none at all', headers: {} },
    { name: 'no fleet', headers: { ...good, 'holdfast-fleet': undefined } },
    { name: 'an epoch that is no number', headers: { ...good, 'holdfast-epoch': '7x' } },
    { name: 'a negative epoch', headers: { ...good, 'holdfast-epoch': '-7' } },
  ])('an older server: $name', ({ headers }) => expect(serverFacts((name) => Reflect.get(headers, name))).toBeUndefined());

  test.each([
    { extra: {}, spreadMs: 0, window: 32 },
    { extra: { 'holdfast-spread-ms': 'soon', 'holdfast-caps': 'window=0' }, spreadMs: 0, window: 32 },
    { extra: { 'holdfast-spread-ms': '999999999999', 'holdfast-caps': 'window' }, spreadMs: 3_600_000, window: 32 },
    { extra: { 'holdfast-spread-ms': '15000', 'holdfast-caps': 'window=8' }, spreadMs: 15_000, window: 8 },
  ])('what is garbled is as if absent: $extra', ({ extra, spreadMs, window }) =>
    expect(serverFacts(reader({ ...good, ...extra }))).toMatchObject({ spreadMs, window }),
  );
});

test.each([
  ['0', 0],
  ['4321', 4_321],
  ['99999999', 3_600_000],
  ['-1', undefined],
  ['1.5', undefined],
  ['', undefined],
])('I3: come back after %j', (text, expected) => expect(retryMs(reader({ 'holdfast-retry-ms': text }))).toBe(expected));

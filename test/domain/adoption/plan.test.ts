import { describe, expect, test } from 'vitest';
import { type AdoptionFacts, planAdoption, planReturn, type ReturnFacts } from '../../../src/domain/adoption/plan.js';
import { decodeLegacy } from '../../../src/domain/adoption/schema.js';
import { aid, nid } from '../../../src/domain/link/model.js';
import { adoptionRecord, knownFile, pairFacts } from './records.js';

const NOW = 1_000;
const sha = 'ab'.repeat(32);

function agentOf(value: object = {}) {
  const mtls = { crt: '/etc/runos/mtls.crt', key: '/etc/runos/mtls.key', ca: '/etc/runos/ca.crt' };
  const reading = decodeLegacy({ mtls, ...value });
  if (!reading.valid) throw new Error(reading.problems.join());
  return reading.agent;
}

const source = adoptionRecord().source;
const fresh: AdoptionFacts = {
  agent: agentOf(),
  source,
  pair: pairFacts(),
  record: undefined,
  current: undefined,
  isEnrolled: false,
  config: undefined,
  wantedConfig: 'made',
  hiding: undefined,
};
const changed = { ...source, certificate: { ...source.certificate, sha256: 'newer' } };
const adopts = { verdict: 'adopt', nid: 'n-1', aid: 'acme' };

describe('what may be adopted', () => {
  test.each<{ name: string; facts: Partial<AdoptionFacts>; verdict: object }>([
    { name: 'a machine that has nothing of ours', facts: {}, verdict: adopts },
    {
      name: 'one whose configuration names the same node',
      facts: { agent: agentOf({ client: { aid: 'acme' }, node: { nid: 'n-1' } }) },
      verdict: adopts,
    },
    {
      name: 'one that was left half done',
      facts: { record: adoptionRecord({ state: 'taking' }), current: 'aa', isEnrolled: true, config: knownFile('/c', 'made') },
      verdict: adopts,
    },
    {
      name: 'one that was adopted: nothing, whatever became of our certificate since',
      facts: { record: adoptionRecord(), current: 'bb', isEnrolled: true, config: knownFile('/c', 'edited') },
      verdict: { verdict: 'nothing', record: adoptionRecord() },
    },
    {
      name: 'one whose older agent ran and renewed since: again',
      facts: { record: adoptionRecord(), source: changed, current: 'aa', isEnrolled: true, config: knownFile('/c', 'made') },
      verdict: adopts,
    },
  ])('$name', ({ facts, verdict }) => {
    expect(planAdoption({ ...fresh, ...facts }, NOW)).toEqual(verdict);
  });
});

describe('what may not', () => {
  const refusals: readonly { name: string; facts: Partial<AdoptionFacts>; problem: string }[] = [
    {
      name: 'a certificate of another root',
      facts: { pair: pairFacts({ isOfRoot: false }) },
      problem: '/etc/runos/mtls.crt was not signed by /etc/runos/ca.crt',
    },
    {
      name: 'one that names no node',
      facts: { pair: pairFacts({ nid: undefined }) },
      problem: '/etc/runos/mtls.crt names no node: its subject has no usable CN',
    },
    {
      name: 'one that names no account',
      facts: { pair: pairFacts({ aid: undefined }) },
      problem: '/etc/runos/mtls.crt names no account: its subject has no usable O',
    },
    {
      name: 'one that is over',
      facts: { pair: pairFacts({ notAfter: NOW }) },
      problem: '/etc/runos/mtls.crt was valid until 1970-01-01T00:00:01Z, and it is 1970-01-01T00:00:01Z',
    },
    {
      name: 'one that has not begun',
      facts: { pair: pairFacts({ notBefore: NOW + 1_000 }) },
      problem: '/etc/runos/mtls.crt is valid from 1970-01-01T00:00:02Z on, and it is 1970-01-01T00:00:01Z',
    },
    {
      name: 'another node than the configuration says',
      facts: { agent: agentOf({ node: { nid: 'n-2' } }) },
      problem: 'node.nid is n-2, and /etc/runos/mtls.crt is of n-1',
    },
    {
      name: 'another account',
      facts: { agent: agentOf({ client: { aid: 'b' } }) },
      problem: 'client.aid is b, and /etc/runos/mtls.crt is of acme',
    },
    {
      name: 'a root of the registration that is not the pinned one',
      facts: {
        agent: agentOf({
          mtls: { crt: '/a', key: '/b', ca: '/c', 'public-ca': '/p', 'public-ca-sha256': sha },
        }),
        source: { ...source, publicCa: knownFile('/p', 'cd') },
      },
      problem: `/p has SHA-256 cd, and mtls.public-ca-sha256 is ${sha}`,
    },
    {
      name: 'a data directory with a certificate',
      facts: { current: 'bb' },
      problem: 'this data directory is that of a registered node already',
    },
    {
      name: 'a data directory with a registration',
      facts: { isEnrolled: true },
      problem: 'this data directory is that of a registered node already',
    },
    {
      name: 'certificates that both have renewed',
      facts: { record: adoptionRecord(), source: changed, current: 'bb' },
      problem: 'both agents have changed certificates since the adoption: undo it, or register with a new token',
    },
    ...(['returning', 'returned'] as const).map((state) => ({
      name: `an undo that is ${state}`,
      facts: { record: adoptionRecord({ state }) },
      problem: 'an undo was begun: end it with `holdfast adopt --undo`',
    })),
    {
      name: 'a configuration that would be lost',
      facts: { config: knownFile('/etc/holdfast/config.yaml', 'other') },
      problem: '/etc/holdfast/config.yaml is there already and says something else: move it away',
    },
    {
      name: 'a configuration that hides ours',
      facts: { hiding: '/d/holdfast.yaml' },
      problem: '/d/holdfast.yaml would be read instead of the configuration that is made: move it away',
    },
  ];

  test.each(refusals)('$name', ({ facts, problem }) => {
    expect(planAdoption({ ...fresh, ...facts }, NOW)).toEqual({ verdict: 'refused', problems: [problem] });
  });

  test('all that is wrong is told at once', () => {
    const facts = { ...fresh, pair: pairFacts({ isOfRoot: false }), isEnrolled: true, hiding: '/h' };
    expect(planAdoption(facts, NOW)).toMatchObject({ problems: { length: 3 } });
  });
});

describe('what is given back', () => {
  const renewed = pairFacts({ serial: 'bb', notBefore: 500 });
  const given: ReturnFacts = { record: adoptionRecord(), current: pairFacts(), isSameFleet: true, legacy: pairFacts() };

  test.each<{ name: string; facts: Partial<ReturnFacts>; pair: string }>([
    { name: 'nothing, as nothing was renewed', facts: {}, pair: 'as_it_was' },
    { name: 'a renewed pair', facts: { current: renewed }, pair: 'renewed' },
    {
      name: 'a renewed pair over what a killed undo left',
      facts: { record: adoptionRecord({ state: 'returning' }), current: renewed, legacy: undefined },
      pair: 'renewed',
    },
    { name: 'the pair that was adopted, if the files are damaged', facts: { legacy: undefined }, pair: 'renewed' },
    { name: 'nothing twice', facts: { current: renewed, legacy: renewed }, pair: 'as_it_was' },
    { name: 'nothing over a newer one', facts: { legacy: pairFacts({ serial: 'cc', notBefore: 1 }) }, pair: 'kept' },
    { name: 'nothing where we have none any more', facts: { current: undefined }, pair: 'kept' },
    {
      name: 'nothing of an adoption that was never finished',
      facts: { record: adoptionRecord({ state: 'taking' }), current: undefined },
      pair: 'as_it_was',
    },
    {
      name: 'nothing any more when it was done',
      facts: { record: adoptionRecord({ state: 'returned' }), current: undefined, legacy: renewed },
      pair: 'as_it_was',
    },
    {
      name: 'nothing of another node',
      facts: { current: pairFacts({ serial: 'bb', nid: nid('n-9'), notBefore: 500 }) },
      pair: 'registered_anew',
    },
    { name: 'nothing of another account', facts: { current: pairFacts({ aid: aid('b') }) }, pair: 'registered_anew' },
    { name: 'nothing of another fleet', facts: { current: renewed, isSameFleet: false }, pair: 'registered_anew' },
    {
      name: 'nothing of another fleet, also when it goes on',
      facts: { record: adoptionRecord({ state: 'returned' }), current: renewed, isSameFleet: false },
      pair: 'registered_anew',
    },
  ])('$name', ({ facts, pair }) => {
    expect(planReturn({ ...given, ...facts })).toMatchObject({ pair });
  });
});

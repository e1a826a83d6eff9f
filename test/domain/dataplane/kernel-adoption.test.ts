import { expect, test } from 'vitest';
import { markerChain, planAdoption, type TableAsLeft } from '../../../src/domain/dataplane/kernel-adoption.js';
import { compileRuleset } from '../../../src/domain/dataplane/kernel-compiler.js';
import { defaultMarks } from '../../../src/domain/dataplane/kernel-model.js';
import { baseRuleset } from '../../../src/domain/dataplane/kernel-ruleset.js';
import type { L4Endpoint, L4Listener } from '../../../src/domain/dataplane/model.js';
import type { RulePlan } from '../../../src/domain/dataplane/ruleset.js';
import { ipAddress, ipv4Range } from '../../../src/domain/kernel/network.js';
import { endpoint, listener } from '../../support/listeners.js';

const known = <T>(value: T | undefined): T => {
  if (value === undefined) throw new Error('not known');
  return value;
};
const settings = { range: known(ipv4Range('10.192.0.0/16')), marks: defaultMarks };

function service(last: number, ...endpoints: readonly L4Endpoint[]): L4Listener {
  const id = `default/s${last}/http` as L4Listener['id'];
  const port = 80 as L4Listener['port'];
  return {
    ...listener(id, endpoints),
    port,
    address: known(ipAddress(`10.192.0.${last}`)),
    algorithm: 'random',
    path: 'kernel',
    id,
  };
}
const at = (last: number) => endpoint(80, 1, known(ipAddress(`10.9.0.${last}`)));
const planOf = (...services: readonly L4Listener[]) => compileRuleset(settings, new Map(services.map((each) => [each.id, each])));

/** As a kernel has it that has carried the plan out. */
function left(plan: RulePlan): TableAsLeft {
  const operations = plan.flat();
  const rules = new Map<string, number>();
  for (const one of operations) if (one.kind === 'rule') rules.set(one.chain, (rules.get(one.chain) ?? 0) + 1);
  const packed = (set: string) =>
    Uint8Array.from(operations.flatMap((one) => (one.kind === 'add-elements' && one.set === set ? [...one.packed] : [])));
  return {
    chains: operations.flatMap((one) => (one.kind === 'chain' ? [one.chain] : [])),
    rules,
    sets: operations.flatMap((one) => (one.kind === 'set' ? [{ set: one.set, packed: packed(one.set) }] : [])),
  };
}

/** `KIND SET BYTES`, batch by batch. */
const shown = (plan: RulePlan | undefined) =>
  plan?.map((batch) => batch.map((one) => ('packed' in one ? `${one.kind} ${one.set} ${one.packed.length}` : one.kind)));

test('nothing differs', () => {
  const plan = planOf(service(2, at(1), at(2)), service(3, at(3)));
  expect(planAdoption(left(plan), plan)).toEqual([]);
});

test.each<[string, readonly L4Listener[], readonly L4Listener[], readonly (readonly string[])[]]>([
  ['a service came', [], [service(2, at(1))], [['add-elements service4 16', 'add-elements endpoint4 24']]],
  ['a service went', [service(2, at(1))], [], [['delete-elements service4 12'], ['delete-elements endpoint4 16']]],
  ['another endpoint', [service(2, at(1))], [service(2, at(2))], [['delete-elements endpoint4 16', 'add-elements endpoint4 24']]],
  [
    'fewer: the class changes before the slots go',
    [service(2, at(1), at(2))],
    [service(2, at(1))],
    [['delete-elements service4 12', 'add-elements service4 16'], ['delete-elements endpoint4 16']],
  ],
])('%s', (_, before, after, expected) => {
  // Endpoints of the test's listeners are this node's own.
  const away = (services: readonly L4Listener[]) =>
    services.map((each) => ({ ...each, endpoints: each.endpoints.map((one) => ({ ...one, local: false })) }));
  expect(shown(planAdoption(left(planOf(...away(before))), planOf(...away(after))))).toEqual(expected);
});

test.each<[string, (table: TableAsLeft) => TableAsLeft]>([
  ['an empty table', () => ({ chains: [], rules: new Map(), sets: [] })],
  ['a chain more', (table) => ({ ...table, chains: [...table.chains, 'other'] })],
  ['a chain less', (table) => ({ ...table, chains: table.chains.slice(1) })],
  ['a rule less', (table) => ({ ...table, rules: new Map([...table.rules].map(([chain, count]) => [chain, count - 1])) })],
  ['a set less', (table) => ({ ...table, sets: table.sets.slice(1) })],
])('%s gives way as a whole', (_, change) => {
  const plan = planOf(service(2, at(1)));
  expect(planAdoption(change(left(plan)), plan)).toBeUndefined();
});

test('the marker tells rulesets apart by anything that is in them', () => {
  const marker = markerChain(baseRuleset(settings));
  const others = [
    baseRuleset({ ...settings, range: known(ipv4Range('10.192.0.0/17')) }),
    baseRuleset({ ...settings, marks: { ...defaultMarks, cut: 1 } }),
  ];
  expect(marker).toMatchObject({ kind: 'chain', chain: expect.stringMatching(/^ruleset-[0-9a-f]{16}$/) });
  expect(markerChain(baseRuleset(settings))).toEqual(marker);
  expect(others.map(markerChain)).not.toContainEqual(marker);
});

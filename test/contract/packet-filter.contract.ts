import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RuleBatch, RuleOperation } from '../../src/domain/dataplane/ruleset.js';
import type { ForeignChain, PacketFilter } from '../../src/ports/dataplane/packet-filter.js';

/** A machine without any rules. */
export interface FilterMachine {
  /** Of a process of its own, that of `owner` if the table is to be nobody else's. */
  filter(owner: boolean): Promise<PacketFilter>;
  /** What another program does. */
  flush(): Promise<void>;
  addChain(chain: ForeignChain): Promise<void>;
  end(): Promise<void>;
}

const options = { signal: new AbortController().signal };
const MARK = 19;

const set: RuleOperation = { kind: 'set', set: 's', flags: 8, keyType: MARK, fields: [4], dataType: MARK, dataBytes: 4 };
const chains: RuleBatch = [
  { kind: 'chain', chain: 'empty' },
  { kind: 'chain', chain: 'counting' },
  { kind: 'rule', chain: 'counting', expressions: [['counter']] },
  { kind: 'rule', chain: 'counting', expressions: [['counter']] },
];

/** A key leads to a number; both are one byte here. */
function elements(
  kind: 'add-elements' | 'delete-elements',
  ...pairs: readonly (readonly [key: number, value: number])[]
): RuleOperation {
  const data = kind === 'add-elements' ? { dataBytes: 4 } : {};
  const packed = pairs.flatMap(([key, value]) => [key, 0, 0, 0, ...(kind === 'add-elements' ? [value, 0, 0, 0] : [])]);
  return { kind, set: 's', keyBytes: 4, ...data, packed: Uint8Array.from(packed) };
}

/** Every PacketFilter must pass. */
export function packetFilterContract(name: string, make: () => Promise<FilterMachine>): void {
  describe(`PacketFilter: ${name}`, () => {
    let machine: FilterMachine;
    let filter: PacketFilter;
    let foreign = 0;

    const open = (one: PacketFilter) => one.open(() => void foreign++, options);
    /** `KEY VALUE`, sorted. */
    const content = async (of = filter) => {
      const [only] = (await of.dump(options)).sets;
      const bytes = [...(only?.packed ?? [])];
      return bytes.flatMap((byte, at) => (at % 8 === 0 ? [`${byte} ${bytes[at + 4]}`] : [])).sort();
    };

    beforeEach(async () => {
      machine = await make();
      filter = await machine.filter(true);
      foreign = 0;
    });
    afterEach(() => machine.end());

    test('a table is made, and has what batches put there', async () => {
      expect(await open(filter)).toEqual({ owned: true, adopted: false });
      await filter.replace([set, ...chains, elements('add-elements', [1, 10], [2, 20])], options);
      await filter.apply(
        [[elements('delete-elements', [1, 0]), elements('add-elements', [1, 11])], [elements('add-elements', [3, 30])]],
        options,
      );
      const dump = await filter.dump(options);
      expect(dump.chains.toSorted()).toEqual(['counting', 'empty']);
      expect(dump.rules).toEqual(new Map([['counting', 2]]));
      expect(dump.sets.map((each) => each.set)).toEqual(['s']);
      expect(await content()).toEqual(['1 11', '2 20', '3 30']);
    });

    test('a batch is carried out as a whole or not at all, and those before it are', async () => {
      await open(filter);
      await filter.replace([set, elements('add-elements', [1, 10])], options);
      const bad = filter.apply(
        [[elements('add-elements', [2, 20])], [elements('add-elements', [3, 30]), elements('delete-elements', [9, 0])]],
        options,
      );
      await expect(bad).rejects.toThrow(/delete-elements/);
      expect(await content()).toEqual(['1 10', '2 20']);
    });

    test('everything gives way to what replaces it', async () => {
      await open(filter);
      await filter.replace([set, ...chains, elements('add-elements', [1, 10])], options);
      await filter.replace([set, elements('add-elements', [2, 20])], options);
      expect(await filter.dump(options)).toMatchObject({ chains: [], rules: new Map() });
      expect(await content()).toEqual(['2 20']);
    });

    test('what a process has left, the next one takes up as it is', async () => {
      await open(filter);
      await filter.replace([set, elements('add-elements', [1, 10])], options);
      await filter.close();
      const next = await machine.filter(true);
      expect(await open(next)).toEqual({ owned: true, adopted: true });
      expect(await content(next)).toEqual(['1 10']);
      await next.apply([[elements('add-elements', [2, 20])]], options);
      expect(await content(next)).toEqual(['1 10', '2 20']);
    });

    test('what others do to a table that is not owned is told; what is done here is not', async () => {
      const shared = await machine.filter(false);
      expect(await open(shared)).toEqual({ owned: false, adopted: false });
      await shared.replace([set, elements('add-elements', [1, 10])], options);
      await shared.apply([[elements('add-elements', [2, 20])]], options);
      expect(foreign).toBe(0);
      await machine.flush();
      await expect.poll(() => foreign).toBeGreaterThan(0);
      expect(await shared.dump(options)).toEqual({ chains: [], rules: new Map(), sets: [] });
    });

    test('chains of others are listed', async () => {
      await open(filter);
      const chain = { table: 'inet fw', chain: 'guard', hook: 'forward', priority: 5, policy: 'drop' } as const;
      await machine.addChain(chain);
      await filter.replace([{ kind: 'chain', chain: 'own', type: 'filter', hook: 2, priority: 0 }], options);
      expect(await filter.foreignChains(options)).toEqual([chain]);
    });

    test('one that is removed leaves nothing', async () => {
      await open(filter);
      await filter.replace([set, ...chains], options);
      await filter.remove(options);
      const next = await machine.filter(true);
      expect(await open(next)).toEqual({ owned: true, adopted: false });
      expect(await next.dump(options)).toEqual({ chains: [], rules: new Map(), sets: [] });
    });
  });
}

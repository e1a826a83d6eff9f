import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileRuleset, KernelCompiler } from '../../../src/domain/dataplane/kernel-compiler.js';
import type { L4Listener, ListenerId } from '../../../src/domain/dataplane/model.js';
import { type IpAddress, ipAddress } from '../../../src/domain/kernel/network.js';
import { FakePacketFilter } from '../../fakes/fake-packet-filter.js';
import type { TracedPacket } from '../../fakes/packet-tracer.js';
import { filterSettings, kernelEndpoint, kernelListener } from '../../support/kernel-listeners.js';
import { address } from '../../support/listeners.js';

const options = { signal: new AbortController().signal };
const tableOf = (...listeners: readonly L4Listener[]) => new Map(listeners.map((each) => [each.id, each]));

async function loaded(...listeners: readonly L4Listener[]) {
  const filter = new FakePacketFilter();
  const compiler = new KernelCompiler(filterSettings);
  await filter.open(() => {}, options);
  await filter.apply(compiler.load(tableOf(...listeners)), options);
  return { filter, compiler };
}

const isLocal = (own: string) => (each: IpAddress) => each === own || each.startsWith('10.192.') || each.startsWith('fd96::');

function packet(changes: Partial<TracedPacket> = {}): TracedPacket {
  return {
    ...{
      from: 'outside',
      source: address('10.9.1.2'),
      sourcePort: 40_000,
      destination: address('10.192.0.2'),
      port: 80,
      protocol: 'tcp',
    },
    local: isLocal('10.9.1.1'),
    ...changes,
  };
}

const three = [kernelEndpoint('10.0.0.1'), kernelEndpoint('10.0.0.2'), kernelEndpoint('10.0.0.3')];
const inTurn = (values: readonly number[]) => {
  let at = 0;
  return () => values[at++ % values.length] ?? 0;
};

describe('a packet', () => {
  test('is given each endpoint for a third of the numbers', async () => {
    const { filter } = await loaded(kernelListener('10.192.0.2', three));
    const targets = [0, 0.34, 0.67].map((number) => filter.trace(packet(), () => number).destination);
    expect(targets).toEqual(['10.0.0.1:8080', '10.0.0.2:8080', '10.0.0.3:8080']);
  });

  test('keeps its own mark, and its flow is marked as ours', async () => {
    const { filter } = await loaded(kernelListener('10.192.0.2', three));
    expect(filter.trace(packet({ mark: 0x77 }))).toMatchObject({
      verdict: 'passes',
      mark: 0x77,
      flowMark: filterSettings.marks.ours,
    });
  });

  test.each(['outside', 'node'] as const)('that comes from %s is given an endpoint, IPv6 alike', async (from) => {
    const { filter } = await loaded(kernelListener('fd96::2', [kernelEndpoint('fd00::1')]));
    const asked = { from, source: address('fd09::2'), destination: address('fd96::2') };
    expect(filter.trace(packet(asked)).destination).toBe(`253.0${'.0'.repeat(13)}.1:8080`);
  });

  test("that begins no connection is left alone: the flow may be the proxy's", async () => {
    const { filter } = await loaded(kernelListener('10.192.0.2', three));
    for (const flags of [0x10, 0x12, 0x04])
      expect(filter.trace(packet({ flags }))).toMatchObject({ verdict: 'passes', destination: '10.192.0.2:80' });
  });

  test.each([
    ['without an endpoint', kernelListener('10.192.0.2', [])],
    ['that refuses', kernelListener('10.192.0.2', three, { refuse: true })],
    ['of another port', kernelListener('10.192.0.2', three, { port: 81 as L4Listener['port'] })],
  ])('to a service %s is refused, and a UDP one as well', async (_, listener) => {
    const { filter } = await loaded(listener);
    expect(filter.trace(packet()).verdict).toBe('reset');
    expect(filter.trace(packet({ protocol: 'udp' })).verdict).toBe('unreachable');
    expect(
      filter.trace(packet({ flags: 0x10, flow: { state: 'established', mark: 0 } })).verdict,
      'one of a flow that runs',
    ).toBe('passes');
  });

  test('to what is no address of services is not ours', async () => {
    const { filter } = await loaded(kernelListener('10.192.0.2', three));
    const other = packet({ destination: address('10.9.1.1'), port: 22 });
    expect(filter.trace(other)).toMatchObject({ verdict: 'passes', destination: '10.9.1.1:22', flowMark: 0, masqueraded: false });
  });

  test.each([
    ['from an instance to itself', '10.0.0.1', true, true],
    ['from an instance to another', '10.0.0.2', true, false],
    ['from another host to an instance', '10.9.1.2', true, false],
    ['from another host to another host', '10.9.1.2', false, true],
  ])('%s: masqueraded is %s, %s', async (_, source, local, masqueraded) => {
    const { filter } = await loaded(
      kernelListener('10.192.0.2', [kernelEndpoint('10.0.0.1', 1, local)]),
      kernelListener('10.192.0.9', [kernelEndpoint('10.0.0.2')]),
    );
    expect(filter.trace(packet({ source: address(source) })).masqueraded).toBe(masqueraded);
  });

  test('of one client goes to one endpoint with source-hash', async () => {
    const { filter } = await loaded(kernelListener('10.192.0.2', three, { algorithm: 'source-hash' }));
    const targets = (source: string) =>
      new Set([0, 0.3, 0.9].map((number) => filter.trace(packet({ source: address(source) }), () => number).destination));
    const all = Array.from({ length: 30 }, (_, last) => targets(`10.9.1.${last + 2}`));
    expect(all.every((each) => each.size === 1)).toBe(true);
    expect(new Set(all.flatMap((each) => [...each])).size).toBe(3);
  });

  test.each([
    ['10.192.0.2', '10.9.1.2', '10.0.0.'],
    ['fd96::2', 'fd09::2', 'fd00::'],
  ])(
    'of a remembered client goes where the one before went, and to any endpoint when no more can be remembered (%s)',
    async (vip, client, net) => {
      const { filter } = await loaded(
        kernelListener(
          vip,
          [1, 2, 3].map((last) => kernelEndpoint(`${net}${last}`)),
          { affinityMs: 10_000 },
        ),
      );
      const ask = (source: string, number: number) =>
        filter.trace(packet({ source: address(source), destination: address(vip), mark: 0x77 }), inTurn([number]));
      const first = ask(client, 0.1);
      for (const number of [0.2, 0.5, 0.9]) expect(ask(client, number)).toEqual(first);
      const set = filter.table.sets.get(vip.includes(':') ? 'affinity6' : 'affinity4');
      expect(set?.elements.size).toBe(1);
      expect(first.mark).toBe(0x77);
      for (let more = 0; more < 262_143; more++) set?.elements.set(`x${more}`, 'xxxx');
      const other = vip.includes(':') ? 'fd09::9' : '10.9.1.9';
      expect(ask(other, 0.1)).toMatchObject({ verdict: 'passes', flowMark: filterSettings.marks.ours });
      expect(set?.elements.size).toBe(262_144);
    },
  );

  test('of a flow that is to end is answered by a reset, and is dropped if it is UDP; our own resets pass', async () => {
    const { filter } = await loaded(kernelListener('10.192.0.2', three));
    const flow = { state: 'established' as const, mark: filterSettings.marks.cut };
    expect(filter.trace(packet({ flags: 0x10, flow })).verdict).toBe('reset');
    expect(filter.trace(packet({ protocol: 'udp', flow })).verdict).toBe('dropped');
    expect(filter.trace(packet({ flags: 0x04, flow })).verdict).toBe('passes');
    expect(filter.trace(packet({ flags: 0x10, flow: { ...flow, state: 'related' } })).verdict).toBe('passes');
  });

  test('of a service that the proxy answers goes to the proxy', async () => {
    const { filter } = await loaded();
    expect(filter.trace(packet()).verdict).toBe('reset');
    const packed = Uint8Array.of(10, 192, 0, 2, 6, 0, 0, 0, 0, 80, 0, 0);
    await filter.apply([[{ kind: 'add-elements', set: 'proxied4', keyBytes: 12, packed }]], options);
    expect(filter.trace(packet())).toMatchObject({ verdict: 'passes', destination: '10.192.0.2:80' });
  });
});

describe('a change', () => {
  const changed = async (from: L4Listener, to: L4Listener) => {
    const { compiler } = await loaded(from);
    return compiler.update({ upsert: [to], remove: [] });
  };

  test('of endpoints is one batch of what changed', async () => {
    const plan = await changed(
      kernelListener('10.192.0.2', three),
      kernelListener('10.192.0.2', [...three.slice(0, 2), kernelEndpoint('10.0.0.9')]),
    );
    expect(plan[0]?.map((operation) => ('set' in operation ? `${operation.kind} ${operation.set}` : operation.kind))).toEqual([
      'delete-elements endpoint4',
      'add-elements local4',
      'add-elements hairpin4',
      'add-elements endpoint4',
    ]);
    expect(plan[1]?.map((operation) => 'set' in operation && operation.set)).toEqual(['local4', 'hairpin4']);
  });

  test('to fewer slots lets go of them in a batch of its own', async () => {
    const plan = await changed(kernelListener('10.192.0.2', three), kernelListener('10.192.0.2', three.slice(0, 1)));
    expect(plan.length).toBe(2);
    expect(plan[1]?.every(({ kind }) => kind === 'delete-elements')).toBe(true);
  });

  test('that is none is no batch', async () => {
    expect(await changed(kernelListener('10.192.0.2', three), kernelListener('10.192.0.2', [...three]))).toEqual([]);
  });

  test('from one listener to another of the same address keeps what both have', async () => {
    const { compiler, filter } = await loaded(kernelListener('10.192.0.2', three));
    const heir = { ...kernelListener('10.192.0.2', three), id: 'default/heir/http' as ListenerId };
    const plan = compiler.update({ upsert: [heir], remove: [kernelListener('10.192.0.2', []).id] });
    await filter.apply(plan, options);
    expect(plan).toEqual([]);
    expect(filter.trace(packet(), () => 0).destination).toBe('10.0.0.1:8080');
  });
});

test('an endpoint of the second tier is used while there is none of the first', async () => {
  const far = kernelEndpoint('10.0.0.8', 1, false, 1);
  const { compiler, filter } = await loaded(kernelListener('10.192.0.2', [far, kernelEndpoint('10.0.0.1')]));
  expect(filter.trace(packet(), () => 0.99).destination).toBe('10.0.0.1:8080');
  await filter.apply(compiler.update({ upsert: [kernelListener('10.192.0.2', [far])], remove: [] }), options);
  expect(filter.trace(packet()).destination).toBe('10.0.0.8:8080');
});

test('it says what shares are rounded', () => {
  const compiler = new KernelCompiler(filterSettings);
  const rough = kernelListener(
    '10.192.0.2',
    Array.from({ length: 100 }, (_, index) => kernelEndpoint(`10.0.0.${index + 1}`, index + 1)),
  );
  compiler.load(tableOf(rough, kernelListener('10.192.0.3', three)));
  expect(compiler.rounded(0.03)).toEqual([rough.id]);
  expect(compiler.route(rough.id)?.slots.length).toBe(2_048);
  expect(compiler.size).toEqual({ services: 2, slots: 2_051 });
});

const anyListener = fc
  .record({
    last: fc.integer({ min: 2, max: 6 }),
    v6: fc.boolean(),
    endpoints: fc.uniqueArray(
      fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 3 }), fc.boolean(), fc.integer({ min: 0, max: 1 })),
      {
        maxLength: 4,
        selector: ([last]) => last,
      },
    ),
    protocol: fc.constantFrom('tcp' as const, 'udp' as const),
    algorithm: fc.constantFrom('random' as const, 'source-hash' as const),
    affinityMs: fc.constantFrom(0, 0, 1_000, 2_000),
    path: fc.constantFrom('kernel' as const, 'kernel' as const, 'proxy' as const),
    refuse: fc.constantFrom(false, false, true),
    heir: fc.boolean(),
  })
  .map(({ last, v6, endpoints, heir, ...rest }) => {
    const net = v6 ? 'fd00::' : '10.0.0.';
    const at = v6 ? `fd96::${last}` : `10.192.0.${last}`;
    const made = kernelListener(
      at,
      endpoints.map(([end, weight, local, tier]) => kernelEndpoint(`${net}${end}`, weight, local, tier)),
      rest,
    );
    return { made, heir };
  });

function shown(filter: FakePacketFilter) {
  const { chains, sets } = filter.table;
  return {
    chains: Object.fromEntries([...chains].toSorted().map(([name, { rules }]) => [name, rules.length])),
    sets: Object.fromEntries([...sets].map(([name, { elements }]) => [name, [...elements].toSorted()])),
  };
}

test('whatever changes: what was kept up is what is compiled anew, and every batch is one that the kernel takes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.tuple(anyListener, fc.boolean()), { minLength: 1, maxLength: 4 }), { maxLength: 12 }),
      async (steps) => {
        const { compiler, filter } = await loaded();
        const table = new Map<ListenerId, L4Listener>();
        for (const step of steps) {
          const upsert = new Map<ListenerId, L4Listener>();
          const remove = new Set<ListenerId>();
          for (const [{ heir, made }, isRemoved] of step) {
            const key = `${made.address} ${made.protocol}`;
            const owner = [...table.values(), ...upsert.values()].find(
              (each) => `${each.address} ${each.protocol}` === key && !remove.has(each.id),
            );
            if (isRemoved) {
              if (owner !== undefined && !upsert.has(owner.id)) remove.add(owner.id);
              continue;
            }
            // Another listener has the address from now on.
            const id = heir ? (`${made.id}-heir` as ListenerId) : made.id;
            if (owner !== undefined && owner.id !== id) {
              if (upsert.has(owner.id)) continue;
              remove.add(owner.id);
            }
            if (remove.has(id)) continue;
            upsert.set(id, { ...made, id });
          }
          for (const id of remove) table.delete(id);
          for (const [id, each] of upsert) table.set(id, each);
          await filter.apply(compiler.update({ upsert: [...upsert.values()], remove: [...remove] }), options);
        }
        const fresh = new FakePacketFilter();
        await fresh.open(() => {}, options);
        await fresh.apply(compileRuleset(filterSettings, table), options);
        expect(shown(filter)).toEqual(shown(fresh));
      },
    ),
    { numRuns: 100 },
  );
});

test('30,000 services are compiled in batches that each stand for themselves', () => {
  const many = Array.from({ length: 30_000 }, (_, index) =>
    kernelListener(`10.192.${Math.floor(index / 250)}.${(index % 250) + 1}`, three, { protocol: 'tcp' }),
  );
  const plan = compileRuleset(filterSettings, tableOf(...many));
  expect(plan.length).toBe(7);
  expect(ipAddress('10.192.119.250')).toBeDefined();
});

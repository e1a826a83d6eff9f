import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DataPlane, DataPlaneEvent, ListenResult } from '../../src/ports/dataplane/data-plane.js';
import { address, endpoint, listener } from '../support/listeners.js';

const options = { signal: new AbortController().signal };

function portOf(result: ListenResult | undefined): number {
  if (result?.listening !== true) throw new Error(`does not listen: ${JSON.stringify(result)}`);
  return result.port;
}

const protocols = ['tcp', 'udp'] as const;

/** Every DataPlane must pass. `make` gives one that was not started. */
export function dataPlaneContract(name: string, make: () => DataPlane): void {
  describe(`DataPlane: ${name}`, () => {
    let plane: DataPlane;
    let events: DataPlaneEvent[];

    beforeEach(() => {
      plane = make();
      events = [];
      plane.start((event) => events.push(event));
    });
    afterEach(() => plane.stop(0));

    const apply = (...upsert: Parameters<DataPlane['apply']>[0]['upsert']) => plane.apply({ upsert, remove: [] }, options);

    test('says how each listener came out, in order', async () => {
      const results = await apply(listener('a/b/c', []), listener('a/b/d', [endpoint(1)]));
      expect(results.map(({ id, listening }) => [id, listening])).toEqual([
        ['a/b/c', true],
        ['a/b/d', true],
      ]);
      expect(new Set(results.map(portOf)).size).toBe(2);
      expect(plane.info()).toMatchObject({ threads: expect.any(Number), listeners: 2 });
    });

    test('the same again changes nothing', async () => {
      const spec = listener('a/b/c', [endpoint(1)]);
      const first = await apply(spec);
      expect(await apply(spec)).toEqual(first);
      expect(await apply({ ...spec, listenPort: portOf(first[0]) })).toEqual(first);
      expect(plane.info().listeners).toBe(1);
      expect(events).toEqual([]);
    });

    test('one that was left goes on, and is taken up again with all that it had', async () => {
      const spec = listener('a/b/c', [endpoint(1)]);
      const first = await apply(spec);
      expect(() => plane.start(() => {})).toThrow('started before');
      plane.leave();
      expect(plane.info().listeners).toBe(1);
      expect(plane.sockets()).toEqual([{ protocol: 'tcp', fd: expect.any(Number) }]);
      const later: DataPlaneEvent[] = [];
      plane.start((event) => later.push(event));
      expect(plane.stats().map(({ id }) => id)).toEqual(['a/b/c']);
      expect(await apply(spec)).toEqual(first);
      await plane.apply({ upsert: [], remove: [spec.id] }, options);
      await expect.poll(() => later).toEqual([{ type: 'drained', id: 'a/b/c', endpoint: '127.0.0.1:1', closed: 0 }]);
      expect(events).toEqual([]);
    });

    test.each(protocols)('%s: a port that is taken is named and affects no other listener', async (protocol) => {
      const [first] = await apply(listener('a/b/c', [], { protocol }));
      const port = portOf(first);
      const results = await apply(listener('a/b/d', [], { protocol, listenPort: port }), listener('a/b/e', [], { protocol }));
      expect(results[0]).toEqual({
        id: 'a/b/d',
        listening: false,
        reason: 'address_in_use',
        detail: expect.stringContaining('bind'),
      });
      expect(results[1]?.listening).toBe(true);
      expect(plane.info().listeners).toBe(2);
    });

    test.each(protocols)('%s: a failed listener is tried again when it is applied again', async (protocol) => {
      const [holder] = await apply(listener('a/b/c', [], { protocol }));
      const late = listener('a/b/d', [], { protocol, listenPort: portOf(holder) });
      expect((await apply(late))[0]?.listening).toBe(false);
      await plane.apply({ upsert: [], remove: [listener('a/b/c', [], { protocol }).id] }, options);
      expect(portOf((await apply(late))[0])).toBe(portOf(holder));
    });

    test.each(protocols)('%s: an address goes from a removed listener to a new one in one delta', async (protocol) => {
      const old = listener('a/b/c', [], { protocol });
      const [holder] = await apply(old);
      const heir = listener('a/b/d', [], { protocol, listenPort: portOf(holder) });
      const results = await plane.apply({ upsert: [heir], remove: [old.id] }, options);
      expect(portOf(results[0])).toBe(portOf(holder));
      expect(plane.stats().map(({ id }) => id)).toEqual(['a/b/d']);
    });

    test('TCP and UDP may have one address', async () => {
      let results: readonly ListenResult[] = [];
      // A program outside may have the port by chance.
      for (let tries = 0; tries < 10 && results[0]?.listening !== true; tries++) {
        const tcp = listener(`a/b/tcp-${tries}`, []);
        const [first] = await apply(tcp);
        results = await apply(listener(`a/b/udp-${tries}`, [], { protocol: 'udp', listenPort: portOf(first) }));
      }
      expect(results[0]?.listening).toBe(true);
    });

    test('a listener whose protocol changes keeps nothing of the old one', async () => {
      const spec = listener('a/b/c', [endpoint(1)]);
      await apply(spec);
      expect((await apply({ ...spec, protocol: 'udp' }))[0]?.listening).toBe(true);
      await expect.poll(() => events).toEqual([{ type: 'drained', id: 'a/b/c', endpoint: '127.0.0.1:1', closed: 0 }]);
      expect(plane.statsOf(spec.id)?.endpoints).toMatchObject([{ port: 1, draining: false }]);
      expect(plane.info().listeners).toBe(1);
    });

    test('counts per listener and endpoint, in canonical form', async () => {
      const spec = listener('a/b/c', [endpoint(1), endpoint(2, 5, address('fd00:0::1'))]);
      await apply(spec);
      const idle = { active: 0, total: 0, draining: false, ejected: false };
      const ended = { completed: 0, failed: 0, refused: 0, limited: 0, evicted: 0, dropped: 0, reset: 0, drained: 0 };
      const counters = { ...ended, bytesIn: 0, bytesOut: 0, dialFailures: 0 };
      const wanted = {
        id: 'a/b/c',
        active: 0,
        ...counters,
        endpoints: [
          { address: '127.0.0.1', port: 1, ...idle },
          { address: 'fd00::1', port: 2, ...idle },
        ],
      };
      expect(plane.stats()).toEqual([wanted]);
      expect(plane.statsOf(spec.id)).toEqual(wanted);
      expect(plane.statsOf(listener('a/b/x', []).id)).toBeUndefined();
    });

    test.each(protocols)(
      '%s: a withdrawn endpoint without connections is drained at once; so are those of a removed listener',
      async (protocol) => {
        const spec = listener('a/b/c', [endpoint(1), endpoint(2)], { protocol });
        await apply(spec);
        await apply({ ...spec, endpoints: [endpoint(2)] });
        await expect.poll(() => events).toEqual([{ type: 'drained', id: 'a/b/c', endpoint: '127.0.0.1:1', closed: 0 }]);
        await plane.apply({ upsert: [], remove: [spec.id] }, options);
        await expect.poll(() => events[1]).toEqual({ type: 'drained', id: 'a/b/c', endpoint: '127.0.0.1:2', closed: 0 });
        expect(plane.statsOf(spec.id)).toBeUndefined();
        expect(plane.info().listeners).toBe(0);
      },
    );

    test('every setting of a listener can change without its port', async () => {
      const spec = listener('a/b/c', [endpoint(1)]);
      const [first] = await apply(spec);
      const changes = [
        { algorithm: 'random' as const },
        { algorithm: 'least-connections' as const, affinityMs: 10_000 },
        { algorithm: 'source-hash' as const, idleMs: 60_000 },
        { maxConnections: 100, acceptProxy: true, sendProxy: 2 as const },
        { endpoints: [endpoint(1, 100), endpoint(2, 1, undefined, 1)] },
        { endpoints: [endpoint(1, 100), endpoint(2, 1, undefined, 1)], refuse: true },
      ];
      for (const change of changes) expect(portOf((await apply({ ...spec, ...change }))[0])).toBe(portOf(first));
      expect(plane.stats().map(({ endpoints }) => endpoints.map(({ port }) => port))).toEqual([[1, 2]]);
      expect(events).toEqual([]);
    });

    test('counters of a removed listener are gone; one that comes back has new ones', async () => {
      const spec = listener('a/b/c', []);
      await apply(spec, listener('a/b/d', []));
      expect(plane.stats()).toHaveLength(2);
      await plane.apply({ upsert: [], remove: [spec.id] }, options);
      expect(plane.stats().map(({ id }) => id)).toEqual(['a/b/d']);
      await apply(spec);
      expect(
        plane
          .stats()
          .map(({ id }) => id)
          .sort(),
      ).toEqual(['a/b/c', 'a/b/d']);
    });

    test('says how many connections there are and may be', () => {
      expect(plane.info()).toMatchObject({ connections: 0, connectionLimit: expect.any(Number) });
      expect(plane.info().connectionLimit).toBeGreaterThan(0);
    });

    test('removing what is not there is fine', async () => {
      expect(await plane.apply({ upsert: [], remove: [listener('a/b/c', []).id] }, options)).toEqual([]);
    });

    test('calls are carried out one after the other', async () => {
      const spec = listener('a/b/c', []);
      const [first, , third] = await Promise.all([
        apply(spec),
        plane.apply({ upsert: [], remove: [spec.id] }, options),
        apply(spec),
      ]);
      expect([first?.[0]?.listening, third?.[0]?.listening]).toEqual([true, true]);
      expect(plane.info().listeners).toBe(1);
    });

    test('an aborted call rejects and does nothing', async () => {
      await expect(
        plane.apply({ upsert: [listener('a/b/c', [])], remove: [] }, { signal: AbortSignal.abort() }),
      ).rejects.toThrow();
      expect(plane.stats()).toEqual([]);
    });

    test('stops twice, and applies nothing afterwards', async () => {
      await apply(listener('a/b/c', []));
      await plane.stop(0);
      await plane.stop(0);
      expect(plane.info().listeners).toBe(0);
      await expect(apply(listener('a/b/d', []))).rejects.toThrow('stopped');
    });
  });
}

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Flows } from '../../src/domain/dataplane/flows.js';
import { type IpAddress, ipAddress } from '../../src/domain/kernel/network.js';
import type { Conntrack } from '../../src/ports/dataplane/conntrack.js';

/** A machine on whose loopback `talk` sends one datagram, which the kernel tracks. */
export interface ConntrackWorld {
  readonly conntrack: Conntrack;
  talk(from: number, to: number, address: IpAddress): Promise<void>;
  end(): Promise<void>;
}

const options = { signal: new AbortController().signal };
const v4 = ipAddress('127.0.0.1') as IpAddress;
const v6 = ipAddress('::1') as IpAddress;
const cut = 0x4000_0000;

/** Every Conntrack must pass. */
export function conntrackContract(name: string, make: () => Promise<ConntrackWorld>): void {
  describe(`Conntrack: ${name}`, () => {
    let world: ConntrackWorld;
    let conntrack: Conntrack;
    const ports = (flows: Flows) => [...flows].map(({ source }) => source.port).sort();
    const all = () => conntrack.list({ protocol: 17 }, options);

    beforeAll(async () => {
      world = await make();
      conntrack = world.conntrack;
    });
    afterAll(() => world.end());
    beforeEach(async () => {
      await conntrack.remove(await all(), options);
      await world.talk(4001, 5001, v4);
      await world.talk(4002, 5002, v4);
      await world.talk(4003, 5001, v6);
    });

    test('lists each flow with both of its tuples', async () => {
      const found = [...(await all())];
      expect(found).toHaveLength(3);
      const first = found.find(({ source }) => source.port === 4001);
      expect(first).toMatchObject({
        protocol: 17,
        mark: 0,
        source: { address: v4, port: 4001 },
        destination: { address: v4, port: 5001 },
        backend: { address: v4, port: 5001 },
        backendPeer: { address: v4, port: 4001 },
      });
      expect(first?.timeoutSeconds).toBeGreaterThan(0);
      expect(new Set(found.map(({ id }) => id)).size).toBe(3);
    });

    test.each([
      ['a family', { family: 6 }, [4003]],
      ['a protocol', { protocol: 6 }, []],
      ['a destination of any port', { anyOf: [{ part: 'destination', address: v4 }] }, [4001, 4002]],
      ['a destination', { anyOf: [{ part: 'destination', address: v4, port: 5002, protocol: 17 }] }, [4002]],
      ['a back-end', { anyOf: [{ part: 'backend', address: v6, port: 5001 }] }, [4003]],
      [
        'sources',
        {
          anyOf: [
            { part: 'source', address: v4, port: 4001 },
            { part: 'source', address: v6 },
          ],
        },
        [4001, 4003],
      ],
      ['both', { family: 4, protocol: 17, anyOf: [{ part: 'source', address: v4, port: 4002 }] }, [4002]],
      ['nothing', { anyOf: [] }, []],
      ['a zone', { zone: 3 }, []],
    ] as const)('selects by %s', async (_name, filter, wanted) => {
      expect(ports(await conntrack.list(filter, options)).filter((port) => port >= 4001 && port <= 4003)).toEqual(wanted);
    });

    test('marks bits and leaves the others', async () => {
      const [first] = await all();
      const one = Flows.of(first === undefined ? [] : [first]);
      expect(await conntrack.mark(one, 5, 7, options)).toEqual({ done: 1, gone: 0 });
      expect(await conntrack.mark(one, cut, cut, options)).toEqual({ done: 1, gone: 0 });
      const marked = await conntrack.list({ mark: { value: cut, mask: cut } }, options);
      expect([...marked].map(({ mark, source }) => ({ mark, source }))).toEqual([{ mark: cut + 5, source: first?.source }]);
      expect(await conntrack.mark(one, 0, cut, options)).toEqual({ done: 1, gone: 0 });
      expect((await conntrack.list({ mark: { value: cut, mask: cut } }, options)).size).toBe(0);
    });

    test('forgets flows, and says which were gone', async () => {
      const flows = await all();
      const first = flows.where(({ source }) => source.port === 4001);
      expect(await conntrack.remove(first, options)).toEqual({ done: 1, gone: 0 });
      expect(ports(await all())).toEqual([4002, 4003]);
      expect(await conntrack.remove(flows, options)).toEqual({ done: 2, gone: 1 });
      expect(await conntrack.mark(flows, 1, 1, options)).toEqual({ done: 0, gone: 3 });
      expect((await all()).size).toBe(0);
    });

    test('keeps a flow that has another id', async () => {
      const flows = [...(await all())].map((flow) => ({ ...flow, id: (flow.id + 1) % 2 ** 32 }));
      expect(await conntrack.remove(Flows.of(flows), options)).toEqual({ done: 0, gone: 3 });
      expect(await conntrack.mark(Flows.of(flows), cut, cut, options)).toEqual({ done: 0, gone: 3 });
      expect([...(await all())].map(({ mark }) => mark)).toEqual([0, 0, 0]);
    });

    test('challenges TCP alone', async () => {
      expect(await conntrack.challenge(await all(), 0x0f11_d001, options)).toEqual({ sent: 0, failed: 0 });
      const asTcp = [...(await all())].map((flow) => ({ ...flow, protocol: 6 }));
      expect(await conntrack.challenge(Flows.of(asTcp), 0x0f11_d001, options)).toEqual({ sent: 6, failed: 0 });
    });

    test('nothing of nothing', async () => {
      expect(await conntrack.remove(Flows.none, options)).toEqual({ done: 0, gone: 0 });
      expect(await conntrack.mark(Flows.none, 1, 1, options)).toEqual({ done: 0, gone: 0 });
      expect(await conntrack.challenge(Flows.none, 1, options)).toEqual({ sent: 0, failed: 0 });
    });

    test('aborted calls reject', async () => {
      const aborted = { signal: AbortSignal.abort() };
      const flows = await all();
      await expect(conntrack.list({}, aborted)).rejects.toThrow('aborted');
      await expect(conntrack.remove(flows, aborted)).rejects.toThrow('aborted');
      await expect(conntrack.mark(flows, 1, 1, aborted)).rejects.toThrow('aborted');
      await expect(conntrack.challenge(flows, 1, aborted)).rejects.toThrow('aborted');
      expect((await all()).size).toBe(3);
    });
  });
}

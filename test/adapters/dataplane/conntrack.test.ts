import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadAddon } from '../../../src/adapters/dataplane/addon.js';
import { NetlinkConntrack } from '../../../src/adapters/dataplane/netlink-conntrack.js';
import { type Flow, Flows } from '../../../src/domain/dataplane/flows.js';
import { type IpAddress, ipAddress } from '../../../src/domain/kernel/network.js';
import { conntrackContract } from '../../contract/conntrack.contract.js';
import { conntrackOf, trackedNamespace } from '../../support/conntrack-namespace.js';

const asRoot = process.getuid?.() === 0;
const options = { signal: new AbortController().signal };

describe.skipIf(!asRoot)('in a namespace', () => {
  conntrackContract('ctnetlink', async () => {
    const { child, end } = trackedNamespace(`holdfast-conntrack-${process.pid}`);
    return {
      conntrack: new NetlinkConntrack(conntrackOf(child)),
      talk: (from, to, address) =>
        child.run(
          ({ dgram }, port, target, host) =>
            new Promise<void>((resolve, reject) => {
              const socket = dgram.createSocket(host.includes(':') ? 'udp6' : 'udp4');
              socket.on('error', reject);
              socket.bind(port, host, () => socket.send('x', target, host, () => socket.close(() => resolve())));
            }),
          from,
          to,
          address as string,
        ),
      end,
    };
  });

  describe('of 10,000 flows', () => {
    const { child, end } = asRoot ? trackedNamespace(`holdfast-flows-${process.pid}`) : { child: undefined, end: async () => {} };
    beforeAll(async () => {
      await child?.run(
        ({ dgram }) =>
          new Promise<void>((resolve) => {
            const socket = dgram.createSocket('udp4');
            let left = 10_000;
            const next = () => {
              if (left-- === 0) socket.close(() => resolve());
              else socket.send('x', 1024 + (left % 50_000), '127.0.0.1', next);
            };
            socket.on('error', next);
            socket.bind(0, '127.0.0.1', next);
          }),
      );
    }, 60_000);
    afterAll(end);

    test('the main thread waits for none, and each is found, marked and forgotten', async () => {
      if (child === undefined) return;
      const { longest, found, marked, removed } = await child.run(async ({ addon }) => {
        let longest = 0;
        let last = performance.now();
        const beat = setInterval(() => {
          const now = performance.now();
          longest = Math.max(longest, now - last);
          last = now;
        }, 1);
        const rows = await addon.listFlows({ protocol: 17 }, new Uint8Array());
        const marked = await addon.markFlows(rows, 0x4000_0000, 0x4000_0000);
        const removed = await addon.removeFlows(rows);
        clearInterval(beat);
        return { longest, found: rows.length / 96, marked, removed };
      });
      expect(found).toBe(10_000);
      expect(marked).toEqual({ done: 10_000, gone: 0, failed: 0 });
      expect(removed).toEqual({ done: 10_000, gone: 0, failed: 0 });
      // Everything together takes 60 ms and more; what the main thread does of it is to copy the rows.
      expect(longest).toBeLessThan(50);
    });

    test('a challenge that has no way says so', async () => {
      if (child === undefined) return;
      const nowhere = { address: ipAddress('fd00:dead::1') as IpAddress, port: 1 };
      const ends = { source: nowhere, destination: nowhere, backend: nowhere, backendPeer: nowhere };
      const flow: Flow = { protocol: 6, tcpState: 3, zone: 0, id: 1, mark: 0, status: 0, timeoutSeconds: 1, ...ends };
      const tally = await new NetlinkConntrack(conntrackOf(child)).challenge(Flows.of([flow]), 0, options);
      expect(tally).toEqual({ sent: 0, failed: 2, problem: 'send a segment: Network is unreachable' });
    });
  });
});

test('wrong arguments throw', () => {
  const addon = loadAddon();
  const empty = new Uint8Array();
  expect(() => addon.removeFlows(new Uint8Array(95))).toThrow(new TypeError('rows must be rows of listFlows'));
  expect(() => addon.listFlows({}, new Uint8Array(1))).toThrow(
    new TypeError('selectors must be packed as native/core/conntrack_row.h says'),
  );
  expect(() => addon.markFlows(empty, -1, 0)).toThrow(new TypeError('mark must be an integer from 0 to 4294967295'));
  expect(() => Reflect.apply(addon.listFlows, addon, [7, empty])).toThrow(new TypeError('filter must be an object'));
});

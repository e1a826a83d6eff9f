import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NetlinkConntrack } from '../../../src/adapters/dataplane/netlink-conntrack.js';
import { type IpAddress, ipAddress } from '../../../src/domain/kernel/network.js';
import { conntrackOf } from '../../support/conntrack-namespace.js';
import { cutBit, cutRuleset, untrackedMark } from '../../support/cut-ruleset.js';
import { ipIn, NamespaceChild } from '../../support/namespace-child.js';

const options = { signal: new AbortController().signal };
const names = { client: `hf-cut-c-${process.pid}`, node: `hf-cut-n-${process.pid}`, server: `hf-cut-s-${process.pid}` };
const vip4 = ipAddress('10.192.0.9') as IpAddress;
const vip6 = ipAddress('fd96::9') as IpAddress;

/** A wire between the node and another namespace; the node is the other's router. */
function wire(to: string, device: string, net: number): void {
  ipIn(names.node, 'link', 'add', device, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', to);
  for (const [namespace, link, last] of [
    [names.node, device, 1],
    [to, 'eth0', 2],
  ] as const) {
    ipIn(namespace, 'addr', 'add', `10.77.${net}.${last}/24`, 'dev', link);
    ipIn(namespace, 'addr', 'add', `fd77:${net}::${last}/64`, 'dev', link, 'nodad');
    ipIn(namespace, 'link', 'set', link, 'up');
  }
  ipIn(to, 'route', 'add', 'default', 'via', `10.77.${net}.1`);
  ipIn(to, '-6', 'route', 'add', 'default', 'via', `fd77:${net}::1`);
}

/** Keeps connections open there, and says when and how each ended. */
async function connect(child: NamespaceChild, host: string, count: number): Promise<void> {
  await child.run(
    async ({ net, state }, address, wanted) => {
      state.ended = [];
      state.sockets = [];
      for (let index = 0; index < wanted; index++) {
        const socket = net.connect(80, address);
        state.sockets.push(socket);
        socket.on('error', (error: NodeJS.ErrnoException) => state.ended.push({ at: Date.now(), code: error.code }));
        socket.on('end', () => state.ended.push({ at: Date.now(), code: 'end' }));
        await new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject));
      }
    },
    host,
    count,
  );
}

const endings = (child: NamespaceChild) =>
  child.run(({ state }) => state.ended as readonly { readonly at: number; readonly code: string }[]);

describe.skipIf(process.getuid?.() !== 0)('an idle flow that is cut', () => {
  const children: NamespaceChild[] = [];
  const start = (name: string) => {
    const child = new NamespaceChild(name);
    children.push(child);
    return child;
  };
  let client: NamespaceChild;
  let server: NamespaceChild;
  let conntrack: NetlinkConntrack;

  beforeAll(async () => {
    for (const name of Object.values(names)) {
      execFileSync('ip', ['netns', 'add', name]);
      ipIn(name, 'link', 'set', 'lo', 'up');
    }
    wire(names.client, 'c', 1);
    wire(names.server, 's', 2);
    const sysctl = 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding';
    execFileSync('ip', ['netns', 'exec', names.node, 'sh', '-c', sysctl]);
    client = start(names.client);
    server = start(names.server);
    const node = start(names.node);
    conntrack = new NetlinkConntrack(conntrackOf(node));
    const backends = [
      { vip: [10, 192, 0, 9], port: 80, backend: [10, 77, 2, 2], backendPort: 8080 },
      {
        vip: [0xfd, 0x96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9],
        port: 80,
        backend: [0xfd, 0x77, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
        backendPort: 8080,
      },
    ];
    await node.run(({ addon }, plan) => new addon.NftSocket().apply(plan), cutRuleset(backends));
    await server.run(
      ({ net, state }) =>
        new Promise<void>((resolve) => {
          state.ended = [];
          const listener = net.createServer((socket) => {
            socket.write('hello');
            socket.on('error', (error: NodeJS.ErrnoException) => state.ended.push({ at: Date.now(), code: error.code }));
            socket.on('end', () => state.ended.push({ at: Date.now(), code: 'end' }));
          });
          listener.listen(8080, '::', resolve);
        }),
    );
  });

  afterAll(async () => {
    for (const child of children) await child.stop();
    for (const name of Object.values(names)) execFileSync('ip', ['netns', 'del', name]);
  });

  test.each([
    ['IPv4', vip4],
    ['IPv6', vip6],
  ])('ends at both ends within a second, and no other does: %s', async (_name, vip) => {
    await server.run(({ state }) => {
      state.ended = [];
    });
    await connect(client, vip, 40);
    const flows = await conntrack.list({ protocol: 6, anyOf: [{ part: 'destination', address: vip, port: 80 }] }, options);
    expect(flows.size).toBe(40);
    // One is left: it must go on.
    const spared = flows.at(0).source.port;
    const cut = flows.where(({ source }) => source.port !== spared);
    expect(await conntrack.mark(cut, cutBit, cutBit, options)).toEqual({ done: 39, gone: 0 });
    const from = Date.now();
    expect(await conntrack.challenge(cut, untrackedMark, options)).toEqual({ sent: 78, failed: 0 });
    // The first connection to a neighbour that is not known yet repeats its SYN, and has answered the double answer: it says nothing for 500 ms.
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(await conntrack.challenge(cut, untrackedMark, options)).toEqual({ sent: 78, failed: 0 });
    for (const child of [client, server]) {
      await expect.poll(() => endings(child), { timeout: 1_000, interval: 10 }).toHaveLength(39);
      const ended = await endings(child);
      expect(new Set(ended.map(({ code }) => code))).toEqual(new Set(['ECONNRESET']));
      expect(Math.max(...ended.map(({ at }) => at)) - from).toBeLessThan(1_000);
    }
    const left = await conntrack.list({ anyOf: [{ part: 'destination', address: vip }] }, options);
    // Closed (8), until they are forgotten; the one that was spared is established (3).
    expect([...left].map(({ tcpState }) => tcpState).sort()).toEqual([3, ...Array<number>(39).fill(8)]);
    expect(await conntrack.remove(cut, options)).toEqual({ done: 39, gone: 0 });
    expect(await endings(client)).toHaveLength(39);
    expect(
      await client.run(
        ({ state }, port) => state.sockets.find((one: { localPort?: number }) => one.localPort === port)?.destroyed,
        spared,
      ),
    ).toBe(false);
    await client.run(({ state }) => {
      for (const socket of state.sockets) socket.destroy();
    });
  });

  test('segments of a flow that nobody cut change nothing', async () => {
    await connect(client, vip4, 1);
    const flows = await conntrack.list({ protocol: 6, anyOf: [{ part: 'destination', address: vip4 }] }, options);
    const open = flows.where(({ tcpState }) => tcpState === 3);
    expect((await conntrack.challenge(open, untrackedMark, options)).failed).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await endings(client)).toEqual([]);
    expect(
      [...(await conntrack.list({ protocol: 6, anyOf: [{ part: 'destination', address: vip4 }] }, options))].filter(
        ({ tcpState }) => tcpState === 3,
      ),
    ).not.toEqual([]);
  });
});

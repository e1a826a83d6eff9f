import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SystemClock } from '../../src/adapters/clock/system-clock.js';
import { OverlayKeeper } from '../../src/app/overlay/overlay-keeper.js';
import { overlayStatus } from '../../src/app/overlay/overlay-status.js';
import { type DeclaredPeer, wantedSet } from '../../src/domain/overlay/schema.js';
import { FakeLogger } from '../fakes/fake-logger.js';
import { eventually } from '../support/eventually.js';
import { connect, OverlaySpace } from '../support/overlay-space.js';

const options = { signal: new AbortController().signal };

/** A wall clock that can be stepped, and a monotonic one on which time may pass. */
class SteppedClock extends SystemClock {
  step = 0;
  passed = 0;

  override monotonic(): number {
    return super.monotonic() + this.passed;
  }

  override now(): number {
    return super.now() + this.step;
  }
}

interface Place {
  readonly device: string;
  readonly underlay: string;
  readonly address: string;
}

/** A node that is its overlay. */
class Node {
  readonly space: OverlaySpace;
  readonly place: Place;
  readonly clock = new SteppedClock();
  readonly keeper: OverlayKeeper;
  key = '';

  constructor(space: OverlaySpace, place: Place) {
    this.space = space;
    this.place = place;
    this.keeper = new OverlayKeeper({ device: space.device, clock: this.clock, logger: new FakeLogger() });
  }

  /** As the control plane says it of this node. */
  get declared(): DeclaredPeer {
    return { pubKey: this.key, endpointIp: this.place.underlay, vpnIp: this.place.address };
  }

  apply(...peers: readonly DeclaredPeer[]) {
    const wanted = wantedSet(peers, `${this.place.address}/24`);
    return this.keeper.inTurn((turn) => turn.apply(wanted), options);
  }

  async endpointOf(other: Node): Promise<string | undefined> {
    const lines = (await this.space.sh('wg show wg0 endpoints')).split('\n');
    return lines.find((line) => line.startsWith(other.key))?.split('\t')[1];
  }

  /** Their keys, in no order of its own. */
  async peers(): Promise<readonly string[]> {
    return (await this.space.sh('wg show wg0 peers')).trim().split('\n').toSorted();
  }

  reaches(address: string): Promise<boolean> {
    return this.space.sh(`ping -n -c 1 -W 1 ${address}`).then(
      () => true,
      () => false,
    );
  }
}

/** `a` and `b` on networks of a router each, `c` behind its NAT. All of it is in namespaces. */
class Overlay {
  readonly stack = new AsyncDisposableStack();
  readonly router: OverlaySpace;
  readonly a: Node;
  readonly b: Node;
  readonly c: Node;

  private constructor(router: OverlaySpace, [a, b, c]: readonly [Node, Node, Node]) {
    this.router = router;
    this.a = a;
    this.b = b;
    this.c = c;
  }

  static async make(): Promise<Overlay> {
    await using stack = new AsyncDisposableStack();
    const router = stack.use(await OverlaySpace.make());
    await router.sh('sysctl -qw net.ipv4.ip_forward=1');
    const node = async (number: number, name: string) => {
      const space = stack.use(await OverlaySpace.make());
      const underlay = `10.90.${number}.2`;
      const there = { space: router, device: `to-${name}`, address: `10.90.${number}.1/24` };
      await connect({ space, device: 'eth0', address: `${underlay}/24` }, there);
      await space.sh(`ip route add default via 10.90.${number}.1`);
      return new Node(space, { device: there.device, underlay, address: `10.78.0.${number}` });
    };
    const nodes = [await node(1, 'a'), await node(2, 'b'), await node(3, 'c')] as const;
    await router.sh(
      `nft 'add table ip nat; add chain ip nat out { type nat hook postrouting priority srcnat; };
      add rule ip nat out ip saddr 10.90.3.0/24 masquerade'`,
    );
    const overlay = new Overlay(router, nodes);
    for (const one of nodes) one.key = (await one.space.device.observe(options)).publicKey;
    overlay.stack.use(stack.move());
    return overlay;
  }

  /** Each has the two others. */
  async mesh(): Promise<void> {
    const { a, b, c } = this;
    const hidden = { ...c.declared, endpointIp: '' };
    for (const [node, ...others] of [
      [a, b.declared, hidden],
      [b, a.declared, hidden],
      [c, a.declared, b.declared],
    ] as const) {
      expect((await node.apply(...others)).failed).toEqual([]);
    }
    const ways = [
      [a, b],
      [b, c],
      [c, a],
    ] as const;
    const reached = () => Promise.all(ways.map(([from, to]) => from.reaches(to.place.address)));
    // One that was taken out and put in again is called anew when its peer has missed it for 15 s.
    await expect.poll(reached, { timeout: 40_000 }).toEqual([true, true, true]);
  }
}

let overlay: Overlay;

beforeAll(async () => {
  overlay = await Overlay.make();
}, 60_000);
afterAll(() => overlay.stack.disposeAsync());

describe('three nodes, one of them behind NAT', () => {
  test('reach each other; status has the handshakes, endpoints and bytes', async () => {
    await overlay.mesh();
    const { a, b, c } = overlay;
    await a.keeper.inTurn((turn) => turn.observe(), options);
    const status = overlayStatus(a.keeper.reading(), a.clock.monotonic());
    expect(status).toMatchObject({ link: 'wireguard-go', address: '10.78.0.1/24', mtu: 1_420, publicKey: a.key });
    const shown = status?.peers.map(({ address, state, endpoint }) => `${address} ${state} ${endpoint}`).toSorted();
    expect(shown).toEqual([
      `${b.place.address} up ${b.place.underlay}:51820`,
      expect.stringMatching(new RegExp(`^${c.place.address} up 10\\.90\\.1\\.1:\\d+$`)),
    ]);
    expect(status?.peers.every(({ handshakeAgeMs = -1, receivedBytes }) => handshakeAgeMs >= 0 && receivedBytes > 0)).toBe(true);
  });

  test('a peer that is not in the set any more is gone', async () => {
    const { a, b, c } = overlay;
    const hidden = { ...c.declared, endpointIp: '' };
    await a.apply(b.declared, hidden);
    expect(await a.peers()).toEqual([b.key, c.key].toSorted());
    await a.apply(b.declared);
    expect(await a.peers()).toEqual([b.key]);
    expect(await a.reaches(c.place.address)).toBe(false);
  });

  test('52: ranges that overlap are refused with both names, and nobody loses what it has', async () => {
    const { a, b, c } = overlay;
    await a.apply({ ...b.declared, extraAllowedIps: ['10.9.0.0/24'] });
    const hidden = { ...c.declared, endpointIp: '', extraAllowedIps: ['10.9.0.0/25'] };
    const { failed } = await a.apply({ ...b.declared, extraAllowedIps: ['10.9.0.0/24'] }, hidden);
    expect(failed).toEqual([
      { publicKey: b.key, reason: `10.9.0.0/24 overlaps 10.9.0.0/25 of peer ${c.key}` },
      { publicKey: c.key, reason: `10.9.0.0/25 overlaps 10.9.0.0/24 of peer ${b.key}` },
    ]);
    expect((await a.space.sh('wg show wg0 allowed-ips')).trim()).toBe(`${b.key}\t10.78.0.2/32 10.9.0.0/24`);
    await overlay.mesh();
  });

  test('54: a live peer that has roamed keeps its endpoint through 100 syncs', async () => {
    const { a, b, c } = overlay;
    const hidden = { ...c.declared, endpointIp: '' };
    const behindNat = await a.endpointOf(c);
    // It calls from another address than the declared one.
    const move = (to: string) =>
      b.space.sh(`ip addr flush dev eth0 && ip addr add ${to}/24 dev eth0 && ip route add default via 10.90.2.1`);
    await move('10.90.2.77');
    // Its link to the control plane is made anew, with which it syncs.
    await b.apply(a.declared, hidden);
    await eventually(() => a.endpointOf(b)).toBe('10.90.2.77:51820');
    for (let times = 0; times < 100; times++) await a.apply(b.declared, hidden);
    expect(await a.endpointOf(b)).toBe('10.90.2.77:51820');
    expect(await a.endpointOf(c)).toBe(behindNat);
    await move('10.90.2.2');
    await b.apply(a.declared, hidden);
    await eventually(() => a.endpointOf(b)).toBe('10.90.2.2:51820');
  });

  test('53: an endpoint that is declared anew loses at most one packet of a network behind the peer', async () => {
    const { a, b } = overlay;
    await b.space.sh('ip addr add 10.9.0.1/24 dev lo && ip addr add 10.90.2.88/24 dev eth0');
    const routed = { ...b.declared, extraAllowedIps: ['10.9.0.0/24'] };
    await a.apply(routed);
    expect((await a.space.sh('ip route show dev wg0 proto 201')).trim()).toMatch(/^10\.9\.0\.0\/24\b/);
    await eventually(() => a.reaches('10.9.0.1')).toBe(true);
    const ping = a.space.spawn(['ping', '-n', '-q', '-i', '0.05', '-c', '100', '-W', '1', '10.9.0.1']);
    let said = '';
    ping.stdout?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    const ended = once(ping, 'exit');
    await sleep(1_500);
    await a.apply({ ...routed, endpointIp: '10.90.2.88' });
    await sleep(1_500);
    await a.apply(routed);
    await ended;
    const received = Number(/(\d+) received/.exec(said)?.[1]);
    expect(received).toBeGreaterThanOrEqual(99);
    await a.apply(b.declared);
    expect((await a.space.sh('ip route show dev wg0 proto 201')).trim()).toBe('');
  });

  test('a wall clock that is stepped by an hour clears nothing', async () => {
    const { a, b, c } = overlay;
    await overlay.mesh();
    const hidden = { ...c.declared, endpointIp: '' };
    const before = [await a.endpointOf(b), await a.endpointOf(c)];
    for (const step of [3_600_000, -3_600_000, 3_600_000]) {
      a.clock.step += step;
      for (let times = 0; times < 3; times++) await a.apply({ ...b.declared, endpointIp: '' }, hidden);
    }
    expect([await a.endpointOf(b), await a.endpointOf(c)]).toEqual(before);
    a.clock.step = 0;
    await overlay.mesh();
  });

  test('a state that cannot be read removes nothing', async () => {
    const { a, b } = overlay;
    const peers = await a.peers();
    await a.space.sh('mount --bind /bin/false /usr/bin/wg');
    await expect(a.apply(b.declared)).rejects.toMatchObject({ code: 'overlay.unreadable' });
    await a.space.sh('umount /usr/bin/wg');
    expect(await a.peers()).toEqual(peers);
  });

  test('a tunnel outlives the process that made it, and the next one takes it over', async () => {
    const { a, b, c } = overlay;
    const pid = await a.space.sh('pidof wireguard-go');
    const next = new Node(a.space, a.place);
    expect(await a.reaches(b.place.address)).toBe(true);
    expect((await next.apply(b.declared, { ...c.declared, endpointIp: '' })).failed).toEqual([]);
    expect(await a.space.sh('pidof wireguard-go')).toBe(pid);
    expect(await a.reaches(b.place.address)).toBe(true);
  });

  test('56: where large packets vanish, smaller ones are sent, and 10 MB arrive', async () => {
    const { a, b } = overlay;
    // A packet that is too large for the way to b is dropped, and nobody is told.
    await overlay.router.sh(`ip link set ${b.place.device} mtu 1280`);
    await overlay.router.sh(
      `nft 'add table ip silent; add chain ip silent out { type filter hook output priority 0; };
      add rule ip silent out icmp type destination-unreachable drop'`,
    );
    const arrived = () => receive(a, b, 10_000_000);
    expect(await arrived()).toBeLessThan(10_000_000);
    for (const node of [a, b]) node.clock.passed = 60_000;
    await a.apply(b.declared);
    await b.apply(a.declared);
    expect(await a.space.sh('ip link show wg0')).toContain(' mtu 1220 ');
    expect(await arrived()).toBe(10_000_000);
  });
});

/** Bytes of so many that arrive from one at the other over TCP within 10 s. */
async function receive(from: Node, to: Node, bytes: number): Promise<number> {
  const script = {
    sink: `let n=0;const s=require('net').createServer(c=>{c.on('data',d=>n+=d.length);c.on('close',()=>{console.log(n);process.exit()})});
      s.listen(7777,'${to.place.address}',()=>console.log('listening'));setTimeout(()=>{console.log(n);process.exit()},10000)`,
    source: `const c=require('net').connect(7777,'${to.place.address}',()=>c.end(Buffer.alloc(${bytes})));c.on('error',()=>{});setTimeout(()=>process.exit(),10000)`,
  };
  const sink = to.space.spawn([process.execPath, '-e', script.sink]);
  let said = '';
  sink.stdout?.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const ended = once(sink, 'exit');
  await eventually(() => said).toContain('listening');
  const source = from.space.spawn([process.execPath, '-e', script.source]);
  await ended;
  source.kill();
  return Number(said.trim().split('\n').at(-1));
}

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Backend } from './support/backends.js';
import { type Daemon, withDaemon } from './support/daemon.js';
import { load } from './support/load.js';
import { serviceManifest } from './support/manifests.js';

const BLOCK_MS = 5_000;
const env = {
  NODE_OPTIONS: `--import=${new URL('support/block-main-thread.mjs', import.meta.url).href}`,
  BLOCK_MS: String(BLOCK_MS),
};

/** Bytes that arrive in `ms`. */
async function received(socket: Socket, ms: number): Promise<number> {
  const before = socket.bytesRead;
  await sleep(ms);
  return socket.bytesRead - before;
}

async function whileBlocked(signal: NodeJS.Signals) {
  return withDaemon(
    async (daemon: Daemon) => {
      const [stream, greet] = [await Backend.start('stream'), await Backend.start('greet')];
      try {
        await daemon.apply(serviceManifest({ name: 'stream', endpoints: [{ port: stream.port }] }));
        await daemon.apply(serviceManifest({ name: 'greet', endpoints: [{ port: greet.port }] }));
        const addresses = await daemon.json<{ items: { metadata: { name: string }; status: { vip: string } }[] }>(
          'get',
          'services',
        );
        const vipOf = (name: string) => addresses.items.find(({ metadata }) => metadata.name === name)?.status.vip ?? '';
        const socket = connect(18_080, vipOf('stream')).resume();
        await received(socket, 500);
        const free = await received(socket, 2_000);
        daemon.signal(signal);
        await sleep(500);
        const blocked = await received(socket, 2_000);
        const until = performance.now() + 2_000;
        const connections = await load(vipOf('greet'), 18_080, 4, () => performance.now() < until);
        socket.destroy();
        const stillBlocked = await Promise.race([daemon.cli(['status']).then(() => false), sleep(100).then(() => true)]);
        await sleep(1_000);
        const { code } = await daemon.cli(['status']);
        return { rate: blocked / free, connections, stillBlocked, code };
      } finally {
        await Promise.all([stream.kill(), greet.kill()]);
      }
    },
    { env },
  );
}

/** Waits of a byte's way there and back, one after the other for `ms`, sorted, milliseconds. */
async function roundTrips(socket: Socket, ms: number): Promise<readonly number[]> {
  const waits: number[] = [];
  const until = performance.now() + ms;
  while (performance.now() < until) {
    const sent = performance.now();
    socket.write('x');
    await once(socket, 'data');
    waits.push(performance.now() - sent);
  }
  return waits.sort((a, b) => a - b);
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
}

/** A round free, a round with the main thread away for 200 ms at a time, in turns. */
async function p99OfRounds(rounds: number) {
  return withDaemon(
    async (daemon: Daemon) => {
      const echo = await Backend.start('echo');
      try {
        await daemon.apply(serviceManifest({ name: 'echo', endpoints: [{ port: echo.port }] }));
        const services = await daemon.json<{ items: { status: { vip: string } }[] }>('get', 'services');
        const socket = connect({ port: 18_080, host: services.items[0]?.status.vip ?? '', noDelay: true });
        await once(socket, 'connect');
        await roundTrips(socket, 500);
        const found: { readonly free: number; readonly blocked: number }[] = [];
        for (let round = 0; round < rounds; round++) {
          const free = percentile(await roundTrips(socket, 1_000), 0.99);
          const blocking = setInterval(() => daemon.signal('SIGUSR2'), 205);
          const blocked = percentile(await roundTrips(socket, 1_000), 0.99);
          clearInterval(blocking);
          await sleep(250);
          found.push({ free, blocked });
        }
        socket.destroy();
        return found;
      } finally {
        await echo.kill();
      }
    },
    { env: { ...env, BLOCK_MS: '200' } },
  );
}

describe('a main thread that does not run', () => {
  test('Atomics.wait for 5 s: bytes flow at the same rate, connections are accepted', async () => {
    const { rate, connections, stillBlocked, code } = await whileBlocked('SIGUSR2');
    expect(stillBlocked).toBe(true);
    expect(rate).toBeGreaterThan(0.7);
    expect(connections.errors).toEqual(new Map());
    expect(connections.done).toBeGreaterThan(100);
    expect(code).toBe(0);
  });

  test('a busy loop for 5 s: no connection fails', async () => {
    const { connections, code } = await whileBlocked('SIGURG');
    expect(connections.errors).toEqual(new Map());
    expect(connections.done).toBeGreaterThan(20);
    expect(code).toBe(0);
  });

  test('Atomics.wait for 200 ms at a time: the p99 of round trips stays', async () => {
    const rounds = await p99OfRounds(7);
    // The quietest round counts: other programs only ever add. Were a byte to wait for JavaScript, it would be 100 times as much.
    const least = (read: (round: (typeof rounds)[number]) => number) => Math.min(...rounds.map(read));
    expect(least(({ blocked }) => blocked)).toBeLessThan(5 * least(({ free }) => free));
  });
});

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
});

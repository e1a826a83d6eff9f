import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { Backend } from './support/backends.js';
import { type Daemon, withDaemon } from './support/daemon.js';
import { load, times } from './support/load.js';
import { serviceManifest } from './support/manifests.js';

const PORT = 18_080;
const running: Backend[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((backend) => backend.kill()));
});

async function backends(count: number): Promise<readonly Backend[]> {
  const started = await Promise.all(Array.from({ length: count }, () => Backend.start()));
  running.push(...started);
  return started;
}

async function addressOf(daemon: Daemon, name: string): Promise<string> {
  const service = await daemon.json<{ status: { vip: string } }>('get', 'service', name);
  return service.status.vip;
}

describe('endpoints that go away', () => {
  test('one of three endpoints is closed: 10,000 connections, none fails', async () => {
    await withDaemon(async (daemon) => {
      const [a, b, c] = await backends(3);
      const endpoints = [a, b, c].map((backend) => ({ port: backend?.port ?? 0 }));
      await daemon.apply(serviceManifest({ name: 'hello', endpoints }));
      await b?.kill();
      const result = await load(await addressOf(daemon, 'hello'), PORT, 16, times(10_000));
      expect({ done: result.done, errors: result.errors }).toEqual({ done: 10_000, errors: new Map() });
      expect([...result.answers.keys()].sort()).toEqual([String(a?.port), String(c?.port)].sort());
    });
  });

  test('four endpoints replaced one by one under load: no connection fails, the last ones serve', async () => {
    await withDaemon(async (daemon) => {
      const current = [...(await backends(4))];
      const apply = () =>
        daemon.apply(serviceManifest({ name: 'hello', drain: '5s', endpoints: current.map(({ port }) => ({ port })) }));
      await apply();
      let rolling = true;
      const underLoad = load(await addressOf(daemon, 'hello'), PORT, 16, () => rolling);
      for (const index of current.keys()) {
        const former = current[index];
        const [replacement] = await backends(1);
        if (replacement !== undefined) current[index] = replacement;
        await apply();
        await former?.retire();
        await sleep(200);
        await former?.kill();
      }
      await sleep(500);
      rolling = false;
      const result = await underLoad;
      expect(result.errors).toEqual(new Map());
      expect(result.done).toBeGreaterThan(500);
      const afterwards = await load(await addressOf(daemon, 'hello'), PORT, 4, times(200));
      expect([...afterwards.answers.keys()].sort()).toEqual(current.map(({ port }) => String(port)).sort());
    });
  });
});

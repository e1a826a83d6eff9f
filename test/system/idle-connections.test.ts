import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type Daemon, withDaemon } from './support/daemon.js';
import { EchoProcess, HoldingClient } from './support/idle-connections.js';
import { serviceManifest } from './support/manifests.js';
import { openDescriptors, residentBytes } from './support/process-facts.js';

/** Two descriptors each and the daemon's own, below a hard limit of 20,000. */
const CONNECTIONS = 9_000;
const MOST_BYTES = 512;
const SAMPLE = 200;
const HOLD_MS = 5_000;
const PORT = 18_080;
/** Enough to run every path once: pages of code and of first use are no connection's. */
const WARM_UP = 64;

/** The least of two seconds: a garbage collection of the main thread comes and goes, what connections hold stays. */
async function settledMemory({ pid }: Daemon): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let sample = 0; sample < 10; sample++) {
    least = Math.min(least, await residentBytes(pid));
    await sleep(200);
  }
  return least;
}

async function idleFacts(daemon: Daemon) {
  return { memory: await settledMemory(daemon), descriptors: await openDescriptors(daemon.pid) };
}

test(`${CONNECTIONS} idle connections: all stay, at most ${MOST_BYTES} bytes and two descriptors each`, async () => {
  await using backend = await EchoProcess.start();
  await withDaemon(async (daemon) => {
    await daemon.apply(serviceManifest({ name: 'idle', port: PORT, endpoints: [{ port: backend.port }] }));
    const { status } = await daemon.json<{ status: { vip: string } }>('get', 'service', 'idle');
    await using client = new HoldingClient(status.vip, PORT);
    expect(await client.open(WARM_UP)).toBe(WARM_UP);
    await client.close();
    await sleep(1_000);
    const before = await idleFacts(daemon);

    expect(await client.open(CONNECTIONS)).toBe(CONNECTIONS);
    await sleep(HOLD_MS);
    const held = await idleFacts(daemon);

    const bytes = (held.memory - before.memory) / CONNECTIONS;
    console.log({ bytesPerConnection: Math.round(bytes), descriptors: held.descriptors - before.descriptors });
    expect(bytes).toBeLessThanOrEqual(MOST_BYTES);
    expect(held.descriptors - before.descriptors).toBe(2 * CONNECTIONS);
    expect(await client.lost()).toBe(0);
    expect(await client.echo(SAMPLE)).toBe(SAMPLE);
  });
});

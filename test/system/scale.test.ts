import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Backend } from './support/backends.js';
import { type Daemon, withDaemon } from './support/daemon.js';
import { ask } from './support/load.js';
import { documents, serviceManifest } from './support/manifests.js';

const MANY = 10_000;
const FEW = 10;
const SAMPLES = 15;
const MAX_RATIO = 1.5;
const MAX_RESIDENT_MIB = 300;

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

async function applyMany(daemon: Daemon, count: number, backend: Backend): Promise<void> {
  const texts = Array.from({ length: count }, (_, index) =>
    serviceManifest({ name: `s-${index}`, endpoints: [{ port: backend.port }] }),
  );
  await daemon.apply(documents(texts));
}

/** Milliseconds from the start of `holdfast apply` to the first byte through the new service. */
async function costOfOneMore(daemon: Daemon, index: number, backend: Backend): Promise<number> {
  const startedAt = performance.now();
  const { code, stdout } = await daemon.cli(
    ['apply', '-f', '-', '-o', 'json'],
    serviceManifest({ name: `more-${index}`, endpoints: [{ port: backend.port }] }),
  );
  expect(code).toBe(0);
  const address: string = JSON.parse(stdout).resources[0].addresses[0];
  const [host = '', port = ''] = address.split(':');
  while ((await ask(host, Number(port)).catch(() => '')) === '') await sleep(1);
  return performance.now() - startedAt;
}

async function lastAnswers(daemon: Daemon, count: number): Promise<boolean> {
  const last = await daemon.json<{ status: { vip: string } }>('get', 'service', `s-${count - 1}`);
  return (await ask(last.status.vip, 18_080)) !== '';
}

async function descriptors(daemon: Daemon): Promise<{ readonly listeners: number; readonly others: number }> {
  const { dataPlane } = await daemon.json<{ dataPlane: { listeners: number } }>('status');
  const all = (await readdir(`/proc/${daemon.pid}/fd`)).length;
  return { listeners: dataPlane.listeners, others: all - dataPlane.listeners };
}

test(`one more service costs with ${MANY} what it costs with ${FEW}; memory and descriptors stay in their budgets`, async () => {
  const backend = await Backend.start();
  try {
    await withDaemon((few) =>
      withDaemon(async (many) => {
        await applyMany(few, FEW, backend);
        await applyMany(many, MANY, backend);
        const ratios: number[] = [];
        // In turn, so that both see the same machine.
        for (let index = 0; index < SAMPLES; index++) {
          const small = await costOfOneMore(few, index, backend);
          ratios.push((await costOfOneMore(many, index, backend)) / small);
        }
        const resident = await residentMiB(many.pid);
        console.log({ ratio: median(ratios), residentMiB: resident });
        expect(median(ratios)).toBeLessThan(MAX_RATIO);
        expect(resident).toBeLessThan(MAX_RESIDENT_MIB);
        expect(await lastAnswers(many, MANY)).toBe(true);
        const [small, large] = [await descriptors(few), await descriptors(many)];
        expect(large.listeners).toBe(MANY + SAMPLES);
        // One socket a listener, whatever the number of threads.
        expect(large.others).toBeLessThan(small.others + 10);
      }),
    );
  } finally {
    await backend.kill();
  }
});

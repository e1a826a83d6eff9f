import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Admin } from './support/admin.js';
import { Churn, type ChurnSize } from './support/churn.js';
import { type Daemon, withDaemon } from './support/daemon.js';
import { openDescriptors, residentBytes } from './support/process-facts.js';

interface Size extends ChurnSize {
  readonly seconds: number;
  /** Between a quarter of the time and the end. The log's and the outbox's rings fill in that time, V8 keeps what it once had. */
  readonly mostGrowthMiB: number;
}

const ci: Size = {
  seconds: 30,
  mostGrowthMiB: 48,
  services: 200,
  processes: 4,
  endpointsPerProcess: 16,
  changesPerSecond: 10,
  connectionsPerSecond: 300,
  deathsPerSecond: 2,
  killsPerSecond: 0.2,
};
const full: Size = {
  ...ci,
  seconds: 600,
  mostGrowthMiB: 64,
  services: 1_000,
  processes: 8,
  endpointsPerProcess: 50,
  changesPerSecond: 20,
  connectionsPerSecond: 2_000,
  deathsPerSecond: 5,
};
const size = process.env.HOLDFAST_TEST_SIZE === 'full' ? full : ci;
const seed = Number(process.env.HOLDFAST_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** Drains have two seconds. */
const SETTLED_MS = 15_000;
/** Files that are open for a moment: a copy of the log, a pipe. */
const SPARE_DESCRIPTORS = 8;
/** A death cuts what its endpoint carries: a few connections of milliseconds each, never one in two hundred of all. */
const MOST_CUT = 0.005;

/** mulberry32: a run that failed is run again with its seed. */
function randomFrom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function factsOf({ pid }: Daemon, admin: Admin) {
  const { dataPlane } = await admin.status();
  const listeners = dataPlane?.listeners ?? 0;
  return {
    listeners,
    failed: dataPlane?.failedListeners ?? 0,
    active: Number(dataPlane?.activeConnections ?? 0n),
    others: (await openDescriptors(pid)) - listeners,
    resident: await residentBytes(pid),
  };
}

/** What the daemon holds once drains are over. */
async function settledFacts(daemon: Daemon, admin: Admin, others: number) {
  const until = performance.now() + SETTLED_MS;
  let facts = await factsOf(daemon, admin);
  while (performance.now() < until && (facts.active > 0 || facts.others > others + SPARE_DESCRIPTORS)) {
    await sleep(200);
    facts = await factsOf(daemon, admin);
  }
  return facts;
}

/** Preparing, and waiting for drains, take a few minutes at the full size. */
const TIMEOUT_MS = size.seconds * 1_000 + 600_000;

test(
  `${size.seconds} s of churn: no connection fails that had a live endpoint, and nothing is left behind`,
  async () => {
    await withDaemon(
      async (daemon) => {
        using admin = new Admin(daemon.dataDir);
        const churn = new Churn(size, admin, randomFrom(seed));
        try {
          await churn.prepare();
          const before = await factsOf(daemon, admin);
          expect(before.listeners).toBe(size.services);

          await churn.run(AbortSignal.timeout(size.seconds * 250));
          const warm = await settledFacts(daemon, admin, before.others);
          await churn.run(AbortSignal.timeout(size.seconds * 750));
          const after = await settledFacts(daemon, admin, before.others);

          const growthMiB = (after.resident - warm.resident) / 2 ** 20;
          console.log({ seed, ...churn.counts, growthMiB, descriptors: [before.others, after.others] });
          const { connections, failures, lost } = churn.counts;
          expect(lost).toEqual([]);
          expect(failures.cut).toBeLessThanOrEqual(connections * MOST_CUT);
          expect({ active: after.active, failed: after.failed }).toEqual({ active: 0, failed: 0 });
          expect(after.listeners).toBe(churn.services);
          expect(after.others).toBeLessThanOrEqual(before.others + SPARE_DESCRIPTORS);
          expect(growthMiB).toBeLessThan(size.mostGrowthMiB);
          expect(await churn.unanswered()).toEqual([]);
        } finally {
          await churn.stop();
        }
      },
      // Settings of this test are none of the daemon's.
      { env: { HOLDFAST_TEST_SIZE: undefined, HOLDFAST_TEST_SEED: undefined } },
    );
  },
  TIMEOUT_MS,
);

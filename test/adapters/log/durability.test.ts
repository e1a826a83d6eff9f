import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { sourceArguments } from '../../../src/adapters/threads/typescript-worker.js';
import { entriesFrom, inFolder, options, start, withLog } from './support/test-log.js';

const program = fileURLToPath(new URL('./support/propose-loop.ts', import.meta.url));
const RUNS = 20;

interface Acknowledged {
  readonly revision: bigint;
  readonly key: string;
  readonly length: number;
}

/** Runs the program, kills it `delay` ms after its first acknowledgement, and gives what it had acknowledged. */
async function runAndKill(file: string, run: number, delay: number): Promise<readonly Acknowledged[]> {
  const child: ChildProcess = spawn(process.execPath, [...sourceArguments, program, file, String(run)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const found: Acknowledged[] = [];
  if (child.stdout === null) throw new Error('no output');
  for await (const line of createInterface(child.stdout)) {
    const [number = '', key, length] = line.split(' ');
    if (key === undefined) continue;
    if (found.length === 0) setTimeout(() => child.kill('SIGKILL'), delay);
    // The last line may be cut by the kill: it is then no acknowledgement.
    if (length !== undefined) found.push({ revision: BigInt(number), key, length: Number(length) });
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  expect(child.signalCode).toBe('SIGKILL');
  return found;
}

test(
  `kill -9, ${RUNS} times: everything acknowledged is there, no revision is used twice, every open succeeds`,
  { timeout: 120_000 },
  () =>
    inFolder(async (folder) => {
      const file = join(folder, 'log.db');
      const acknowledged: Acknowledged[] = [];
      for (let run = 0; run < RUNS; run += 1) acknowledged.push(...(await runAndKill(file, run, 5 + ((run * 37) % 120))));
      expect(acknowledged.length).toBeGreaterThan(RUNS);
      expect(new Set(acknowledged.map(({ revision }) => revision)).size).toBe(acknowledged.length);
      await withLog(file, async ({ log }) => {
        const entries = await entriesFrom(log, await start(log));
        expect(entries.map(({ revision }) => revision)).toEqual(entries.map((_, i) => BigInt(i + 1)));
        for (const { revision, key, length } of acknowledged) {
          const change = entries[Number(revision) - 1]?.changes[0];
          expect([change?.key, change?.value?.length]).toEqual([key, length]);
        }
        const { items } = await log.snapshot('', options);
        const last = new Map(entries.flatMap(({ changes }) => changes.map(({ key, value }) => [key, value] as const)));
        expect(items.map(({ key, value }) => [key, value])).toEqual([...last].sort(([a], [b]) => (a < b ? -1 : 1)));
      });
    }),
);

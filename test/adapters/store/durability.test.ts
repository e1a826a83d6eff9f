import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { SqliteControlStore } from '../../../src/adapters/store/sqlite-control-store.js';
import { sourceArguments } from '../../../src/adapters/threads/typescript-worker.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { tempFolder } from '../../support/temp-folder.js';

const program = fileURLToPath(new URL('./support/commit-loop.ts', import.meta.url));
const options = { signal: new AbortController().signal };
const RUNS = 15;

interface Acknowledged {
  readonly version: bigint;
  readonly key: string;
  readonly length: number;
}

/** Runs the program, kills it `delay` ms after its first acknowledgement, and gives what it had acknowledged. */
async function runAndKill(file: string, run: number, delay: number): Promise<readonly Acknowledged[]> {
  const child = spawn(process.execPath, [...sourceArguments, program, file, String(run)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const found: Acknowledged[] = [];
  for await (const line of createInterface(child.stdout)) {
    const [version = '', key = '', length] = line.split(' ');
    if (found.length === 0) setTimeout(() => child.kill('SIGKILL'), delay);
    // The last line may be cut by the kill: it is then no acknowledgement.
    if (length !== undefined) found.push({ version: BigInt(version), key, length: Number(length) });
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  expect(child.signalCode).toBe('SIGKILL');
  return found;
}

test(`kill -9, ${RUNS} times: every acknowledged commit is there as a whole, no version is used twice, every open succeeds`, {
  timeout: 120_000,
}, async () => {
  const file = join(await tempFolder(), 'control.db');
  const acknowledged: Acknowledged[] = [];
  for (let run = 0; run < RUNS; run += 1) acknowledged.push(...(await runAndKill(file, run, 5 + ((run * 37) % 120))));
  expect(acknowledged.length).toBeGreaterThan(RUNS);
  const store = new SqliteControlStore({ file, clock: new FakeClock() });
  await store.open(options);
  const stored = await store.list('k/', options);
  const byKey = new Map(stored.map((value) => [value.key, value]));
  // A batch of 8 gets 8 versions: those of one run are its own, and later runs go on above all that were given out.
  expect(new Set(stored.map(({ version }) => version)).size).toBe(stored.length);
  for (const { version, key, length } of acknowledged) {
    expect(byKey.get(key)).toMatchObject({ version });
    // The program prints UTF-16 units of ASCII text; the last line of a run may be cut within the number.
    expect(String(byKey.get(key)?.value.length).startsWith(String(length))).toBe(true);
  }
  for (const { value: newest, version } of await store.list('twin/', options)) expect(byKey.get(newest)?.version).toBe(version);
  await store.close();
});

// npm run bench:fleet: measures one control plane with fleets of simulated agents and writes docs/benchmarks/fleet.md and its chart.
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { FleetSize, Measured } from './fleet/figures.ts';
import { measure } from './fleet/measure.ts';
import { fleetChart, fleetPage } from './report/fleet-page.ts';
import { describeMachine } from './report/machine.ts';

const root = join(import.meta.dirname, '..');

const { values } = parseArgs({
  options: {
    agents: { type: 'string', default: '100,1000' },
    profile: { type: 'string' },
    quick: { type: 'boolean', default: false },
  },
});
const counts = values.quick ? [20] : values.agents.split(',').map(Number);
/** The largest also on etcd. */
const sizes: readonly FleetSize[] = [
  ...counts.map((agents) => ({ agents, store: 'embedded' as const })),
  { agents: Math.max(...counts), store: 'etcd' },
];
const effort = values.quick
  ? { idleMs: 2_000, changes: 20, changesPerSecond: 20, kills: false }
  : { idleMs: 30_000, changes: 200, changesPerSecond: 4, kills: true };

/** What was begun is undone: processes stopped, folders removed. */
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort(new Error(signal)));

const note = (text: string) => console.error(`bench: ${text}`);

async function main(): Promise<void> {
  if (counts.some((count) => !(Number.isInteger(count) && count > 0)))
    throw new Error(`--agents takes numbers, not ${values.agents}`);
  const profile = values.profile === undefined ? undefined : resolve(values.profile);
  const measured: Measured[] = [];
  for (const size of sizes) measured.push(await measure({ ...size, effort, profile, signal: stop.signal }, note));
  await write({ figures: measured.flatMap(({ figures }) => figures), changes: measured.flatMap(({ changes }) => changes) });
}

/** A smoke run must not replace what was measured. */
async function write(measured: Measured): Promise<void> {
  const folder = values.quick ? join(root, 'build/bench/quick') : join(root, 'docs/benchmarks');
  await mkdir(folder, { recursive: true });
  const [chart, data] = ['fleet.svg', 'fleet.jsonl'];
  const facts = { machine: await describeMachine(new Date()), effort, chart, data };
  const lines = [...measured.figures, ...measured.changes].map((line) => `${JSON.stringify(line)}\n`);
  await writeFile(join(folder, data), lines.join(''));
  await writeFile(join(folder, chart), fleetChart(measured));
  await writeFile(join(folder, 'fleet.md'), fleetPage(measured, facts));
  note(`wrote ${join(folder, 'fleet.md')}`);
}

try {
  await main();
} catch (error) {
  note(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

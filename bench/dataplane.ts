// npm run bench:dataplane: sets up, measures Holdfast beside its peers and writes docs/benchmarks/dataplane.md and its chart.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { describeMachine } from './report/machine.ts';
import { chartOf, page } from './report/page.ts';
import { buildTools } from './rig/build.ts';
import { cases } from './rig/cases.ts';
import { must, run } from './rig/children.ts';
import { isAvailable, peers, tools } from './rig/peers.ts';
import type { Sample } from './rig/results.ts';
import { measure } from './rig/rounds.ts';

const root = join(import.meta.dirname, '..');
const PACKAGES = ['haproxy', 'nginx-light', 'libnginx-mod-stream', 'iperf3', 'iproute2', 'procps', 'g++'];

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    quick: { type: 'boolean', default: false },
  },
});
const effort = values.quick
  ? { rounds: 1, seconds: 0.3, idle: 500, quietMs: 0 }
  : { rounds: Number(values.rounds), seconds: Number(values.seconds), idle: 9_000, quietMs: 600_000 };

/** What was begun is undone: peers stopped, namespaces removed. */
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort(new Error(signal)));

const note = (text: string) => console.error(`bench: ${text}`);

async function installPackages(): Promise<void> {
  const { code } = await run(['dpkg', '--status', ...PACKAGES]).catch(() => ({ code: 0 }));
  if (code === 0) return;
  note(`installing ${PACKAGES.join(' ')}`);
  const install = ['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...PACKAGES];
  await must(['apt-get', 'update', '-qq']);
  await must(['env', 'DEBIAN_FRONTEND=noninteractive', ...install]);
}

async function main(): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error('network namespaces need root');
  await installPackages();
  await buildTools(note);
  for (const peer of peers) if (!isAvailable(peer)) note(`${peer.name} is left out: ${peer.needs} is not there`);
  const samples: Sample[] = [];
  const report = (sample: Sample) => {
    samples.push(sample);
    note(`round ${sample.round} ${sample.case} ${sample.peer}: ${sample.value?.toFixed(1) ?? sample.problem}`);
  };
  const { rounds, seconds, idle, quietMs } = effort;
  await measure({ cases, peers, rounds, effort: { seconds, idle }, quietMs, signal: stop.signal }, report, note);
  const silent = peers.filter(
    ({ name, ours }) => ours && !samples.some(({ peer, value }) => peer === name && value !== undefined),
  );
  if (silent.length > 0) throw new Error(`nothing was measured of ${silent.map(({ name }) => name).join(', ')}`);
  await write(samples);
}

/** A smoke run must not replace what was measured. */
async function write(samples: readonly Sample[]): Promise<void> {
  const folder = values.quick ? join(tools, 'quick') : join(root, 'docs/benchmarks');
  await mkdir(folder, { recursive: true });
  const [chart, data] = ['dataplane.svg', 'dataplane.jsonl'];
  const results = { cases, peers, samples };
  const facts = { machine: await describeMachine(new Date()), rounds: effort.rounds, seconds: effort.seconds, chart, data };
  await writeFile(join(folder, data), samples.map((sample) => `${JSON.stringify(sample)}\n`).join(''));
  await writeFile(join(folder, chart), chartOf(results));
  await writeFile(join(folder, 'dataplane.md'), page(results, facts));
  note(`wrote ${join(folder, 'dataplane.md')}`);
}

try {
  await main();
} catch (error) {
  note(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

import { type ChangeTimes, type Figure, type FleetSize, type Measured, quantile, titleOf } from '../fleet/figures.ts';
import type { Effort } from '../fleet/measure.ts';
import { isDisturbed } from '../rig/usage.ts';
import { type Bar, barChart, type Panel } from './chart.ts';
import type { Machine } from './machine.ts';
import { formatNumber, markdownTable } from './tables.ts';

/** What is wanted of 1,000 agents on two cores. */
const PROPAGATION_MS = 1_000;
const MEMORY_MB = 500;
const MANY = 10_000;
/** Limits of the server, which no machine makes faster. */
const REGISTRATIONS_PER_SECOND = 50;
const COME_BACK_PER_SECOND = 100;
const HEARTBEAT_SECONDS = 5;

export interface FleetPageFacts {
  readonly machine: Machine;
  readonly effort: Effort;
  readonly chart: string;
  readonly data: string;
}

/** docs/benchmarks/fleet.md, whole. */
export function fleetPage({ figures, changes }: Measured, { machine, effort, chart, data }: FleetPageFacts): string {
  const sizes = sizesOf(figures);
  const about = markdownTable(
    ['measured', ''],
    [
      ['date', machine.date],
      ['machine', machine.hardware],
      ['kernel', machine.kernel],
      ['versions', machine.versions.filter((version) => /^(Node|Holdfast)/.test(version)).join('; ')],
    ],
  );
  return `<!-- Written by \`npm run bench:fleet\`; edit bench/report/fleet-page.ts instead. -->

# One control plane and its fleet

**The absolute numbers are those of a small, noisy machine.** Server and all agents share its cores, and other programs run on it; how much
CPU these took is the last row. On a machine that the server has for itself everything here is faster, above all what ends with the last
agent: the agents' own work is then elsewhere.

${about}
${disturbance(figures)}${verdicts(figures, changes)}
![What was used of what is allowed](${chart})

## All figures

${sections(figures, sizes)}
## What this means for ${formatNumber(MANY)} nodes

${outlook(figures, sizes)}
## How it is measured

A real \`holdfast server\` process, in a folder of its own, on its embedded store and then on three members of an etcd, which share the two
cores as well and have the disk's syncs to wait for. The agents are simulated, 250 in a process: each registers
with a token of its own, makes its own key, and keeps one connection of mutual TLS with its own certificate, for the link with a
heartbeat every ${HEARTBEAT_SECONDS} s and for the log. Link, registration and log are the code that \`holdfast agent\` runs; an agent of the bench answers instructions at once,
keeps nothing on disk and carries no traffic. They come over loopback addresses, and are started 100 a second.

A change is an \`apply\` of one of 50 services with other endpoints, ${effort.changesPerSecond} a second, ${effort.changes} in all, at their times whether or not those before have
arrived; it has arrived when the agent's view has it. Times are of the kernel's monotonic clock, which all processes share. CPU and
memory are those of the server's process, from /proc. Restarts count from the signal on; the server spreads the return of its agents over
10 s at least, and 100 a second. All figures and each change are in [${data}](${data}).

## To repeat it

    npm run bench:fleet                              # 100, then 1,000 agents, then 1,000 on etcd; on a machine that does nothing else
    npm run bench:fleet -- --agents 5000             # about 50 kB and one descriptor an agent on either side: \`ulimit -n\`
    npm run bench:fleet -- --profile /tmp/profiles   # CPU profiles of the server as well
    npm run bench:fleet -- --quick                   # a smoke run; writes to build/bench only
`;
}

/** What was used of what is allowed: 1 is the bar. */
export function fleetChart({ figures, changes }: Measured): string {
  const sizes = sizesOf(figures);
  const propagation = sizes.flatMap((size): Bar[] => {
    const times = changes.filter((change) => isOf(size, change)).map(({ lastMs }) => lastMs / PROPAGATION_MS);
    if (times.length === 0) return [];
    const [value, least, most] = [quantile(times, 0.99), quantile(times, 0), quantile(times, 1)];
    return [{ label: `${titleOf(size)}, p99`, note: ms(value * PROPAGATION_MS), value, least, most, emphasised: true }];
  });
  const memory = sizes.flatMap((size): Bar[] => {
    const used = ['idle: memory with agents', 'changes: memory'].flatMap((key) => figureOf(figures, size, key) ?? []);
    const [least, most] = [Math.min(...used) / MEMORY_MB, Math.max(...used) / MEMORY_MB];
    return [{ label: titleOf(size), note: `${formatNumber(most * MEMORY_MB)} MB`, value: most, least, most, emphasised: true }];
  });
  const panels: readonly Panel[] = [
    { title: 'From apply to the last agent, of 1 s', bars: propagation },
    { title: 'Memory of the server, of 500 MB', bars: memory },
  ];
  return barChart('What was used of what is allowed for 1,000 agents; shorter is better', panels);
}

/** Nothing on a machine that did nothing else. */
function disturbance(figures: readonly Figure[]): string {
  const others = Math.max(
    ...sizesOf(figures).map((size) => figureOf(figures, size, 'machine: CPU of other programs meanwhile') ?? 0),
  );
  if (!isDisturbed(others)) return '';
  return `**This run was disturbed: other programs took ${formatNumber(others)} cores meanwhile.** Times, above all those of connecting, say more of that than of
the server; CPU and memory can be read.

`;
}

function verdicts(figures: readonly Figure[], changes: readonly ChangeTimes[]): string {
  const most = Math.max(...sizesOf(figures).map(({ agents }) => agents));
  const rows = sizesOf(figures)
    .filter(({ agents }) => agents === most)
    .flatMap((size) => {
      const p99 = figureOf(figures, size, 'changes: apply to the last agent, p99') ?? Number.NaN;
      const memory = figureOf(figures, size, 'changes: memory') ?? Number.NaN;
      const count = changes.filter((each) => isOf(size, each)).length;
      return [
        [`\`apply\` to the last of ${titleOf(size)}, p99 of ${count}`, ms(p99), ms(PROPAGATION_MS)],
        [`memory of the server with ${titleOf(size)}`, `${formatNumber(memory)} MB`, `${MEMORY_MB} MB`],
      ];
    });
  return markdownTable(['', 'measured', 'wanted, at most, for 1,000'], rows);
}

function sections(figures: readonly Figure[], sizes: readonly FleetSize[]): string {
  const parts = [...new Set(figures.map(({ part }) => part))];
  const rows = parts.flatMap((part) => {
    const names = [...new Set(figures.filter((figure) => figure.part === part).map(({ name }) => name))];
    return names.map((name) => {
      const unit = figures.find((figure) => figure.part === part && figure.name === name)?.unit ?? '';
      const cells = sizes.map((size) => {
        const value = figureOf(figures, size, `${part}: ${name}`);
        return value === undefined ? '-' : formatNumber(value);
      });
      return [part, name, unit, ...cells];
    });
  });
  return markdownTable(['part', '', 'unit', ...sizes.map(titleOf)], rows);
}

/** Of the embedded store, by a straight line through what was measured; nothing of it was measured itself. */
function outlook(figures: readonly Figure[], all: readonly FleetSize[]): string {
  const sizes = all.filter(({ store }) => store === 'embedded').map(({ agents }) => agents);
  const embedded = (agents: number, key: string) => figureOf(figures, { agents, store: 'embedded' }, key) ?? Number.NaN;
  const projected = (key: string, each: 'in all' | 'of each agent') =>
    straightOn(sizes, (agents) => embedded(agents, key) * (each === 'in all' ? 1 : agents));
  const agents = Math.max(...sizes);
  const empty = embedded(agents, 'idle: memory without agents');
  const perAgent = (embedded(agents, 'changes: memory') - empty) / agents;
  const cores = projected('idle: server CPU', 'in all');
  const changeMs = projected('changes: server CPU per change, without idle', 'in all');
  const backMs = projected('planned restart: server CPU per agent until then', 'of each agent');
  const instructMs = projected('an instruction to each agent: server CPU per instruction', 'of each agent');
  const changesPerSecond = (Math.max(0, 1 - cores) * 1_000) / changeMs;
  return `By a straight line through ${sizes.join(' and ')} agents (through none and the one size where there is but one); nothing of it was measured. JavaScript of
the server runs on one core, so that one second of CPU is one second of time at best.

- **Memory**: ${formatNumber(empty + perAgent * MANY)} MB, ${formatNumber(perAgent * 1_000)} MB for each thousand agents beside ${formatNumber(empty)} MB.
- **At rest**: ${formatNumber(MANY / HEARTBEAT_SECONDS)} heartbeats a second and what belongs to them take ${formatNumber(cores)} of one core.
- **A change** takes ${ms(changeMs)} of CPU to reach all: the last agent cannot have it sooner, and about ${formatNumber(changesPerSecond)} changes a second, one \`apply\`
  each, are all that fit beside the heartbeats. Services that change together belong into one \`apply\`: it is one entry for all of them.
- **Registration** takes ${formatNumber(MANY / REGISTRATIONS_PER_SECOND)} s: the server lets ${REGISTRATIONS_PER_SECOND} a second in, whoever asks.
- **After a restart** agents come back within ${formatNumber(MANY / COME_BACK_PER_SECOND)} s, ${COME_BACK_PER_SECOND} a second, and take ${formatNumber(backMs / 1_000)} s of CPU meanwhile; where that is
  more than the time, it is the CPU that decides. Traffic goes on: nodes serve what they know.
- **An instruction to each node** takes ${formatNumber(instructMs / 1_000)} s of CPU.
`;
}

/** What `MANY` agents would have. */
function straightOn(sizes: readonly number[], total: (agents: number) => number): number {
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  if (least === most) return (total(most) * MANY) / most;
  return total(most) + ((total(most) - total(least)) / (most - least)) * (MANY - most);
}

/** In the order of their measuring. */
function sizesOf(figures: readonly Figure[]): readonly FleetSize[] {
  return [...new Map(figures.map(({ agents, store }) => [titleOf({ agents, store }), { agents, store }])).values()];
}

function isOf({ agents, store }: FleetSize, measured: FleetSize): boolean {
  return measured.agents === agents && measured.store === store;
}

/** @param key `part: name` */
function figureOf(figures: readonly Figure[], size: FleetSize, key: string): number | undefined {
  return figures.find((figure) => isOf(size, figure) && `${figure.part}: ${figure.name}` === key)?.value;
}

function ms(value: number): string {
  return `${formatNumber(value)} ms`;
}
